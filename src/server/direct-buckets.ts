// What the main thread knows of the buckets that it may evaluate reviews of.
import { usualAfter } from './usual-times.ts';

/** Most reviews of a bucket that are left to workers unseen after one was found to be theirs. */
const MAX_UNSEEN = 64;

/** The buckets of policies, for as long as they have any: anybody may ask about others. */
export class DirectBuckets {
  /** Where a policy is, and where that closes the bucket. */
  readonly #policies = new Map<string, readonly { readonly name: string; readonly isClosed: boolean }[]>();
  readonly #buckets = new Map<string, DirectBucket>();

  get(bucket: string): DirectBucket | undefined {
    return this.#buckets.get(bucket);
  }

  /** A policy is another one now. `closed`: buckets of which nothing is evaluated here while it is in them. */
  set(id: string, buckets: { readonly open: readonly string[]; readonly closed: readonly string[] }): void {
    this.delete(id);
    const open = buckets.open.map((name) => ({ name, isClosed: false }));
    const all = [...open, ...buckets.closed.map((name) => ({ name, isClosed: true }))];
    this.#policies.set(id, all);
    for (const { name, isClosed } of all) {
      const bucket = this.#buckets.get(name) ?? new DirectBucket();
      this.#buckets.set(name, bucket);
      bucket.count(1, isClosed);
    }
  }

  delete(id: string): void {
    for (const { name, isClosed } of this.#policies.get(id) ?? []) {
      const bucket = this.#buckets.get(name);
      bucket?.count(-1, isClosed);
      if (bucket?.isEmpty === true) {
        this.#buckets.delete(name);
      }
    }
    this.#policies.delete(id);
  }
}

export class DirectBucket {
  #policies = 0;
  #closing = 0;
  #usualMs: number | undefined;
  /** Reviews to be left to workers after the next that turns out to be theirs. */
  #nextUnseen = 1;
  #unseen = 0;

  get isEmpty(): boolean {
    return this.#policies === 0;
  }

  /** Whether no policy of it keeps its reviews from being evaluated here. */
  get isOpen(): boolean {
    return this.#closing === 0;
  }

  /** What those of its reviews usually take that this thread may evaluate; undefined until there was one. Milliseconds. */
  get usualMs(): number | undefined {
    return this.#usualMs;
  }

  /** A policy more, or less: what was known before is no longer known. */
  count(change: 1 | -1, isClosing: boolean): void {
    this.#policies += change;
    this.#closing += isClosing ? change : 0;
    this.#usualMs = undefined;
    this.found();
  }

  /** A review was evaluated that this thread may evaluate, here or elsewhere. */
  took(ms: number): void {
    this.#usualMs = usualAfter(this.#usualMs, ms);
  }

  /** Whether a review is to be left to workers unseen: so many that came just before were theirs. Counts those it says yes to. */
  isUnseen(): boolean {
    if (this.#unseen === 0) {
      return false;
    }
    this.#unseen -= 1;
    return true;
  }

  /** A review turned out to be for workers: looking at it here was for nothing. */
  missed(): void {
    this.#unseen = this.#nextUnseen;
    this.#nextUnseen = Math.min(2 * this.#nextUnseen, MAX_UNSEEN);
  }

  /** A review could be evaluated here. */
  found(): void {
    this.#nextUnseen = 1;
    this.#unseen = 0;
  }
}
