// How a thread that evaluates, and so cannot wait for promises, asks one that can: it sends the question, sleeps on a
// cell of shared memory, and takes the answer from the port when it is woken.
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { DEFAULT_CAPABILITY_TIMEOUT_MS } from '../../engine/definition/index.ts';
import type { ContextAwareResource } from '../../engine/index.ts';
import { KindRevisions } from '../cluster-objects/kind-revisions.ts';
import { errorText, parseJson } from '../../values/index.ts';

/** One thread's end of a connection; the port is transferred to it. */
export interface CapabilityConnection {
  readonly port: MessagePort;
  /** Counts the answers that were sent. */
  readonly answered: SharedArrayBuffer;
  /** Memory of {@link KindRevisions}. */
  readonly revisions: SharedArrayBuffer;
}

/**
 * Asks for a kind's counter of {@link KindRevisions}: payload and answer are JSON of a ContextAwareResource, and a number or null.
 * Without a slash, so that no guest can ask it.
 */
export const COUNTER_QUESTION = 'revision-counter';

/** How long a counter is relied on: the thread that counts knows whether it still hears of the cluster. Milliseconds. */
const COUNTER_MS = 10_000;

/** A question on a connection. */
export interface CapabilityQuestion {
  readonly seq: number;
  /** Path of the capability, such as `net/v1/dns_lookup_host`. */
  readonly capability: string;
  /** JSON text. */
  readonly payload: string;
}

/** The answer to a question: JSON text, or what went wrong. */
export type CapabilityAnswer =
  | { readonly seq: number; readonly payload: string }
  | { readonly seq: number; readonly error: string };

/** Asks over a connection, and blocks its thread until the answer is there. */
export class CapabilityClient {
  readonly #connection: CapabilityConnection;
  readonly #answered: Int32Array;
  readonly #revisions: KindRevisions;
  readonly #timeoutMs: number;
  #seq = 0;
  /** Counters of kinds, good until then and while the epoch stays. */
  readonly #counters = new Map<string, number>();
  #countersUntil = 0;
  #epoch = 0;

  constructor(connection: CapabilityConnection, timeoutMs: number = DEFAULT_CAPABILITY_TIMEOUT_MS) {
    this.#connection = connection;
    this.#answered = new Int32Array(connection.answered);
    this.#revisions = new KindRevisions(connection.revisions);
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Asks a capability and waits for its answer.
   * @throws Error with the answer's text when it is an error, or when there is none in time.
   */
  request(capability: string, payload: string): string {
    this.#seq += 1;
    const question: CapabilityQuestion = { seq: this.#seq, capability, payload };
    const deadline = performance.now() + this.#timeoutMs;
    let seen = Atomics.load(this.#answered, 0);
    this.#connection.port.postMessage(question);
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
        throw new Error(`host capability ${capability} did not answer within ${this.#timeoutMs} ms`);
      }
      Atomics.wait(this.#answered, 0, seen, left);
      seen = Atomics.load(this.#answered, 0);
    }
  }

  /**
   * See HostPort. Asks for counters of kinds, and then only reads them.
   * @throws Error when the question is not answered in time.
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

  /** Undefined: the kind is not cached now. */
  #counterOf({ apiVersion, kind }: ContextAwareResource): number | undefined {
    const payload = JSON.stringify({ apiVersion, kind });
    const known = this.#counters.get(payload);
    if (known !== undefined) {
      return known;
    }
    const counter = parseJson(this.request(COUNTER_QUESTION, payload)) as number | null;
    if (counter === null) {
      return undefined;
    }
    this.#counters.set(payload, counter);
    return counter;
  }

  /** The answer to the last question, if it is there; late answers to earlier ones are dropped. */
  #take(): CapabilityAnswer | undefined {
    for (;;) {
      const received: { message: CapabilityAnswer } | undefined = receiveMessageOnPort(this.#connection.port);
      if (received === undefined || received.message.seq === this.#seq) {
        return received?.message;
      }
    }
  }
}

/** Answers a question of a connection, and wakes the thread that asked. `answer` may reject: that is an answer, too. */
export async function reply(
  { port, answered }: Pick<CapabilityConnection, 'port' | 'answered'>,
  { seq, capability, payload }: CapabilityQuestion,
  answer: (capability: string, payload: string) => Promise<string>,
): Promise<void> {
  const message: CapabilityAnswer = await answer(capability, payload).then(
    (text) => ({ seq, payload: text }),
    (error: unknown) => ({ seq, error: errorText(error) }),
  );
  port.postMessage(message);
  const count = new Int32Array(answered);
  Atomics.add(count, 0, 1);
  Atomics.notify(count, 0);
}

/** A connection whose questions are answered in this thread, without a cluster. */
export function connectCapabilities(
  answer: (capability: string, payload: string) => Promise<string>,
): CapabilityConnection {
  const { port1, port2 } = new MessageChannel();
  const answered = new SharedArrayBuffer(4);
  port1.on('message', (question: CapabilityQuestion) => {
    void reply({ port: port1, answered }, question, async (capability, payload) =>
      capability === COUNTER_QUESTION ? 'null' : await answer(capability, payload),
    );
  });
  port1.unref();
  return { port: port2, answered, revisions: new KindRevisions().buffer };
}
