import { ApiError } from '../../../cluster/index.ts';
import { Turn } from '../turn.ts';

/** The first wait after a failure; it doubles up to {@link MAX_RETRY_MS}. */
const FIRST_RETRY_MS = 10;
const MAX_RETRY_MS = 30_000;

/** Told about each failure. It is tried again. */
export type OnReconcileError = (error: unknown) => void;

/**
 * Keys whose objects have to be looked at, each once at a time. A failure is tried again later; nobody waits for that.
 */
export class ReconcileQueue {
  readonly #reconcile: (key: string) => Promise<void>;
  readonly #onError: OnReconcileError;
  readonly #waiting = new Set<string>();
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
    this.#waiting.add(key);
    // Begins after the write that asked for it has answered.
    this.#running ??= new Promise<void>((resolve) => {
      setImmediate(() => resolve());
    }).then(() => this.#run());
  }

  /** Whether nothing is to be done but what has failed and waits. */
  get isIdle(): boolean {
    return this.#running === undefined;
  }

  /** Resolves when what is under way has ended. */
  async settled(): Promise<void> {
    await this.#running;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#waiting.clear();
    for (const timer of this.#timers.values()) {
      clearTimeout(timer);
    }
    this.#timers.clear();
    await this.#running;
  }

  async #run(): Promise<void> {
    const turn = new Turn();
    for (const key of this.#waiting) {
      this.#waiting.delete(key);
      try {
        await this.#reconcile(key);
        this.#failures.delete(key);
      } catch (error) {
        // That somebody else was faster is no failure. Nor is that the cluster has been closed.
        if (!isConflict(error) && !this.#isClosed) {
          this.#onError(error);
        }
        this.#retry(key);
      }
      await turn.share();
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
