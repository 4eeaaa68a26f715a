import { NS_PER_SECOND } from './civil-time.ts';
import { isInt64 } from './int64.ts';

/** Nanoseconds per unit. */
const UNITS: ReadonlyMap<string, number> = new Map([
  ['ns', 1],
  ['us', 1e3],
  // U+00B5, the micro sign, and U+03BC, the Greek letter.
  ['\u00b5s', 1e3],
  ['\u03bcs', 1e3],
  ['ms', 1e6],
  ['s', 1e9],
  ['m', 60e9],
  ['h', 3600e9],
]);

const SEGMENT = /(\d*)(?:\.(\d*))?([^\d.]+)/y;

/** Digits of the largest int64: more digits overflow, or exceed a fraction's precision. */
const MAX_DIGITS = 19;

/** Nanoseconds of a duration such as `1h30m` or `-1.5s` (`time.ParseDuration`); undefined when Go reports an error. */
export function parseDuration(text: string): bigint | undefined {
  const isNegative = text.startsWith('-');
  const body = isNegative || text.startsWith('+') ? text.slice(1) : text;
  if (body === '0') {
    return 0n;
  }
  const magnitude = sumOfSegments(body);
  if (magnitude === undefined) {
    return undefined;
  }
  const nanoseconds = isNegative ? -magnitude : magnitude;
  return isInt64(nanoseconds) ? nanoseconds : undefined;
}

function sumOfSegments(text: string): bigint | undefined {
  let total = 0n;
  SEGMENT.lastIndex = 0;
  do {
    const [, whole = '', fraction = '', unitText = ''] = SEGMENT.exec(text) ?? [];
    const unit = UNITS.get(unitText);
    const digits = whole.replace(/^0+/, '');
    if (unit === undefined || whole + fraction === '' || digits.length > MAX_DIGITS) {
      return undefined;
    }
    total += BigInt(digits) * BigInt(unit) + fractionOf(fraction, unit);
  } while (SEGMENT.lastIndex < text.length);
  return total;
}

/** Go computes the fraction in floating point, from at most the digits that fit an int64. */
function fractionOf(digits: string, unit: number): bigint {
  let kept = digits.slice(0, MAX_DIGITS);
  if (!isInt64(BigInt(kept))) {
    kept = kept.slice(0, -1);
  }
  return BigInt(Math.trunc(Number(kept) * (unit / 10 ** kept.length)));
}

/** A duration as Go prints it (`Duration.String`): `300h0m0s`, `1.5s`, `0s`. */
export function formatDuration(nanoseconds: bigint): string {
  const magnitude = nanoseconds < 0n ? -nanoseconds : nanoseconds;
  return `${nanoseconds < 0n ? '-' : ''}${magnitude < NS_PER_SECOND ? shortDuration(magnitude) : longDuration(magnitude)}`;
}

function shortDuration(nanoseconds: bigint): string {
  if (nanoseconds === 0n) {
    return '0s';
  }
  const [unit, digits] = nanoseconds < 1_000n ? ['ns', 0] : nanoseconds < 1_000_000n ? ['\u00b5s', 3] : ['ms', 6];
  return `${decimal(nanoseconds, digits)}${unit}`;
}

function longDuration(nanoseconds: bigint): string {
  const minutes = nanoseconds / (60n * NS_PER_SECOND);
  const seconds = `${decimal(nanoseconds % (60n * NS_PER_SECOND), 9)}s`;
  if (minutes === 0n) {
    return seconds;
  }
  return minutes < 60n ? `${minutes}m${seconds}` : `${minutes / 60n}h${minutes % 60n}m${seconds}`;
}

/** A number with `digits` decimals, without zeros at its end. */
function decimal(value: bigint, digits: number): string {
  const unit = 10n ** BigInt(digits);
  const fraction = (value % unit).toString().padStart(digits, '0').replace(/0+$/, '');
  return `${value / unit}${digits === 0 || fraction === '' ? '' : `.${fraction}`}`;
}
