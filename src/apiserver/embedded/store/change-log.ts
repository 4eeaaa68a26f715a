import type { KubernetesObject } from '../../../resources/index.ts';

/** A change of an object. */
export interface Change {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly revision: number;
  /** After the change; for DELETED the last state, with the revision of the deletion. */
  readonly object: KubernetesObject;
  /** Before the change; undefined for ADDED. */
  readonly previous: KubernetesObject | undefined;
}

/**
 * Characters of JSON in a resource's history, at least; twice that at most: 2,048 objects of 16 KB. Larger objects have a
 * shorter history, which bounds the memory.
 */
export const MAX_HISTORY_SIZE = 32 * 1024 ** 2;

/**
 * The newest changes of one collection, in order. A watch holds a position in it instead of a queue, so a slow watch costs
 * nothing, and learns when it is too late.
 */
export class ChangeLog {
  readonly #capacity: number;
  #changes: Change[] = [];
  /** The length of each change's object as JSON. */
  #sizes: number[] = [];
  #size = 0;
  /** Position of the oldest change; positions count all changes since the store was opened. */
  #start = 0;
  /** The history is complete after this revision. */
  #floor: number;

  constructor(capacity: number, floor: number) {
    this.#capacity = capacity;
    this.#floor = floor;
  }

  get floor(): number {
    return this.#floor;
  }

  /** Position after the newest change. */
  get end(): number {
    return this.#start + this.#changes.length;
  }

  /** @param size characters of the object as JSON */
  append(change: Change, size: number): void {
    this.#changes.push(change);
    this.#sizes.push(size);
    this.#size += size;
    // Dropping half at a time gives constant amortized time.
    if (this.#changes.length >= this.#capacity * 2 || this.#size >= MAX_HISTORY_SIZE * 2) {
      this.#drop();
    }
  }

  #drop(): void {
    let count = Math.max(0, this.#changes.length - this.#capacity);
    let size = this.#size;
    for (const [index, one] of this.#sizes.entries()) {
      if (index >= count && (size <= MAX_HISTORY_SIZE || index === this.#sizes.length - 1)) {
        break;
      }
      size -= one;
      count = Math.max(count, index + 1);
    }
    const dropped = this.#changes.splice(0, count);
    this.#sizes.splice(0, count);
    this.#size = size;
    this.#start += dropped.length;
    this.#floor = dropped.at(-1)?.revision ?? this.#floor;
  }

  /** Position of the first change after a revision; undefined when some are dropped already. */
  positionAfter(revision: number): number | undefined {
    if (revision < this.#floor) {
      return undefined;
    }
    let low = 0;
    let high = this.#changes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#changes[middle]?.revision ?? 0) <= revision) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return this.#start + low;
  }

  /** The change at a position: undefined at the end, `lost` when it is dropped already. */
  at(position: number): Change | undefined | 'lost' {
    return position < this.#start ? 'lost' : this.#changes[position - this.#start];
  }

  /** The changes after `revision`, newest first. */
  *backTo(revision: number): Generator<Change> {
    for (let index = this.#changes.length - 1; index >= 0; index--) {
      const change = this.#changes[index];
      if (change === undefined || change.revision <= revision) {
        return;
      }
      yield change;
    }
  }
}
