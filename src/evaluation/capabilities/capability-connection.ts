// How a thread that evaluates, and so cannot wait for promises, asks one that can: it sends the question, sleeps on a
// cell of shared memory, and takes the answer from the port when it is woken.
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { type ContextAwareResource, DEFAULT_CAPABILITY_TIMEOUT_MS, REVISION_CAPABILITY } from '../../engine/index.ts';

/** One thread's end of a connection; the port is transferred to it. */
export interface CapabilityConnection {
  readonly port: MessagePort;
  /** Counts the answers that were sent. */
  readonly answered: SharedArrayBuffer;
}

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
  readonly #timeoutMs: number;
  #seq = 0;

  constructor(connection: CapabilityConnection, timeoutMs: number = DEFAULT_CAPABILITY_TIMEOUT_MS) {
    this.#connection = connection;
    this.#answered = new Int32Array(connection.answered);
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

  /** See HostPort. */
  revisionOf(resources: readonly ContextAwareResource[]): string | undefined {
    const payload = { resources: resources.map(({ apiVersion, kind }) => ({ api_version: apiVersion, kind })) };
    try {
      const revision = JSON.parse(this.request(REVISION_CAPABILITY, JSON.stringify(payload))) as unknown;
      return typeof revision === 'string' ? revision : undefined;
    } catch {
      // Whoever asks for the objects next is told why there are none.
      return undefined;
    }
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
