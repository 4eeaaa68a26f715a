/** No wait that a server asks for is longer: it is then an answer for the caller, not a pause. */
export const MAX_RETRY_AFTER_MS = 30_000;
/** Answers "try later" that are waited for in one request. With API servers' usual `Retry-After: 1` some five seconds. */
export const MAX_THROTTLED_RETRIES = 5;
/** Added to what the server says, drawn from zero to this share of it, so that all who were refused do not come back at once. */
const JITTER_SHARE = 0.5;

/**
 * How long an answer asks to wait. Seconds or a date, as RFC 9110 has it. Undefined without a valid header.
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
  // Date.parse takes much more than dates of HTTP, which end in GMT.
  return Number.isNaN(date) || !text.endsWith('GMT') ? undefined : Math.max(0, date - now);
}

/**
 * The wait before an answer with this status is asked for again, in milliseconds; undefined when it is final. 429 and 503
 * with Retry-After were refused before anything was done, so it makes no difference what the request would have done.
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
