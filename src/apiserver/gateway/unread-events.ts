/**
 * Most bytes of events that clients of watches have not read. A client that reads leaves its events there for milliseconds; one
 * event has up to 3 MB, so fifty fast clients get the largest object at once without a loss. Bytes.
 */
const MAX_UNREAD_BYTES = 128 * 1024 * 1024;

/** The unread events of all watches. When they are too many, the clients that have not read for the longest time give way. */
export class UnreadEvents {
  readonly #maxBytes: number;
  /** Oldest first. */
  readonly #waiting = new Map<AbortController, number>();
  #bytes = 0;

  constructor(maxBytes: number = MAX_UNREAD_BYTES) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** @returns aborted when the client must give way; pass it to {@link remove} in any case */
  add(bytes: number): AbortController {
    const added = new AbortController();
    this.#waiting.set(added, bytes);
    this.#bytes += bytes;
    for (const oldest of this.#waiting.keys()) {
      if (this.#bytes <= this.#maxBytes) {
        break;
      }
      this.remove(oldest);
      oldest.abort(new Error('the client does not read'));
    }
    return added;
  }

  remove(one: AbortController): void {
    this.#bytes -= this.#waiting.get(one) ?? 0;
    this.#waiting.delete(one);
  }
}
