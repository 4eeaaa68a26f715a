import type { KubernetesObject } from '../../../resources/index.ts';

/** A change of an object. */
export interface StoredChange {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly revision: number;
  /** The object after the change; for DELETED its last state, with the revision of the deletion. */
  readonly object: KubernetesObject;
  /** The object before the change; undefined for ADDED. */
  readonly previous: KubernetesObject | undefined;
}

/**
 * Size of a resource's history, in characters of JSON: enough for 2,048 changes of objects of 16 KB. Larger objects have a
 * shorter history, which bounds the memory. Twice this size is the limit at which the oldest changes are dropped.
 */
export const MAX_HISTORY_SIZE = 32 * 1024 ** 2;

/**
 * The newest changes of a collection, in order. Watches have positions in it instead of queues, so a slow watch takes no
 * memory. It ends when its position is dropped.
 */
export class ChangeLog {
  readonly #capacity: number;
  #changes: StoredChange[] = [];
  /** The length of each change's object as JSON. */
  #sizes: number[] = [];
  #size = 0;
  /** Position of the oldest change. Positions count all changes since the store was opened. */
  #start = 0;
  /** The log contains all changes after this revision. */
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

  /** Number of changes in it. */
  get length(): number {
    return this.#changes.length;
  }

  /** @param size characters of the object as JSON */
  append(change: StoredChange, size: number): void {
    this.#changes.push(change);
    this.#sizes.push(size);
    this.#size += size;
    // Dropping half of the changes at once makes the cost per change constant.
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
    this.#dropOldest(count);
  }

  /** Drops the changes up to this revision. */
  forget(revision: number): void {
    const after = this.positionAfter(revision);
    this.#dropOldest(after === undefined ? 0 : after - this.#start);
  }

  #dropOldest(count: number): void {
    const dropped = this.#changes.splice(0, count);
    this.#size -= this.#sizes.splice(0, count).reduce((sum, size) => sum + size, 0);
    this.#start += dropped.length;
    this.#floor = dropped.at(-1)?.revision ?? this.#floor;
  }

  /** Position of the first change after a revision. Undefined when that change is dropped already. */
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

  /** The change at a position. Undefined at the end of the log; `lost` when it is dropped already. */
  at(position: number): StoredChange | undefined | 'lost' {
    return position < this.#start ? 'lost' : this.#changes[position - this.#start];
  }

  /** The changes after `revision`, newest first. */
  *backTo(revision: number): Generator<StoredChange> {
    for (let index = this.#changes.length - 1; index >= 0; index--) {
      const change = this.#changes[index];
      if (change === undefined || change.revision <= revision) {
        return;
      }
      yield change;
    }
  }
}
