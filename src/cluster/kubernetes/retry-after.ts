/** Longest accepted Retry-After; a longer one is returned to the caller as an error. */
export const MAX_RETRY_AFTER_MS = 30_000;
/** Retries of throttled requests: some five seconds with API servers' usual `Retry-After: 1`. */
export const MAX_THROTTLED_RETRIES = 5;
/** Random addition to Retry-After, up to this share of it, so that throttled clients do not retry together. */
const JITTER_SHARE = 0.5;

/**
 * The delay of a Retry-After header: seconds or a date (RFC 9110). Undefined without a valid header.
 * @param now milliseconds since 1970
 */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  if (header === undefined) {
    return undefined;
  }
  const text = header.trim();
  if (/^\d{1,9}$/.test(text)) {
    return Number(text) * 1000;
  }
  const date = Date.parse(text);
  // Date.parse accepts more than HTTP dates, which end in GMT.
  return Number.isNaN(date) || !text.endsWith('GMT') ? undefined : Math.max(0, date - now);
}

/**
 * The delay before a throttled request is sent again, in milliseconds; undefined for final responses. Requests with
 * 429, or 503 and Retry-After, were rejected before they had any effect, so every method can be retried.
 */
export function throttledWaitMs(
  answer: { readonly status: number; readonly retryAfter: string | undefined },
  retries: number,
  now: number,
  random: () => number,
): number | undefined {
  if ((answer.status !== 429 && answer.status !== 503) || retries >= MAX_THROTTLED_RETRIES) {
    return undefined;
  }
  const wait = retryAfterMs(answer.retryAfter, now);
  return wait === undefined || wait > MAX_RETRY_AFTER_MS
    ? undefined
    : Math.round(Math.max(wait, 100) * (1 + random() * JITTER_SHARE));
}
