import type { Clock } from './clock.ts';

/**
 * Calls `task` with a signal that is aborted with `signal` or after `ms`. Rejects then, even if the task ignores its
 * signal.
 */
export async function withinTime<T>(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  task: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  const expired = Promise.withResolvers<never>();
  expired.promise.catch(() => undefined);
  const stop = (reason: unknown): void => {
    limit.abort(reason);
    expired.reject(reason);
  };
  const onAbort = (): void => stop(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  const cancel = clock.after(ms, () => stop(new Error(`no answer within ${Math.round(ms)} ms`)));
  try {
    if (signal.aborted) {
      onAbort();
    }
    return await Promise.race([task(limit.signal), expired.promise]);
  } finally {
    cancel();
    signal.removeEventListener('abort', onAbort);
  }
}
