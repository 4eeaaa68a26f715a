// Bounds of what aliases stand for. The parser shares aliased values, so that a text of some lines can mean terabytes, or a value
// that contains itself: whoever walks such a value later would not come to an end.
import { EVENT_ID, type Event } from 'js-yaml';

/** Most values that the aliases of a text stand for: in memory, they are as large as a text of some megabytes without aliases. */
export const MAX_ALIASED_VALUES = 1_000_000;
/** Most characters that the aliases of a text stand for: as many as the largest file has bytes. */
export const MAX_ALIASED_CHARACTERS = 16 * 1024 * 1024;

/** What a value takes when all aliases in it are written out. */
interface Size {
  values: number;
  characters: number;
  /** Levels of collections below it. */
  height: number;
}

/** An open collection or document. */
interface Frame extends Size {
  readonly anchor: string | undefined;
}

/** A mistake, and the offset of the alias. */
export interface AliasFault {
  readonly reason: string;
  readonly offset: number;
}

/** The first alias of a text that is within its own value, or stands for too much; undefined when there is none. */
export function aliasFault(text: string, events: readonly Event[], maxDepth: number): AliasFault | undefined {
  return events.some(({ type }) => type === EVENT_ID.ALIAS) ? new AliasWalk(text, maxDepth).fault(events) : undefined;
}

class AliasWalk {
  readonly #text: string;
  readonly #maxDepth: number;
  readonly #open: Frame[] = [];
  /** By name; `open` while its value is not complete. */
  #anchors = new Map<string, Size | 'open'>();
  /** What the aliases so far stand for. */
  #values = 0;
  #characters = 0;

  constructor(text: string, maxDepth: number) {
    this.#text = text;
    this.#maxDepth = maxDepth;
  }

  fault(events: readonly Event[]): AliasFault | undefined {
    for (const event of events) {
      const reason = event.type === EVENT_ID.ALIAS ? this.#alias(this.#nameOf(event) ?? '') : this.#value(event);
      if (reason !== undefined) {
        return { reason, offset: event.type === EVENT_ID.ALIAS ? event.anchorStart - 1 : 0 };
      }
    }
    return undefined;
  }

  /** Every event but an alias. */
  #value(event: Event): undefined {
    switch (event.type) {
      case EVENT_ID.DOCUMENT:
        this.#anchors = new Map();
        this.#begin(undefined);
        break;
      case EVENT_ID.SCALAR:
        this.#end(
          { values: 1, characters: Math.max(0, event.valueEnd - event.valueStart), height: 0 },
          this.#nameOf(event),
        );
        break;
      case EVENT_ID.POP: {
        const closed = this.#open.pop();
        if (closed !== undefined) {
          this.#end(closed, closed.anchor);
        }
        break;
      }
      default:
        this.#begin(this.#nameOf(event));
    }
  }

  #begin(anchor: string | undefined): void {
    if (anchor !== undefined) {
      this.#anchors.set(anchor, 'open');
    }
    this.#open.push({ anchor, values: 1, characters: 0, height: 0 });
  }

  #end(size: Size, anchor: string | undefined): void {
    if (anchor !== undefined) {
      this.#anchors.set(anchor, size);
    }
    this.#add(size);
  }

  #add({ values, characters, height }: Size): void {
    const around = this.#open.at(-1);
    if (around !== undefined) {
      around.values += values;
      around.characters += characters;
      around.height = Math.max(around.height, height + 1);
    }
  }

  /** Counts an alias; returns what is wrong with it. An anchor that is not there is a mistake that the parser reports. */
  #alias(name: string): string | undefined {
    const size = this.#anchors.get(name);
    if (size === 'open') {
      return `the alias *${name} stands for a value that it is part of: write the value without it`;
    }
    if (size === undefined) {
      return undefined;
    }
    this.#values += size.values;
    this.#characters += size.characters;
    this.#add(size);
    // The outermost frame is the document.
    if (this.#open.length - 1 + size.height > this.#maxDepth) {
      return `aliases nest values deeper than ${this.#maxDepth} levels: write fewer levels`;
    }
    return this.#values > MAX_ALIASED_VALUES || this.#characters > MAX_ALIASED_CHARACTERS
      ? `the aliases up to *${name} stand for more than ${MAX_ALIASED_VALUES} values or ${MAX_ALIASED_CHARACTERS} characters: use fewer aliases`
      : undefined;
  }

  #nameOf(event: Event): string | undefined {
    return 'anchorStart' in event && event.anchorStart >= 0
      ? this.#text.slice(event.anchorStart, event.anchorEnd)
      : undefined;
  }
}
