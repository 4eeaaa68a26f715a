// Replicas of a policy server fetch pinned modules from each other, so that the source serves each module once, and replicas
// that cannot reach the source get it too.
import { request as httpsRequest } from 'node:https';
import type { RequestOptions } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { readWholeFile } from '../files/index.ts';
import { type Digest, digestOf } from './reference/digest.ts';
import { announcedLength, type ReserveMemory } from './http/http-transfer.ts';

/** Most peers that are tried for one module: more than most policy servers have replicas. */
const MAX_PEERS_ASKED = 32;
/** Requests at the same time; only one peer at a time sends the module. */
const PEERS_AT_ONCE = 4;
/** Time for the headers of the answer, connection included. Milliseconds. */
const PEER_ANSWER_TIMEOUT_MS = 2_000;
/** Time without a byte of the body. Milliseconds. */
const PEER_IDLE_TIMEOUT_MS = 3_000;
/** Time for all peers: 64 MiB at 5 MB/s within a cluster. Milliseconds. */
const PEER_TIMEOUT_MS = 15_000;
/** Delay before busy peers are tried again. Milliseconds. */
const PEER_RETRY_MS = 250;

/** The other replicas, and the TLS files for connections to them. */
export interface PeerSource {
  /** PEM files: the client certificate, its key, and the CA of the peers. Read for every fetch. */
  readonly certFile: string;
  readonly keyFile: string;
  readonly caFile: string;
  /** The DNS name in the certificates of all peers. */
  readonly serverName: string;
  /** Default: {@link PEER_ANSWER_TIMEOUT_MS}. */
  readonly answerTimeoutMs?: number;
  /** The peers that run now. */
  addresses(): PeerAddresses;
}

/** Processes that may have a module, each as `host:port`. */
export interface PeerAddresses {
  /** Other replicas of the PolicyServer. */
  readonly replicas: readonly string[];
  /** Controllers, which have copies of the modules of revisions. */
  readonly controllers: readonly string[];
}

type PeerAnswer = Uint8Array | 'absent' | 'busy' | 'unusable' | 'unreachable';

/** The outcome of trying all peers. */
export interface PeerOutcome {
  /** The module, verified. */
  readonly bytes: Uint8Array | undefined;
  /** Why no peer sent it, without their addresses; undefined when there are no peers. */
  readonly detail: string | undefined;
}

interface PeerOptions {
  readonly maxBytes: number;
  /** Whether controllers are asked as well. */
  readonly mayUseCopies: boolean;
  /** Waits until a module of this size may be in memory. Default: at once. */
  readonly reserve?: ReserveMemory;
  readonly signal: AbortSignal;
}

/** Requests a module by its digest from peers until one sends it. Never throws. */
export async function fetchFromPeers(
  source: PeerSource,
  digest: Digest,
  { maxBytes, mayUseCopies, reserve, signal }: PeerOptions,
): Promise<PeerOutcome> {
  const addresses = askedPeers(source, mayUseCopies);
  if (addresses.length === 0) {
    return { bytes: undefined, detail: undefined };
  }
  let tls: Pick<RequestOptions, 'cert' | 'key' | 'ca' | 'servername'>;
  try {
    const [cert, key, ca] = await Promise.all(
      [source.certFile, source.keyFile, source.caFile].map((f) => readWholeFile(f)),
    );
    tls = { cert, key, ca, servername: source.serverName };
  } catch {
    return { bytes: undefined, detail: 'other replicas could not be tried: the control certificate cannot be read' };
  }
  const limit = AbortSignal.any([signal, AbortSignal.timeout(PEER_TIMEOUT_MS)]);
  const answers = new Map<string, Exclude<PeerAnswer, Uint8Array>>();
  let waiting = addresses;
  while (waiting.length > 0) {
    const { answerTimeoutMs = PEER_ANSWER_TIMEOUT_MS } = source;
    const bytes = await tryPeers(waiting, answers, { tls, digest, maxBytes, reserve, answerTimeoutMs, limit });
    if (bytes !== undefined) {
      return { bytes, detail: undefined };
    }
    waiting = addresses.filter((address) => answers.get(address) === 'busy');
    if (limit.aborted || (waiting.length > 0 && !(await pause(PEER_RETRY_MS, limit)))) {
      break;
    }
  }
  return { bytes: undefined, detail: detailOf([...answers.values()], mayUseCopies) };
}

/**
 * Some replicas, then controllers, then the other replicas: a controller is asked after one timeout, however many replicas are
 * gone. Shuffled, because many replicas may need the same module at once.
 */
function askedPeers(source: PeerSource, mayUseCopies: boolean): readonly string[] {
  const addresses = source.addresses();
  const replicas = shuffled(addresses.replicas);
  const controllers = mayUseCopies ? shuffled(addresses.controllers) : [];
  const inOrder = [...replicas.slice(0, PEERS_AT_ONCE), ...controllers, ...replicas.slice(PEERS_AT_ONCE)];
  return inOrder.slice(0, MAX_PEERS_ASKED);
}

interface PeerRequest {
  readonly tls: RequestOptions;
  readonly digest: Digest;
  readonly maxBytes: number;
  readonly reserve: ReserveMemory | undefined;
  readonly answerTimeoutMs: number;
  readonly limit: AbortSignal;
}

/** Tries all addresses, {@link PEERS_AT_ONCE} at a time, until one sends the module. */
async function tryPeers(
  addresses: readonly string[],
  answers: Map<string, Exclude<PeerAnswer, Uint8Array>>,
  request: PeerRequest,
): Promise<Uint8Array | undefined> {
  const queue = [...addresses];
  const found = new AbortController();
  const sending = new Mutex();
  let bytes: Uint8Array | undefined;
  const ask = async (): Promise<void> => {
    for (let address = queue.shift(); address !== undefined && bytes === undefined; address = queue.shift()) {
      const limit = AbortSignal.any([request.limit, found.signal]);
      const answer = await tryPeer(address, sending, { ...request, limit });
      if (answer instanceof Uint8Array) {
        bytes ??= answer;
        found.abort();
      } else {
        answers.set(address, answer);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(PEERS_AT_ONCE, queue.length) }, ask));
  return bytes;
}

/** Only one peer at a time sends its module. */
class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work);
    this.#last = mine.catch(() => undefined);
    return mine;
  }
}

async function tryPeer(address: string, sending: Mutex, request: PeerRequest): Promise<PeerAnswer> {
  const { tls, digest, answerTimeoutMs, limit } = request;
  const url = urlOf(address, digest);
  if (limit.aborted || url === undefined) {
    return 'unreachable';
  }
  // AbortSignal.timeout would end the body as well, which may take longer.
  const late = new AbortController();
  const patience = setTimeout(() => late.abort(), answerTimeoutMs);
  try {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const signal = AbortSignal.any([limit, late.signal]);
    httpsRequest(url, { ...tls, agent: false, signal, headers: { 'user-agent': 'portcullis' } })
      .once('response', resolve)
      .on('error', reject)
      .end();
    const response = await promise;
    clearTimeout(patience);
    if (response.statusCode !== 200) {
      response.destroy();
      return response.statusCode === 404 ? 'absent' : response.statusCode === 503 ? 'busy' : 'unusable';
    }
    return await sending.run(() => receive(response, request));
  } catch {
    return 'unreachable';
  } finally {
    clearTimeout(patience);
  }
}

/** Undefined for a text that is not `host:port`. */
function urlOf(address: string, digest: Digest): URL | undefined {
  const url = URL.parse(`https://${address}`);
  const isAddress = url !== null && url.href === `${url.origin}/`;
  return isAddress ? new URL(`/modules/${digest}`, url) : undefined;
}

/** The body, if it has the digest. Throws when the connection fails. */
async function receive(
  response: IncomingMessage,
  { digest, maxBytes, reserve, limit }: PeerRequest,
): Promise<PeerAnswer> {
  await reserve?.(Math.min(announcedLength(response) ?? maxBytes, maxBytes), limit);
  const chunks: Uint8Array[] = [];
  let received = 0;
  response.setTimeout(PEER_IDLE_TIMEOUT_MS, () => response.destroy());
  for await (const chunk of response as AsyncIterable<Buffer>) {
    received += chunk.length;
    if (received > maxBytes) {
      return 'unusable';
    }
    chunks.push(chunk);
  }
  const bytes = Buffer.concat(chunks);
  return digestOf(bytes) === digest ? bytes : 'unusable';
}

const WORDS: Readonly<Record<Exclude<PeerAnswer, Uint8Array>, string>> = {
  absent: 'without the module',
  busy: 'too busy',
  unusable: 'with an answer that cannot be used',
  unreachable: 'out of reach',
};

/** Counts only: readers of a policy's status need not know the addresses of replicas. */
function detailOf(answers: readonly Exclude<PeerAnswer, Uint8Array>[], mayUseCopies: boolean): string {
  const counts = (Object.keys(WORDS) as (keyof typeof WORDS)[])
    .map((answer) => [answers.filter((one) => one === answer).length, WORDS[answer]] as const)
    .filter(([count]) => count > 0)
    .map(([count, words]) => `${count} ${words}`);
  return `other replicas${mayUseCopies ? ' and controllers' : ''} were tried first: ${counts.join(', ')}`;
}

function shuffled(items: readonly string[]): string[] {
  return items
    .map((item) => [Math.random(), item] as const)
    .toSorted(([a], [b]) => a - b)
    .map(([, item]) => item);
}

/** False when the signal ended it. */
async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const end = (): void => resolve(undefined);
  const timer = setTimeout(end, ms);
  signal.addEventListener('abort', end, { once: true });
  await promise;
  clearTimeout(timer);
  signal.removeEventListener('abort', end);
  return !signal.aborted;
}
