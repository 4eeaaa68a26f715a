// Threads of a server in this process, so that tests can end one during its work.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';

/** Share of the measured time for which a stuck thread is busy, at least. */
const BUSY = 0.9;
/** Duration of a measurement. Milliseconds. */
const MEASURED_MS = 150;

/** Records every thread that this process starts from now on. */
export class Threads implements Disposable {
  /** Running threads, in the order of their start. */
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

  /** Running threads with a name. */
  named(name: 'quick loader' | 'patient loader' | 'host capabilities' | 'evaluation'): Worker[] {
    return this.running.filter(({ threadName }) => threadName === name);
  }

  /** The threads that evaluate reviews. */
  evaluating(): Worker[] {
    return this.named('evaluation');
  }

  /** The evaluating thread that stays busy. */
  async stuck(): Promise<Worker> {
    for (let tries = 0; tries < 100; tries += 1) {
      const before = this.evaluating().map((thread) => [thread, thread.performance.eventLoopUtilization()] as const);
      await sleep(MEASURED_MS);
      for (const [thread, then] of before) {
        // Utilization is zero before anything was measured.
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
