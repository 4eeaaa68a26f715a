/** Counters for kinds; with more kinds than counters some share one, and then lose what is kept of either. */
const KIND_COUNTERS = 64;
/** Counts how often a kind stopped being cached. */
const EPOCH = 0;

/**
 * Revisions of cached kinds in shared memory. The thread that watches the kinds counts; workers read, and use again what they
 * made of a kind while its counter has not moved.
 */
export class KindRevisions {
  readonly buffer: SharedArrayBuffer;
  readonly #counters: Int32Array;
  #assigned = 0;

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer((1 + KIND_COUNTERS) * Int32Array.BYTES_PER_ELEMENT)) {
    this.buffer = buffer;
    this.#counters = new Int32Array(buffer);
  }

  /** The counter for one more kind. */
  assign(): number {
    this.#assigned += 1;
    return 1 + (this.#assigned % KIND_COUNTERS);
  }

  /** An object of the counter's kind changed. */
  changed(counter: number): void {
    Atomics.add(this.#counters, counter, 1);
  }

  /** A kind is no longer cached: its counter says nothing any more. */
  ended(): void {
    Atomics.add(this.#counters, EPOCH, 1);
  }

  /** While it stays, every counter is still that of its kind. */
  get epoch(): number {
    return Atomics.load(this.#counters, EPOCH);
  }

  of(counter: number): number {
    return Atomics.load(this.#counters, counter);
  }
}
