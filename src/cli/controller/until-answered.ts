import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, Backoff, ClusterError } from '../../cluster/index.ts';
import type { Logger } from '../../log/index.ts';
import { errorText } from '../../values/index.ts';

/**
 * Calls an API server until it answers.
 * @returns undefined when the signal was aborted
 * @throws errors of `ask` other than ClusterError and ApiError from 500
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
      const isUnavailable = error instanceof ClusterError || (error instanceof ApiError && error.code >= 500);
      if (!signal.aborted && !isUnavailable) {
        throw error;
      }
      log.warn({ error: errorText(error) }, 'the API server does not answer, retrying');
      await sleep(backoff.failed(performance.now()), undefined, { signal }).catch(() => undefined);
    }
  }
  return undefined;
}
