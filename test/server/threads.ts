// The threads of a server in this process, as they come: so that tests can end a real one in the middle of its work.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';

/** Share of a measured time that a thread must have been busy for it to count as stuck. */
const BUSY = 0.9;
/** How long threads are measured. Milliseconds. */
const MEASURED_MS = 150;

/** Sees every thread that is started in this process from now on. */
export class Threads implements Disposable {
  /** Those that have not ended, in the order of their start. */
  readonly running: Worker[] = [];
  /** Called with each thread that starts. */
  onStart: ((thread: Worker) => void) | undefined;
  readonly #listener = (thread: Worker): void => {
    this.running.push(thread);
    thread.once('exit', () => this.running.splice(this.running.indexOf(thread), 1));
    this.onStart?.(thread);
  };

  constructor() {
    process.on('worker', this.#listener);
  }

  /** Threads of a name. */
  named(name: 'quick loader' | 'patient loader' | 'host capabilities' | 'evaluation'): Worker[] {
    return this.running.filter(({ threadName }) => threadName === name);
  }

  /** The threads that evaluate reviews. */
  evaluating(): Worker[] {
    return this.named('evaluation');
  }

  /** The evaluating thread that does not come to rest. */
  async stuck(): Promise<Worker> {
    for (let tries = 0; tries < 100; tries += 1) {
      const before = this.evaluating().map((thread) => [thread, thread.performance.eventLoopUtilization()] as const);
      await sleep(MEASURED_MS);
      for (const [thread, then] of before) {
        // It is given as not busy at all while nothing was counted yet.
        if (thread.performance.eventLoopUtilization(then).utilization > BUSY) {
          return thread;
        }
      }
    }
    throw new assert.AssertionError({ message: 'no thread is stuck' });
  }

  [Symbol.dispose](): void {
    process.off('worker', this.#listener);
  }
}
