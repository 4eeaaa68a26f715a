// Other processes that may have a module: the replicas of a policy server give each other what one of them has fetched, so
// that a source is asked once, and one that cannot reach it is served all the same.
import { readFile } from 'node:fs/promises';
import { request as httpsRequest } from 'node:https';
import type { RequestOptions } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { digestOf } from './module-cache.ts';
import type { Digest } from './module-reference.ts';

/** Peers that are asked for one module: more replicas than most clusters have, each within a few milliseconds. */
const MAX_PEERS_ASKED = 32;
/** Peers that are asked at the same time; only one of them sends the module. */
const PEERS_AT_ONCE = 4;
/** Time until a peer says whether it has the module, connection included. Milliseconds. */
const PEER_ANSWER_TIMEOUT_MS = 2_000;
/** Time without a single byte of a module that is on its way. Milliseconds. */
const PEER_IDLE_TIMEOUT_MS = 3_000;
/** Time for everything: 64 MiB at 5 MB/s, in a network that replicas share. Milliseconds. */
const PEER_TIMEOUT_MS = 15_000;
/** Peers that are busy are asked again after this time, while there is any left. Milliseconds. */
const PEER_RETRY_MS = 250;

/** How to ask other replicas. */
export interface PeerSource {
  /** PEM files: the certificate that peers know this process by, its key, and the CA that theirs come from. Read when used. */
  readonly certFile: string;
  readonly keyFile: string;
  readonly caFile: string;
  /** The name that the certificates of peers have, whatever address they are called by. */
  readonly serverName: string;
  /** Default: {@link PEER_ANSWER_TIMEOUT_MS}. */
  readonly answerTimeoutMs?: number;
  /** `host:port` of those that there are now. */
  addresses(): readonly string[];
}

/** What one peer answered. */
type PeerAnswer = Uint8Array | 'absent' | 'busy' | 'unusable' | 'unreachable';

/** What came of asking peers. */
export interface PeerOutcome {
  /** Has the digest. */
  readonly bytes: Uint8Array | undefined;
  /** What became of those that were asked, without their addresses; undefined when there were none. */
  readonly detail: string | undefined;
}

/** Asks peers for a module by its digest, some at once, until one sends it. Never throws. */
export async function fetchFromPeers(
  source: PeerSource,
  digest: Digest,
  maxBytes: number,
  signal: AbortSignal,
): Promise<PeerOutcome> {
  // Not always in the same order: many replicas may ask for the same module.
  const addresses = shuffled(source.addresses()).slice(0, MAX_PEERS_ASKED);
  if (addresses.length === 0) {
    return { bytes: undefined, detail: undefined };
  }
  let tls: Pick<RequestOptions, 'cert' | 'key' | 'ca' | 'servername'>;
  try {
    const [cert, key, ca] = await Promise.all([source.certFile, source.keyFile, source.caFile].map((f) => readFile(f)));
    tls = { cert, key, ca, servername: source.serverName };
  } catch {
    return { bytes: undefined, detail: 'other replicas could not be asked: the control certificate cannot be read' };
  }
  const limit = AbortSignal.any([signal, AbortSignal.timeout(PEER_TIMEOUT_MS)]);
  const answers = new Map<string, Exclude<PeerAnswer, Uint8Array>>();
  let waiting = addresses;
  while (waiting.length > 0) {
    const { answerTimeoutMs = PEER_ANSWER_TIMEOUT_MS } = source;
    const bytes = await askSome(waiting, answers, { tls, digest, maxBytes, answerTimeoutMs, limit });
    if (bytes !== undefined) {
      return { bytes, detail: undefined };
    }
    waiting = addresses.filter((address) => answers.get(address) === 'busy');
    if (limit.aborted || (waiting.length > 0 && !(await pause(PEER_RETRY_MS, limit)))) {
      break;
    }
  }
  return { bytes: undefined, detail: detailOf([...answers.values()]) };
}

interface Question {
  readonly tls: RequestOptions;
  readonly digest: Digest;
  readonly maxBytes: number;
  readonly answerTimeoutMs: number;
  readonly limit: AbortSignal;
}

/** Asks all, {@link PEERS_AT_ONCE} at a time. The first that begins to send the module is listened to. */
async function askSome(
  addresses: readonly string[],
  answers: Map<string, Exclude<PeerAnswer, Uint8Array>>,
  question: Question,
): Promise<Uint8Array | undefined> {
  const queue = [...addresses];
  const found = new AbortController();
  const turn = new Turn();
  let bytes: Uint8Array | undefined;
  const ask = async (): Promise<void> => {
    for (let address = queue.shift(); address !== undefined && bytes === undefined; address = queue.shift()) {
      const limit = AbortSignal.any([question.limit, found.signal]);
      const answer = await askOne(address, turn, { ...question, limit });
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

/** Lets one at a time send its module. */
class Turn {
  #last: Promise<unknown> = Promise.resolve();

  take<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work);
    this.#last = mine.catch(() => undefined);
    return mine;
  }
}

async function askOne(address: string, turn: Turn, question: Question): Promise<PeerAnswer> {
  const { tls, digest, maxBytes, answerTimeoutMs, limit } = question;
  const url = urlOf(address, digest);
  if (limit.aborted || url === undefined) {
    return 'unreachable';
  }
  // A timer, not a signal's: what answers in time may send for longer.
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
    return await turn.take(() => receive(response, digest, maxBytes));
  } catch {
    return 'unreachable';
  } finally {
    clearTimeout(patience);
  }
}

/** Undefined for what is more or less than an address. */
function urlOf(address: string, digest: Digest): URL | undefined {
  const url = URL.parse(`https://${address}`);
  const isAddress = url !== null && url.href === `${url.origin}/`;
  return isAddress ? new URL(`/modules/${digest}`, url) : undefined;
}

/** The module, if it is the one. What throws is the connection. */
async function receive(response: IncomingMessage, digest: Digest, maxBytes: number): Promise<PeerAnswer> {
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

/** Counts only: addresses of replicas are nothing for those who read a policy's status. */
function detailOf(answers: readonly Exclude<PeerAnswer, Uint8Array>[]): string {
  const counts = (Object.keys(WORDS) as (keyof typeof WORDS)[])
    .map((answer) => [answers.filter((one) => one === answer).length, WORDS[answer]] as const)
    .filter(([count]) => count > 0)
    .map(([count, words]) => `${count} ${words}`);
  return `other replicas were asked first: ${counts.join(', ')}`;
}

function shuffled(items: readonly string[]): string[] {
  return items
    .map((item) => [Math.random(), item] as const)
    .toSorted(([a], [b]) => a - b)
    .map(([, item]) => item);
}

/** False: ended by the signal. */
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
