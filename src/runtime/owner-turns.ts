/**
 * Turns of items in a queue, by start-time fair queueing: an item comes one turn after the last waiting item of its owner, so that
 * the items of one owner wait for one item of each other owner at most. The slow lane of evaluation is another thing: it limits how
 * many workers an owner holds, where all items here take one turn.
 */
export class OwnerTurns {
  readonly #ownerOf: (item: string) => string | undefined;
  /** Turn of the last waiting item, by owner. */
  readonly #last = new Map<string, number>();
  #current = 0;

  /** @param ownerOf undefined: the item is its own owner */
  constructor(ownerOf: (item: string) => string | undefined) {
    this.#ownerOf = ownerOf;
  }

  /** The turn of an item that begins to wait. */
  assign(item: string): number {
    const owner = this.#ownerOf(item);
    const turn = Math.max(this.#current, (owner === undefined ? undefined : this.#last.get(owner)) ?? 0) + 1;
    if (owner !== undefined) {
      this.#last.set(owner, turn);
    }
    return turn;
  }

  /** Notes that an item with this turn was taken. */
  taken(item: string, turn: number): void {
    this.#current = Math.max(this.#current, turn);
    const owner = this.#ownerOf(item);
    if (owner !== undefined && (this.#last.get(owner) ?? 0) <= this.#current) {
      this.#last.delete(owner);
    }
  }
}
