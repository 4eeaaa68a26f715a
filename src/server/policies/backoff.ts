/** The first delay is drawn from zero to this value, because a dropped connection is worth a quick retry. */
export const LOAD_BACKOFF_BASE_MS = 1000;
/** The longest delay, so that a source that was down for hours is retried within minutes. */
export const LOAD_BACKOFF_CAP_MS = 5 * 60 * 1000;
/** The shortest delay, so that short random delays do not make a busy loop. */
export const LOAD_BACKOFF_FLOOR_MS = 100;

/**
 * Delay in milliseconds after `attempt` failed attempts (1 or more), drawn evenly from the whole range up to the
 * exponential bound ("full jitter"), so that replicas that failed together do not retry together.
 */
export function jitteredBackoff(attempt: number, random: () => number = Math.random): number {
  // 2 ** 20 is far beyond the cap; the bound avoids Infinity after a long outage.
  const doublings = Math.min(Math.max(attempt - 1, 0), 20);
  const bound = Math.min(LOAD_BACKOFF_CAP_MS, LOAD_BACKOFF_BASE_MS * 2 ** doublings);
  return Math.max(LOAD_BACKOFF_FLOOR_MS, Math.floor(random() * bound));
}
