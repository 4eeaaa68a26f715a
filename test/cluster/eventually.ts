import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Retries until an attempt does not throw, and returns its result. After `timeoutMs` (default 10,000) it throws the last error. For
 * effects that follow the response of an API server after a moment, such as calls of a new webhook. It also ends with `signal`.
 */
export async function eventually<T>(
  attempt: () => Promise<T>,
  options: { readonly timeoutMs?: number; readonly intervalMs?: number; readonly signal?: AbortSignal } = {},
): Promise<T> {
  const { timeoutMs = 10_000, intervalMs = 50, signal } = options;
  const began = performance.now();
  for (;;) {
    signal?.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() - began > timeoutMs * slowdown()) {
        throw error;
      }
    }
    await sleep(intervalMs);
  }
}

/** How much longer everything takes while more processes want a processor than there are: limits are for what never comes. */
function slowdown(): number {
  return Math.max(1, (os.loadavg()[0] ?? 0) / os.availableParallelism());
}
