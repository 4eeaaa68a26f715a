import type { ExceptionUse, UseSource } from '../../control/index.ts';

/** Interval of reports, so that a thousand excepted requests a second cost no more than one. Milliseconds. */
const USES_REPORT_MS = 10_000;
/** Delay that collects the first uses. Milliseconds. */
const GATHER_MS = 500;
/** Exceptions that are counted: 3 MB. Beyond it, those whose last use is the oldest begin a new count with their next one. */
export const MAX_COUNTED_EXCEPTIONS = 10_000;

export interface ExceptionUsesOptions {
  /** Default: {@link USES_REPORT_MS}. */
  readonly reportMs?: number;
  /** Milliseconds since 1970. Default: the system's clock. */
  readonly now?: () => number;
}

/** Counts the requests that exceptions let through in this process. */
export class ExceptionUses implements UseSource {
  readonly #reportMs: number;
  readonly #now: () => number;
  /** By `metadata.uid`, in the order of their last uses. */
  readonly #uses = new Map<string, ExceptionUse>();
  readonly #unreported = new Set<string>();
  readonly #listeners = new Set<(uids: readonly string[]) => void>();
  #nextReport = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor({ reportMs = USES_REPORT_MS, now = Date.now }: ExceptionUsesOptions = {}) {
    this.#reportMs = reportMs;
    this.#now = now;
  }

  /** @param uids of the exceptions that one request used */
  record(uids: readonly string[]): void {
    const time = new Date(this.#now()).toISOString();
    for (const uid of uids) {
      const { since = time, count = 0 } = this.#uses.get(uid) ?? {};
      // Moves to the end.
      this.#uses.delete(uid);
      this.#uses.set(uid, { uid, since, count: count + 1, last: time });
      this.#unreported.add(uid);
    }
    this.#makeRoom();
    this.#timer ??= setTimeout(() => this.flush(), Math.max(GATHER_MS, this.#nextReport - performance.now())).unref();
  }

  uses(): Iterable<ExceptionUse> {
    return this.#uses.values();
  }

  use(uid: string): ExceptionUse | undefined {
    return this.#uses.get(uid);
  }

  subscribe(listener: (uids: readonly string[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Reports everything now. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#nextReport = performance.now() + this.#reportMs;
    const uids = [...this.#unreported];
    this.#unreported.clear();
    if (uids.length > 0) {
      for (const listener of this.#listeners) {
        listener(uids);
      }
    }
  }

  #makeRoom(): void {
    for (const uid of this.#uses.keys()) {
      if (this.#uses.size <= MAX_COUNTED_EXCEPTIONS) {
        return;
      }
      this.#uses.delete(uid);
      this.#unreported.delete(uid);
    }
  }
}
