// The thread's side of JobThread, and what the two sides send each other: plain data on one port, and one shared cell.
import { type MessagePort, parentPort, receiveMessageOnPort } from 'node:worker_threads';
import { nativeThreadId, ownCpuMs } from './processor-time.ts';

/** To the thread. */
export type ToJobThread<Job, Reply> = { readonly job: Job } | { readonly reply: Reply };

/** From the thread. */
export type FromJobThread<Answer, Question> =
  | JobThreadLoaded
  | { readonly question: Question }
  | { readonly answer: Answer };

/** The first message of a thread. */
export interface JobThreadLoaded {
  readonly cell: Int32Array<SharedArrayBuffer>;
  readonly nativeThreadId: number | undefined;
}

/** What the shared cell holds. */
export const CELL = {
  /** Replies that the thread got. It sleeps on this number while it waits for one. */
  replies: 0,
  /** Jobs that the thread has answered, also while the main thread has not read the answers yet. */
  answered: 1,
  /** Processor time of the thread when it had answered the last one. Milliseconds. */
  spentMs: 2,
} as const;

/**
 * Answers the jobs of a JobThread, in its module. Jobs that come during another one wait here.
 * @param answer `ask` sleeps until the main thread has replied
 */
export function answerJobs(answer: (job: never, ask: (question: unknown) => never) => unknown): void {
  const port = parentPort as MessagePort;
  const cell = new Int32Array(new SharedArrayBuffer(Object.keys(CELL).length * Int32Array.BYTES_PER_ELEMENT));
  const send = (message: FromJobThread<unknown, unknown>): void => port.postMessage(message);
  const waiting: never[] = [];
  const ask = (question: unknown): never => {
    let seen = Atomics.load(cell, CELL.replies);
    send({ question });
    for (;;) {
      const message = receiveMessageOnPort(port)?.message as ToJobThread<never, never> | undefined;
      if (message === undefined) {
        Atomics.wait(cell, CELL.replies, seen);
        seen = Atomics.load(cell, CELL.replies);
      } else if ('reply' in message) {
        return message.reply;
      } else {
        waiting.push(message.job);
      }
    }
  };
  port.on('message', (message: { readonly job: never }) => {
    waiting.push(message.job);
    while (waiting.length > 0) {
      send({ answer: answer(waiting.shift() as never, ask) });
      Atomics.store(cell, CELL.spentMs, ownCpuMs());
      Atomics.add(cell, CELL.answered, 1);
    }
  });
  Atomics.store(cell, CELL.spentMs, ownCpuMs());
  send({ cell, nativeThreadId: nativeThreadId() });
}
