// Blocking requests to a thread that can wait for promises, from one that cannot because it evaluates. The latter sends the
// request, sleeps on a cell of shared memory, and reads the answer from the port when it wakes up.
import type { ContextAwareResource } from '../../resources/index.ts';
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { DEFAULT_CAPABILITY_TIMEOUT_MS } from '../../engine/definition/index.ts';
import type { HostCaller } from '../../engine/capabilities/index.ts';
import { KindRevisions } from '../cluster-objects/kind-revisions.ts';
import { errorText, parseJson } from '../../values/index.ts';

/** One thread's end of a connection; the port is transferred to it. */
export interface CapabilityConnection {
  readonly port: MessagePort;
  /** Number of answers that were sent. */
  readonly answered: SharedArrayBuffer;
  /** Memory of {@link KindRevisions}. */
  readonly revisions: SharedArrayBuffer;
}

/**
 * Requests a kind's counter of {@link KindRevisions}. The payload is JSON of a ContextAwareResource, the answer that of a number
 * or null. Host capabilities have a slash in their names, so that no guest can send it.
 */
export const COUNTER_REQUEST = 'revision-counter';

/** Time that a guest has left for its verdict when a call that may take the whole evaluation fails. Milliseconds. */
const VERDICT_MS = 100;
/** An error must arrive before this thread times out, because its message is more precise. Milliseconds. */
export const ANSWER_MARGIN_MS = 200;

/** How long a counter's number is used before the capability thread confirms that its watch works. Milliseconds. */
const COUNTER_MS = 10_000;

/** A request on a connection. */
export interface CapabilityRequest {
  readonly seq: number;
  /** Path of the capability, such as `net/v1/dns_lookup_host`. */
  readonly capability: string;
  /** JSON text. */
  readonly payload: string;
  readonly caller?: HostCaller | undefined;
}

/** Answers a request with JSON text. Rejects with an Error whose message the guest gets. */
export type AnswerRequest = (capability: string, payload: string, caller?: HostCaller) => Promise<string>;

/** The answer to a request: JSON text, or an error message. */
type CapabilityAnswer =
  | { readonly seq: number; readonly payload: string }
  | { readonly seq: number; readonly error: string };

/** Sends requests, and blocks its thread until the answer is there. */
export class CapabilityClient {
  readonly #connection: CapabilityConnection;
  readonly #answered: Int32Array;
  readonly #revisions: KindRevisions;
  readonly #timeoutMs: number;
  #seq = 0;
  /** Counters of kinds, valid until {@link #countersUntil} while the epoch stays. */
  readonly #counters = new Map<string, number>();
  #countersUntil = 0;
  #epoch = 0;
  readonly #onWait: (isWaiting: boolean) => void;

  /** @param onWait called with whether this thread waits for an answer */
  constructor(
    connection: CapabilityConnection,
    timeoutMs: number = DEFAULT_CAPABILITY_TIMEOUT_MS,
    onWait: (isWaiting: boolean) => void = () => undefined,
  ) {
    this.#connection = connection;
    this.#onWait = onWait;
    this.#answered = new Int32Array(connection.answered);
    this.#revisions = new KindRevisions(connection.revisions);
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Calls a capability and waits for its answer.
   * @throws Error with the message of the answer, or when there is none in time.
   */
  request(capability: string, payload: string, caller?: HostCaller): string {
    this.#seq += 1;
    const timeoutMs = this.#timeoutOf(capability, caller);
    const given = caller === undefined ? undefined : { ...caller, leftMs: timeoutMs - ANSWER_MARGIN_MS };
    const request: CapabilityRequest = { seq: this.#seq, capability, payload, caller: given };
    const deadline = performance.now() + timeoutMs;
    let seen = Atomics.load(this.#answered, 0);
    this.#connection.port.postMessage(request);
    for (;;) {
      const answer = this.#take();
      if (answer !== undefined) {
        if ('error' in answer) {
          throw new Error(answer.error);
        }
        return answer.payload;
      }
      const left = deadline - performance.now();
      if (left <= 0) {
        throw new Error(`host capability ${capability} did not answer within ${Math.max(0, Math.round(timeoutMs))} ms`);
      }
      this.#onWait(true);
      Atomics.wait(this.#answered, 0, seen, left);
      this.#onWait(false);
      seen = Atomics.load(this.#answered, 0);
    }
  }

  /**
   * See HostPort. Requests the counter of each kind once, and then only reads it.
   * @throws Error when the request is not answered in time.
   */
  revisionOf(resources: readonly ContextAwareResource[]): string | undefined {
    const { epoch } = this.#revisions;
    const now = performance.now();
    if (epoch !== this.#epoch || now > this.#countersUntil) {
      this.#counters.clear();
      this.#epoch = epoch;
      this.#countersUntil = now + COUNTER_MS;
    }
    let revision = String(epoch);
    for (const resource of resources) {
      const counter = this.#counterOf(resource);
      if (counter === undefined) {
        return undefined;
      }
      revision += ` ${counter}:${this.#revisions.of(counter)}`;
    }
    return revision;
  }

  /** Registries may take as long as the evaluation: a cold read takes several requests, also to a token service. */
  #timeoutOf(capability: string, caller: HostCaller | undefined): number {
    return caller !== undefined && capability.startsWith('oci/') ? caller.leftMs - VERDICT_MS : this.#timeoutMs;
  }

  /** Undefined: the kind is not cached now. */
  #counterOf({ apiVersion, kind }: ContextAwareResource): number | undefined {
    const payload = JSON.stringify({ apiVersion, kind });
    const known = this.#counters.get(payload);
    if (known !== undefined) {
      return known;
    }
    const counter = parseJson(this.request(COUNTER_REQUEST, payload)) as number | null;
    if (counter === null) {
      return undefined;
    }
    this.#counters.set(payload, counter);
    return counter;
  }

  /** The answer to the last request, if it is there; late answers to earlier ones are dropped. */
  #take(): CapabilityAnswer | undefined {
    for (;;) {
      const received: { message: CapabilityAnswer } | undefined = receiveMessageOnPort(this.#connection.port);
      if (received === undefined || received.message.seq === this.#seq) {
        return received?.message;
      }
    }
  }
}

/** Answers a request, and wakes the thread that sent it. A rejection of `answer` is answered with its message. */
export async function reply(
  { port, answered }: Pick<CapabilityConnection, 'port' | 'answered'>,
  { seq, capability, payload, caller }: CapabilityRequest,
  answer: AnswerRequest,
): Promise<void> {
  const message: CapabilityAnswer = await answer(capability, payload, caller).then(
    (text) => ({ seq, payload: text }),
    (error: unknown) => ({ seq, error: errorText(error) }),
  );
  port.postMessage(message);
  const count = new Int32Array(answered);
  Atomics.add(count, 0, 1);
  Atomics.notify(count, 0);
}

/** A connection whose requests are answered in this thread, without a cluster. */
export function connectCapabilities(answer: AnswerRequest): CapabilityConnection {
  const { port1, port2 } = new MessageChannel();
  const answered = new SharedArrayBuffer(4);
  port1.on('message', (request: CapabilityRequest) => {
    void reply({ port: port1, answered }, request, async (capability, payload, caller) =>
      capability === COUNTER_REQUEST ? 'null' : await answer(capability, payload, caller),
    );
  });
  port1.unref();
  return { port: port2, answered, revisions: new KindRevisions().buffer };
}
