/** The first wait is drawn from zero to this long: a dropped connection is worth a quick second try. */
export const BACKOFF_BASE_MS = 1000;
/** No wait is longer, so that a source that was down for hours is found again within minutes. */
export const BACKOFF_CAP_MS = 5 * 60 * 1000;
/** No wait is shorter, so that a run of lucky draws is not a busy loop. */
export const BACKOFF_FLOOR_MS = 100;

/**
 * How long to wait before trying again, in milliseconds, when `attempt` tries (1 or more) have failed: drawn evenly from
 * the whole range up to the exponential bound ("full jitter"), so that replicas that failed together do not retry together.
 */
export function jitteredBackoff(attempt: number, random: () => number = Math.random): number {
  // 2 ** 20 is far past the cap; the bound keeps a long outage from computing Infinity.
  const doublings = Math.min(Math.max(attempt - 1, 0), 20);
  const bound = Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** doublings);
  return Math.max(BACKOFF_FLOOR_MS, Math.floor(random() * bound));
}
