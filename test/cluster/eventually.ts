import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Retries until an attempt does not throw, and returns its result. After `timeoutMs` (default 10,000) it throws the last error. For
 * effects that follow the response of an API server after a moment, such as calls of a new webhook. It also ends with `signal`.
 */
export async function eventually<T>(
  attempt: () => Promise<T>,
  options: { readonly timeoutMs?: number; readonly intervalMs?: number; readonly signal?: AbortSignal } = {},
): Promise<T> {
  const deadline = performance.now() + (options.timeoutMs ?? 10_000);
  for (;;) {
    options.signal?.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > deadline) {
        throw error;
      }
    }
    await sleep(options.intervalMs ?? 50);
  }
}
