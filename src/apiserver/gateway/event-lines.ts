import type { WatchEvent } from '../../cluster/index.ts';

/** Bytes of encoded events that are kept for other watchers; the last one always is, which has up to 3 MB. */
const MAX_KEPT_BYTES = 4 * 1024 * 1024;
/** Encoded events that are kept: those of the changes that watchers are at, in each format. */
const MAX_KEPT = 16;

type WatchedObject = WatchEvent['object'];

interface KeptLine {
  readonly object: WatchedObject;
  readonly key: string;
  readonly line: Buffer;
}

/** A representation of objects. Equal names stand for equal encodings. */
export interface EventFormat {
  readonly name: string;
  readonly encode: (object: WatchedObject) => object;
}

export const WHOLE_OBJECTS: EventFormat = { name: 'object', encode: (object) => object };

/**
 * Encodes events as lines. The watchers of a change come soon after one another, so the last lines are kept for them: encoding a
 * large object takes as long as sending it.
 */
export class EventLines {
  readonly #maxBytes: number;
  /** The oldest first. */
  readonly #kept: KeptLine[] = [];
  #bytes = 0;

  constructor(maxBytes: number = MAX_KEPT_BYTES) {
    this.#maxBytes = maxBytes;
  }

  lineOf({ type, object }: WatchEvent, { name, encode }: EventFormat = WHOLE_OBJECTS): Buffer {
    const key = `${type} ${name}`;
    const kept = this.#kept.find((one) => one.object === object && one.key === key);
    if (kept !== undefined) {
      return kept.line;
    }
    const line = Buffer.from(`${JSON.stringify({ type, object: encode(object) })}\n`);
    // Only stored objects are frozen. Others may change.
    if (Object.isFrozen(object)) {
      this.#keep({ object, key, line });
    }
    return line;
  }

  #keep(added: KeptLine): void {
    this.#kept.push(added);
    this.#bytes += added.line.length;
    while (this.#kept.length > 1 && (this.#kept.length > MAX_KEPT || this.#bytes > this.#maxBytes)) {
      this.#bytes -= this.#kept.shift()?.line.length ?? 0;
    }
  }
}
