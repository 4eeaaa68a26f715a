import { undefinedBecause } from './builtin.ts';
import { formatFloat } from './float.ts';
import { isInt64 } from './number.ts';

const UNITS: ReadonlyMap<string, bigint> = new Map([
  ['ns', 1n],
  ['us', 1000n],
  ['µs', 1000n],
  ['μs', 1000n],
  ['ms', 1_000_000n],
  ['s', 1_000_000_000n],
  ['m', 60_000_000_000n],
  ['h', 3_600_000_000_000n],
]);

/** Hours of the units that OPA adds to Go's. */
const LONG_UNITS: ReadonlyMap<string, number> = new Map([
  ['d', 24],
  ['w', 7 * 24],
  ['y', 365 * 24],
]);

const SEGMENT = /(\d*)(?:\.(\d*))?([^\d.]+)/y;

/** Longest text that is read: every unit once, with all digits that count, has some 300 characters. */
const MAX_CHARS = 1000;

/** Nanoseconds of a duration such as `1h30m`, `1.5d`, `-2w`. */
export function parseDuration(text: string): bigint {
  if (text.length > MAX_CHARS) {
    return invalid(text);
  }
  if (/[dwy]/.test(text)) {
    return parseGoDuration(inHours(text), text);
  }
  return parseGoDuration(text, text);
}

function inHours(text: string): string {
  if (!/^[-+]?(?:[0-9.]+(?:ms|us|µs|μs|ns|h|m|s|d|w|y))+$/.test(text)) {
    return invalid(text);
  }
  return text.replace(/([0-9.]+)([dwy])/g, (_, digits: string, unit: string) => {
    if (!/^(?:\d+\.?\d*|\.\d+)$/.test(digits)) {
      return invalid(text);
    }
    return `${formatFloat(Number(digits) * (LONG_UNITS.get(unit) ?? 0), 'f')}h`;
  });
}

function parseGoDuration(text: string, original: string): bigint {
  const isNegative = text.startsWith('-');
  const body = text.replace(/^[-+]/, '');
  if (body === '0') {
    return 0n;
  }
  if (body === '') {
    return invalid(original);
  }
  let total = 0n;
  SEGMENT.lastIndex = 0;
  while (SEGMENT.lastIndex < body.length) {
    const [, whole = '', fraction = '', unit = ''] = SEGMENT.exec(body) ?? invalid(original);
    const nanoseconds = UNITS.get(unit);
    if (nanoseconds === undefined || whole + fraction === '') {
      return invalid(original);
    }
    total += BigInt(whole === '' ? '0' : whole) * nanoseconds + fractionOf(fraction, nanoseconds);
  }
  const signed = isNegative ? -total : total;
  return isInt64(signed) ? signed : invalid(original);
}

/** Go computes the fraction in floating point, from at most the digits that fit an int64. */
function fractionOf(digits: string, nanoseconds: bigint): bigint {
  let kept = digits.slice(0, 19);
  if (kept !== '' && !isInt64(BigInt(kept))) {
    kept = kept.slice(0, 18);
  }
  return BigInt(Math.trunc(Number(kept) * (Number(nanoseconds) / 10 ** kept.length)));
}

function invalid(text: string): never {
  return undefinedBecause(`not a duration: ${text.slice(0, 100)}`);
}
