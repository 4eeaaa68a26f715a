/** The property that a heap stores in its items. */
export interface HeapItem {
  /** Index in the heap. Only the heap writes it. */
  position: number;
}

/** A binary heap: the least item comes first; adding and removing take logarithmic time. */
export class Heap<T extends HeapItem> {
  readonly #items: T[] = [];
  readonly #isBefore: (a: T, b: T) => boolean;

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore;
  }

  get size(): number {
    return this.#items.length;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    this.#items.push(item);
    this.#rise(item, this.#items.length - 1);
  }

  pop(): T | undefined {
    const first = this.#items[0];
    if (first !== undefined) {
      this.remove(first);
    }
    return first;
  }

  /** Removes an item that is in this heap. */
  remove(item: T): void {
    const last = this.#items.pop();
    if (last !== undefined && last !== item) {
      this.#rise(last, item.position);
      this.#sink(last, last.position);
    }
  }

  #rise(item: T, from: number): void {
    let index = from;
    while (index > 0) {
      const up = (index - 1) >> 1;
      const parent = this.#items[up] as T;
      if (!this.#isBefore(item, parent)) {
        break;
      }
      this.#put(parent, index);
      index = up;
    }
    this.#put(item, index);
  }

  #sink(item: T, from: number): void {
    const items = this.#items;
    let index = from;
    for (;;) {
      const left = 2 * index + 1;
      if (left >= items.length) {
        break;
      }
      const isRight = left + 1 < items.length && this.#isBefore(items[left + 1] as T, items[left] as T);
      const child = items[isRight ? left + 1 : left] as T;
      if (!this.#isBefore(child, item)) {
        break;
      }
      this.#put(child, index);
      index = isRight ? left + 1 : left;
    }
    this.#put(item, index);
  }

  #put(item: T, index: number): void {
    this.#items[index] = item;
    item.position = index;
  }
}
