// A thread for tests of JobThread: does what its jobs say.
import { threadId } from 'node:worker_threads';
import { answerJobs } from '../answer-jobs.ts';

interface Job {
  readonly kind: string;
  readonly value: unknown;
}

answerJobs(({ kind, value }: Job, ask: (question: unknown) => unknown) => {
  switch (kind) {
    case 'loop':
      for (;;) {
        // Endless.
      }
    case 'exit':
      process.exit(1);
    case 'fill': {
      const kept: unknown[] = [];
      for (;;) {
        kept.push(Array.from({ length: 10_000 }, () => ({})));
      }
    }
    case 'ask':
      return ask(value);
    case 'count':
      Atomics.add(value as Int32Array, 0, 1);
      return Atomics.notify(value as Int32Array, 0);
    case 'thread':
      return threadId;
    default:
      return value;
  }
});
