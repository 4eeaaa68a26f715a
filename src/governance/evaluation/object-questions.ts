// How a thread that evaluates asks the main thread for objects: it has no credentials and no caches. It sends a question, sleeps on a
// cell of shared memory, and reads the answer when it wakes up. The main thread answers at once, from its caches.
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import type { ResourceType } from '../../resources/index.ts';
import { parseJson } from '../../values/index.ts';
import { ObjectReadError } from '../configuration/index.ts';

/** What a thread asks for. */
export type ObjectQuestion =
  | { readonly of: 'kind'; readonly apiVersion: string; readonly kind: string }
  | { readonly of: 'object'; readonly type: ResourceType; readonly namespace: string; readonly name: string }
  /** All objects of a namespace, their names, or the certificates in Secrets: a page of them, which begins at `from`. */
  | {
      readonly of: 'objects' | 'names' | 'certificates';
      readonly type: ResourceType;
      readonly namespace: string;
      readonly selector: string;
      readonly from: number;
    }
  | { readonly of: 'namespaces' };

/** The answer to a question. */
export type QuestionAnswer =
  /** JSON, which takes the main thread less time than a copy. `next` is where the next page begins. */
  | { readonly state: 'found'; readonly text: string; readonly next?: number }
  /** It has not been read from the cluster yet. */
  | { readonly state: 'unread' }
  | { readonly state: 'unreadable'; readonly reason: string };

/** A question as JSON, and its answer. */
export type ForeseenAnswer = readonly [question: string, answer: QuestionAnswer];

/** The thread's end of a conversation. */
export interface QuestionPort {
  /** Answers to questions that it need not ask. */
  readonly foreseen: readonly ForeseenAnswer[];
  readonly port: MessagePort;
  /** Number of answers that were sent. */
  readonly answered: SharedArrayBuffer;
}

/** Thrown for what was not read yet. */
export class NotYetRead extends Error {
  override readonly name = 'NotYetRead';
}

/** Answers the questions of one job until it is closed. */
export class Conversation implements Disposable {
  readonly end: QuestionPort;
  readonly #port: MessagePort;

  constructor(answer: (question: ObjectQuestion) => QuestionAnswer, foreseen: readonly ForeseenAnswer[]) {
    const { port1, port2 } = new MessageChannel();
    const answered = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
    const count = new Int32Array(answered);
    this.#port = port1;
    this.end = { foreseen, port: port2, answered };
    port1.on('message', (question: ObjectQuestion) => {
      port1.postMessage(answer(question));
      Atomics.add(count, 0, 1);
      Atomics.notify(count, 0);
    });
  }

  [Symbol.dispose](): void {
    this.#port.close();
  }
}

/** Asks, and blocks its thread until the answer is there. */
export class Questions {
  readonly #port: MessagePort;
  readonly #answered: Int32Array;
  readonly #foreseen: ReadonlyMap<string, QuestionAnswer>;

  constructor({ foreseen, port, answered }: QuestionPort) {
    this.#foreseen = new Map(foreseen);
    this.#port = port;
    this.#answered = new Int32Array(answered);
  }

  /** @throws NotYetRead; ObjectReadError */
  ask(question: ObjectQuestion): { readonly value: unknown; readonly next: number | undefined } {
    const foreseen = this.#foreseen.get(JSON.stringify(question));
    if (foreseen !== undefined) {
      return answerOf(foreseen);
    }
    let seen = Atomics.load(this.#answered, 0);
    this.#port.postMessage(question);
    for (;;) {
      const received = receiveMessageOnPort(this.#port);
      if (received !== undefined) {
        return answerOf(received.message as QuestionAnswer);
      }
      Atomics.wait(this.#answered, 0, seen);
      seen = Atomics.load(this.#answered, 0);
    }
  }
}

function answerOf(answer: QuestionAnswer): { readonly value: unknown; readonly next: number | undefined } {
  switch (answer.state) {
    case 'found':
      return { value: parseJson(answer.text), next: answer.next };
    case 'unread':
      throw new NotYetRead();
    case 'unreadable':
      throw new ObjectReadError('unreadable', answer.reason);
    default:
      return answer satisfies never;
  }
}
