import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, Backoff, ClusterError } from '../../cluster/index.ts';
import type { Logger } from '../../log/index.ts';
import { errorText } from '../../values/index.ts';

/**
 * Asks an API server something that a process cannot begin without. One that is away is waited for.
 * @returns undefined when the signal was aborted
 * @throws what `ask` does, where the server answered: ApiError below 500, and others
 */
export async function untilAnswered<T>(
  ask: () => Promise<T>,
  log: Logger,
  signal: AbortSignal,
): Promise<T | undefined> {
  const backoff = new Backoff();
  while (!signal.aborted) {
    try {
      return await ask();
    } catch (error) {
      const isAway = error instanceof ClusterError || (error instanceof ApiError && error.code >= 500);
      if (!signal.aborted && !isAway) {
        throw error;
      }
      log.warn({ error: errorText(error) }, 'the API server does not answer, retrying');
      await sleep(backoff.failed(performance.now()), undefined, { signal }).catch(() => undefined);
    }
  }
  return undefined;
}
