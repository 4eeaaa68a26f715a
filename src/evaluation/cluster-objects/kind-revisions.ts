/** Number of counters. With more kinds, some share one: a change of either then invalidates both. */
const KIND_COUNTERS = 64;
/** Index of the epoch: the number of times that a kind stopped being cached. */
const EPOCH = 0;

/**
 * Revisions of cached kinds in shared memory. The capability thread counts changes; workers use an answer about a kind again
 * while the kind's counter stays.
 */
export class KindRevisions {
  readonly buffer: SharedArrayBuffer;
  readonly #counters: Int32Array;
  #assigned = 0;

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer((1 + KIND_COUNTERS) * Int32Array.BYTES_PER_ELEMENT)) {
    this.buffer = buffer;
    this.#counters = new Int32Array(buffer);
  }

  /** Assigns a counter to a kind. */
  assign(): number {
    this.#assigned += 1;
    return 1 + (this.#assigned % KIND_COUNTERS);
  }

  /** An object of the counter's kind changed. */
  changed(counter: number): void {
    Atomics.add(this.#counters, counter, 1);
  }

  /** A kind is no longer cached, and its counter no longer valid. */
  ended(): void {
    Atomics.add(this.#counters, EPOCH, 1);
  }

  /** Counters stay assigned to their kinds while it stays. */
  get epoch(): number {
    return Atomics.load(this.#counters, EPOCH);
  }

  of(counter: number): number {
    return Atomics.load(this.#counters, counter);
  }
}
