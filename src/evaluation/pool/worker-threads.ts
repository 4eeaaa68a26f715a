// The worker threads of a pool, and the policies and watched objects that all of them have.
import type { CapabilityConnection } from '../capabilities/capability-connection.ts';
import type { TableChange, WorkerStart } from '../evaluation-protocol.ts';
import { type WorkerListener, WorkerThread } from './worker-thread.ts';
import type { PublishedTable } from './published-table.ts';
import { shareOfOwner } from './slow-lane.ts';
import { ValidationTimes } from '../validation-times.ts';
import { type WatchedChange, WatchedObjects } from '../watched-objects.ts';

/** How long a spare is kept after the last worker that a policy held. Milliseconds. */
const SPARE_MS = 10 * 60_000;

/** Options of {@link WorkerThreads}. */
export interface WorkerThreadsOptions {
  /** Number of threads. */
  readonly size: number;
  readonly start: Omit<WorkerStart, 'activity' | 'capabilities' | 'validationTimes'>;
  /** Makes a connection to the host capabilities for one worker. */
  readonly connectCapabilities: () => CapabilityConnection;
}

/** Starts, updates and replaces workers, so that all have the same table. */
export class WorkerThreads {
  readonly #options: WorkerThreadsOptions;
  readonly #table: PublishedTable;
  readonly #listener: WorkerListener;
  readonly #workers: WorkerThread[] = [];
  /**
   * Takes the place of a worker that ends: a thread takes 0.1 s to start, and seconds on a busy machine. Until then it has no
   * table, so that its memory does not grow with policies. A server has one while there are policies of namespaces, whose
   * authors it need not trust, and after a policy held a worker.
   */
  #spare: WorkerThread | undefined;
  #spareEnd: NodeJS.Timeout | undefined;
  #hasTenants = false;
  /** As published to workers. */
  readonly #watched = new WatchedObjects();
  readonly #validationTimes = new ValidationTimes();
  /** Number of the last change of the table. */
  #version = 0;
  /** Resolvers of start(), by worker. */
  readonly #starting = new Map<WorkerThread, () => void>();
  readonly #awaitingVersion: { readonly version: number; readonly resolve: () => void }[] = [];
  #stopped = false;

  /** @param table what new workers start with */
  constructor(options: WorkerThreadsOptions, table: PublishedTable, listener: WorkerListener) {
    this.#options = options;
    this.#table = table;
    this.#listener = listener;
  }

  /** The current workers, started or not. */
  get workers(): readonly WorkerThread[] {
    return this.#workers;
  }

  /** Starts the workers; resolves when each is ready, or when they are ended. */
  async start(): Promise<void> {
    await Promise.all(
      Array.from({ length: this.#options.size }, (_, index) => {
        const { promise, resolve } = Promise.withResolvers<void>();
        const worker = this.#spawn();
        this.#place(worker, index);
        this.#starting.set(worker, resolve);
        return promise;
      }),
    );
  }

  /** Notes that a worker has started. */
  started(worker: WorkerThread): void {
    this.#starting.get(worker)?.();
    this.#starting.delete(worker);
  }

  /** Sends a change of the table to every worker; resolves when all have applied it. */
  publish(change: TableChange, numbers: readonly number[]): Promise<void> {
    this.#version += 1;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#awaitingVersion.push({ version: this.#version, resolve });
    for (const worker of this.#workers) {
      worker.send({ type: 'table', version: this.#version, change, numbers });
    }
    if (!this.#hasTenants && change.upserts.some(({ match }) => match?.namespace !== undefined)) {
      this.#hasTenants = true;
      this.#spare ??= this.#spawn();
    }
    return promise;
  }

  /** Notes that a worker has applied a change of the table. */
  applied(worker: WorkerThread, version: number): void {
    worker.version = version;
    const reached = Math.min(...this.#workers.map((one) => one.version));
    while (this.#awaitingVersion[0] !== undefined && this.#awaitingVersion[0].version <= reached) {
      this.#awaitingVersion.shift()?.resolve();
    }
  }

  /** Sends changes of watched objects to every worker. */
  publishWatched(change: WatchedChange): void {
    this.#watched.apply(change);
    for (const worker of this.#workers) {
      worker.send({ type: 'watched', change });
    }
  }

  /**
   * Puts the spare, or a new worker, in the place of one that ends.
   * @param isHeld whether a policy held it: the next one finds a spare
   */
  replace(worker: WorkerThread, isHeld: boolean): void {
    const index = this.#workers.indexOf(worker);
    if (index === -1 || this.#stopped) {
      return;
    }
    const fresh = this.#spare ?? this.#spawn();
    this.#spare = undefined;
    this.#place(fresh, index);
    fresh.send({ type: 'table', version: this.#version, ...this.#table.whole() });
    for (const change of this.#watched.changes()) {
      fresh.send({ type: 'watched', change });
    }
    const started = this.#starting.get(worker);
    if (started !== undefined) {
      this.#starting.set(fresh, started);
    }
    if (isHeld || this.#hasTenants) {
      this.#spare = this.#spawn();
    }
    if (isHeld && !this.#hasTenants) {
      clearTimeout(this.#spareEnd);
      this.#spareEnd = setTimeout(() => this.#hasTenants || this.endSpare(), SPARE_MS);
      this.#spareEnd.unref();
    }
  }

  /** Whether the worker was the spare, which then is gone. */
  lost(worker: WorkerThread): boolean {
    const isSpare = worker === this.#spare;
    this.#spare = isSpare ? undefined : this.#spare;
    return isSpare;
  }

  /** Ends the spare, because it is not needed, or its start options are outdated: the next replacement starts another one. */
  endSpare(): void {
    this.#spare?.end();
    this.#spare = undefined;
  }

  /** Ends all workers and every wait for them. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#spareEnd);
    await Promise.all([...this.#workers, this.#spare].map(async (worker) => await worker?.terminate()));
    for (const resolve of [...this.#starting.values(), ...this.#awaitingVersion.map((one) => one.resolve)]) {
      resolve();
    }
  }

  /** The last workers are those for the reviews of slow namespaces. A single worker is for all. */
  #place(worker: WorkerThread, index: number): void {
    const { size } = this.#options;
    this.#workers[index] = worker;
    if (size > 1 && index >= size - shareOfOwner(size)) {
      worker.moveToBackground();
    }
  }

  #spawn(): WorkerThread {
    const start = { ...this.#options.start, validationTimes: this.#validationTimes.buffer };
    return new WorkerThread(start, this.#options.connectCapabilities(), this.#listener);
  }
}
