/** Items that wait, by owner. Owners take turns, so that the items of one wait for one item of each other owner at most. */
export class OwnerQueue<Item> {
  /** The owner whose turn is next is first. None is empty. */
  readonly #waiting = new Map<string, Item[]>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(owner: string, item: Item): void {
    const queue = this.#waiting.get(owner) ?? [];
    this.#waiting.set(owner, queue);
    queue.push(item);
    this.#length += 1;
  }

  /** Takes the first item of the next owner. */
  shift(): Item | undefined {
    const [turn] = this.#waiting;
    if (turn === undefined) {
      return undefined;
    }
    const [owner, queue] = turn;
    this.#waiting.delete(owner);
    const item = queue.shift();
    this.#length -= 1;
    if (queue.length > 0) {
      this.#waiting.set(owner, queue);
    }
    return item;
  }

  /** Takes all items, those of one owner after those of another. */
  clear(): readonly Item[] {
    const all = [...this.#waiting.values()].flat();
    this.#waiting.clear();
    this.#length = 0;
    return all;
  }
}
