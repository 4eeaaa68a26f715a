import { formatFloat, parseDuration as parseGoDuration } from '../../../go/index.ts';
import { undefinedBecause } from './builtin.ts';

/** Hours per unit that OPA adds to Go's units. */
const LONG_UNITS: ReadonlyMap<string, number> = new Map([
  ['d', 24],
  ['w', 7 * 24],
  ['y', 365 * 24],
]);

/** Maximum length of a text: one with every unit once and all significant digits has some 300 characters. */
const MAX_CHARS = 1000;

/** Parses a duration such as `1h30m`, `1.5d` or `-2w` to nanoseconds. */
export function parseDuration(text: string): bigint {
  if (text.length > MAX_CHARS) {
    return invalid(text);
  }
  return parseGoDuration(/[dwy]/.test(text) ? inHours(text) : text) ?? invalid(text);
}

function inHours(text: string): string {
  if (!/^[-+]?(?:[0-9.]+(?:ms|us|µs|μs|ns|h|m|s|d|w|y))+$/.test(text)) {
    return invalid(text);
  }
  return text.replace(/([0-9.]+)([dwy])/g, (_, digits: string, unit: string) => {
    if (!/^(?:\d+(?:\.\d*)?|\.\d+)$/.test(digits)) {
      return invalid(text);
    }
    return `${formatFloat(Number(digits) * (LONG_UNITS.get(unit) ?? 0), 'f')}h`;
  });
}

function invalid(text: string): never {
  return undefinedBecause(`not a duration: ${text.slice(0, 100)}`);
}
