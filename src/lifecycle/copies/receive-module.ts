import type { ControlAddress, ControlClient } from '../../control/index.ts';
import { DEFAULT_MAX_MODULE_BYTES, type Digest } from '../../modules/index.ts';

/** Time for the answer of a replica, connection included. Milliseconds. */
const ANSWER_TIMEOUT_MS = 5_000;
/** Time for a whole module: 64 MiB at 2 MB/s within a cluster. Milliseconds. */
const RECEIVE_TIMEOUT_MS = 30_000;

/** A module that begins to arrive. */
export interface ArrivingModule {
  /** As the replica announces it; the content has at most that. Bytes. */
  readonly size: number;
  readonly content: AsyncIterable<Uint8Array>;
  readonly cancel: () => void;
}

/**
 * Asks a replica for a module.
 * @returns undefined when it does not have it
 * @throws Error when it cannot be reached, or its answer cannot be used
 */
export async function receiveModule(
  client: ControlClient,
  address: ControlAddress,
  digest: Digest,
  signal: AbortSignal,
): Promise<ArrivingModule | undefined> {
  const late = new AbortController();
  const patience = setTimeout(() => late.abort(new Error('no answer in time')), ANSWER_TIMEOUT_MS);
  const limit = AbortSignal.any([signal, late.signal, AbortSignal.timeout(RECEIVE_TIMEOUT_MS)]);
  try {
    const response = await client.open(address, `/modules/${digest}`, limit);
    const size = Number(response.headers['content-length']);
    if (response.statusCode !== 200) {
      response.destroy();
      if (response.statusCode === 404) {
        return undefined;
      }
      throw new Error(`expected status 200, got ${response.statusCode}`);
    }
    if (!Number.isSafeInteger(size) || size <= 0 || size > DEFAULT_MAX_MODULE_BYTES) {
      response.destroy();
      throw new RangeError(`expected a module of 1 to ${DEFAULT_MAX_MODULE_BYTES} bytes, got ${size}`);
    }
    return { size, content: response as AsyncIterable<Uint8Array>, cancel: () => response.destroy() };
  } finally {
    clearTimeout(patience);
  }
}
