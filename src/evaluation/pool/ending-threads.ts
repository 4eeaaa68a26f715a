import type { WorkerThread } from './worker-thread.ts';

/** How long a thread may take to end before it counts as stuck: usually some milliseconds. */
const STUCK_MS = 1_000;

interface Ending {
  /** The owner whose policy ran, if known. */
  readonly owner: string | undefined;
  readonly since: number;
}

/**
 * Threads that were ended and still run: nothing interrupts native code. Until they exit their owners hold them, as they hold workers.
 */
export class EndingThreads {
  readonly #threads = new Map<WorkerThread, Ending>();

  add(thread: WorkerThread, owner: string | undefined): void {
    this.#threads.set(thread, { owner, since: performance.now() });
  }

  /** Notes that a thread has exited. */
  delete(thread: WorkerThread): void {
    this.#threads.delete(thread);
  }

  get size(): number {
    return this.#threads.size;
  }

  /** Number of threads that an owner holds. */
  heldBy(owner: string | undefined): number {
    return [...this.#threads.values()].filter((ending) => ending.owner === owner).length;
  }

  /** Owners of threads that do not end. */
  stuckOwners(): readonly string[] {
    const before = performance.now() - STUCK_MS;
    return [...this.#threads.values()].flatMap(({ owner, since }) =>
      owner === undefined || since > before ? [] : owner,
    );
  }
}
