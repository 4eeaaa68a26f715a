import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { type ControlAddress, type ControlClient, policyServersOf } from '../../control/index.ts';
import { LARGEST_MODULE_BYTES } from '../../modules/sources/index.ts';
import type { CopyKey } from './wanted-copies.ts';

/** Time for the answer of a replica, connection included. Milliseconds. */
const ANSWER_TIMEOUT_MS = 5_000;
/** Time for a whole module: 256 MiB at 2 MB/s within a cluster. Milliseconds. */
const RECEIVE_TIMEOUT_MS = 130_000;

/** A module that begins to arrive. */
export interface ArrivingModule {
  /** As the replica announces it; the content has at most that. Bytes. */
  readonly size: number;
  readonly content: AsyncIterable<Uint8Array>;
  readonly cancel: () => void;
}

/**
 * Asks a replica of a PolicyServer for a module. Its certificate has to name the PolicyServer: only with such a certificate does it get
 * the copy back.
 * @returns undefined when it does not have it
 * @throws Error when it cannot be reached, or its answer cannot be used
 */
export async function receiveModule(
  client: ControlClient,
  address: ControlAddress,
  { policyServer, digest }: CopyKey,
  signal: AbortSignal,
): Promise<ArrivingModule | undefined> {
  const late = new AbortController();
  const patience = setTimeout(() => late.abort(new Error('no answer in time')), ANSWER_TIMEOUT_MS);
  const limit = AbortSignal.any([signal, late.signal, AbortSignal.timeout(RECEIVE_TIMEOUT_MS)]);
  try {
    const response = await client.open(address, `/modules/${digest}`, limit);
    requireName(response, policyServer);
    const size = Number(response.headers['content-length']);
    if (response.statusCode !== 200) {
      response.destroy();
      if (response.statusCode === 404) {
        return undefined;
      }
      throw new Error(`expected status 200, got ${response.statusCode}`);
    }
    if (!Number.isSafeInteger(size) || size <= 0 || size > LARGEST_MODULE_BYTES) {
      response.destroy();
      throw new RangeError(`expected a module of 1 to ${LARGEST_MODULE_BYTES} bytes, got ${size}`);
    }
    return { size, content: response as AsyncIterable<Uint8Array>, cancel: () => response.destroy() };
  } finally {
    clearTimeout(patience);
  }
}

/** The certificate of a replica does not say which PolicyServer it belongs to. */
export class UnnamedCertificate extends Error {}

function requireName(response: IncomingMessage, policyServer: string): void {
  const { socket } = response;
  const certificate = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
  if (certificate === undefined || !policyServersOf(certificate).includes(policyServer)) {
    response.destroy();
    throw new UnnamedCertificate(`the certificate of the replica does not name PolicyServer ${policyServer}`);
  }
}
