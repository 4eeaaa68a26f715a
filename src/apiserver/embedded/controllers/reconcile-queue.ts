import { ApiError } from '../../../cluster/index.ts';
import { TimeSlice } from '../../../threads/index.ts';

/** Delay before the first retry. It doubles with each failure, up to {@link MAX_RETRY_MS}. Milliseconds. */
const FIRST_RETRY_MS = 10;
const MAX_RETRY_MS = 30_000;

/** Called for each failure. The key is retried. */
export type OnReconcileError = (error: unknown) => void;

/**
 * A work queue. It reconciles one key at a time, and retries with backoff after a failure.
 */
export class ReconcileQueue {
  readonly #reconcile: (key: string) => Promise<void>;
  readonly #onError: OnReconcileError;
  readonly #pending = new Set<string>();
  readonly #failures = new Map<string, number>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  #running: Promise<void> | undefined;
  #isClosed = false;

  constructor(reconcile: (key: string) => Promise<void>, onError: OnReconcileError) {
    this.#reconcile = reconcile;
    this.#onError = onError;
  }

  add(key: string): void {
    if (this.#isClosed) {
      return;
    }
    this.#pending.add(key);
    // Reconciles after the write that changed the object has returned.
    this.#running ??= new Promise<void>((resolve) => {
      setImmediate(() => resolve());
    }).then(() => this.#run());
  }

  /** Whether the queue is empty, except for keys that wait for a retry. */
  get isIdle(): boolean {
    return this.#running === undefined;
  }

  /** Resolves when all keys in the queue are reconciled, except those that wait for a retry. */
  async settled(): Promise<void> {
    await this.#running;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#pending.clear();
    for (const timer of this.#timers.values()) {
      clearTimeout(timer);
    }
    this.#timers.clear();
    await this.#running;
  }

  async #run(): Promise<void> {
    const slice = new TimeSlice();
    for (const key of this.#pending) {
      this.#pending.delete(key);
      try {
        await this.#reconcile(key);
        this.#failures.delete(key);
      } catch (error) {
        // Conflicts, and errors of a closed cluster, are not reported.
        if (!isConflict(error) && !this.#isClosed) {
          this.#onError(error);
        }
        this.#retry(key);
      }
      await slice.yield();
    }
    this.#running = undefined;
  }

  #retry(key: string): void {
    if (this.#isClosed) {
      return;
    }
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    clearTimeout(this.#timers.get(key));
    const timer = setTimeout(
      () => {
        this.#timers.delete(key);
        this.add(key);
      },
      Math.min(FIRST_RETRY_MS * 2 ** Math.min(failures, 20), MAX_RETRY_MS),
    );
    timer.unref();
    this.#timers.set(key, timer);
  }
}

function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.reason === 'Conflict';
}
