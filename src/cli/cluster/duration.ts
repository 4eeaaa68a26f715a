import { usageError } from '../errors.ts';

/** The longest delay of timers: 24 days. Milliseconds. */
const MAX_MS = 2 ** 31 - 1;

const UNITS_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/**
 * Parses `500ms`, `30s`, `5m`, `1h`, `1m30s`, `90d` into milliseconds.
 * @param maxMs the longest valid duration. Default: that of timers
 * @throws CliError
 */
export function durationMs(text: string, flag: string, maxMs: number = MAX_MS): number {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)];
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text) {
    throw usageError(`${flag} ${text}: expected a duration such as 30s, 5m or 1m30s`);
  }
  const milliseconds = parts.reduce(
    (sum, [, count, unit]) => sum + Number(count) * UNITS_MS[unit as keyof typeof UNITS_MS],
    0,
  );
  if (milliseconds > maxMs) {
    throw usageError(`${flag} ${text}: expected at most ${Math.trunc(maxMs / UNITS_MS.h)}h`);
  }
  return Math.trunc(milliseconds);
}
