import type { WorkerThread } from './worker-thread.ts';

/** What a worker has spent on one review, or on one policy of it. */
interface Measure {
  readonly key: string;
  /** Processor time of the thread when the measure began; undefined until it is known. Milliseconds. */
  begin: number | undefined;
  isAsked: boolean;
  cpuMs: number;
  waitedMs: number;
}

/**
 * How long policies hold workers: processor time, and time that they wait for the host. Not the time in which the machine runs
 * other threads: on a busy machine every review takes long, and none of them holds a worker.
 */
export class HeldTimes {
  readonly #measures = new WeakMap<WorkerThread, Measure>();
  #updatedAt = 0;

  /**
   * Measures the workers that are busy for longer than `afterMs`; their time before that does not count.
   * @param heldBy what is measured: another value begins another measure
   */
  update(
    workers: readonly WorkerThread[],
    heldBy: (worker: WorkerThread) => string | undefined,
    afterMs: number,
  ): void {
    const now = performance.now();
    const sinceLast = now - this.#updatedAt;
    this.#updatedAt = now;
    for (const worker of workers) {
      const key = worker.jobs.length > 0 && now - worker.busySince > afterMs ? heldBy(worker) : undefined;
      const known = this.#measures.get(worker);
      if (key === undefined) {
        this.#measures.delete(worker);
      } else if (known?.key === key) {
        known.waitedMs += worker.isWaiting ? sinceLast : 0;
        void this.#measure(worker, known);
      } else {
        const begun: Measure = { key, begin: undefined, isAsked: false, cpuMs: 0, waitedMs: 0 };
        this.#measures.set(worker, begun);
        void this.#measure(worker, begun);
      }
    }
  }

  /** Milliseconds. */
  of(worker: WorkerThread): number {
    const { cpuMs = 0, waitedMs = 0 } = this.#measures.get(worker) ?? {};
    return cpuMs + waitedMs;
  }

  async #measure(worker: WorkerThread, measure: Measure): Promise<void> {
    if (measure.isAsked) {
      return;
    }
    measure.isAsked = true;
    const used = await worker.cpuMs();
    measure.isAsked = false;
    if (used !== undefined) {
      measure.begin ??= used;
      measure.cpuMs = used - measure.begin;
    }
  }
}
