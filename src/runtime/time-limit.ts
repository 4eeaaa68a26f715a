import type { Clock } from './clock.ts';

/**
 * Calls `task` with a signal that is aborted with `signal`, and after so many milliseconds. Rejects then, whatever the task
 * does with its signal.
 */
export async function withinTime<T>(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  task: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  const given = Promise.withResolvers<never>();
  given.promise.catch(() => undefined);
  const stop = (reason: unknown): void => {
    limit.abort(reason);
    given.reject(reason);
  };
  const onAbort = (): void => stop(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  const cancel = clock.after(ms, () => stop(new Error(`no answer within ${Math.round(ms)} ms`)));
  try {
    if (signal.aborted) {
      onAbort();
    }
    return await Promise.race([task(limit.signal), given.promise]);
  } finally {
    cancel();
    signal.removeEventListener('abort', onAbort);
  }
}
