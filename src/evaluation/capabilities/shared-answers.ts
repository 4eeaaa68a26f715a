/** How long an answer is used again, as in Kubewarden. Milliseconds. */
export const ANSWER_MS = 60_000;
/** How long an error is the answer: shorter than anybody waits, and long enough for the pods of one rollout. Milliseconds. */
export const FAILURE_MS = 2_000;
/** Most answers that are kept. */
export const MAX_ANSWERS = 1_000;
/** Most characters of all kept answers. */
export const MAX_ANSWERS_LENGTH = 16 * 1024 * 1024;

interface Entry {
  readonly result: Promise<string>;
  /** When the answer ends; undefined while there is none. */
  until: number | undefined;
  length: number;
  waiting: number;
}

/** Why a task was not begun. The next call tries again. */
export class NotBegun extends Error {}

/**
 * Keeps answers for a while, and lets equal calls share one task. A task goes on when its callers stop waiting, so that the next
 * call has its answer.
 */
export class SharedAnswers {
  readonly #entries = new Map<string, Entry>();
  readonly #now: () => number;
  #length = 0;

  /** @param now milliseconds. Default: a clock that is never set back */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * The answer of `work`, or one that is there already.
   * @param work gets a function that says whether a caller still waits; throws {@link NotBegun} for errors that are not kept
   * @throws what `work` throws, or the signal's reason
   */
  async get(key: string, work: (isWanted: () => boolean) => Promise<string>, signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    const entry = this.#current(key) ?? this.#begin(key, work);
    entry.waiting += 1;
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    const onAbort = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      return await Promise.race([entry.result, aborted]);
    } finally {
      signal.removeEventListener('abort', onAbort);
      entry.waiting -= 1;
    }
  }

  #current(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry?.until !== undefined && entry.until <= this.#now()) {
      this.#delete(key);
      return undefined;
    }
    return entry;
  }

  #begin(key: string, work: (isWanted: () => boolean) => Promise<string>): Entry {
    // Later, when the caller is counted.
    const result = Promise.resolve().then(async () => work(() => entry.waiting > 0));
    const entry: Entry = { result, until: undefined, length: 0, waiting: 0 };
    this.#entries.set(key, entry);
    entry.result.then(
      (answer) => this.#settled(key, entry, answer.length, ANSWER_MS),
      (error: unknown) => this.#settled(key, entry, 0, error instanceof NotBegun ? 0 : FAILURE_MS),
    );
    return entry;
  }

  #settled(key: string, entry: Entry, length: number, lifetimeMs: number): void {
    entry.until = this.#now() + lifetimeMs;
    entry.length = length;
    this.#length += length;
    // Behind older answers, which are evicted first.
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    for (const [oldest, { until }] of this.#entries) {
      const hasRoom = this.#entries.size <= MAX_ANSWERS && this.#length <= MAX_ANSWERS_LENGTH;
      if (hasRoom && (until === undefined || until > this.#now())) {
        break;
      }
      if (until !== undefined) {
        this.#delete(oldest);
      }
    }
  }

  #delete(key: string): void {
    this.#length -= this.#entries.get(key)?.length ?? 0;
    this.#entries.delete(key);
  }
}
