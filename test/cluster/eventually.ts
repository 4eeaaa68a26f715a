import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Tries until an attempt does not throw and returns what it returned; throws the error of the last attempt when `timeoutMs` (default
 * 10,000) are over. For what an API server does a moment after it has answered, such as calling a webhook that was just configured.
 */
export async function eventually<T>(
  attempt: () => Promise<T>,
  options: { readonly timeoutMs?: number; readonly intervalMs?: number } = {},
): Promise<T> {
  const deadline = performance.now() + (options.timeoutMs ?? 10_000);
  for (;;) {
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
