import { EVENT_ID, getScalarValue, parseEvents } from 'js-yaml';
import type { Event } from 'js-yaml';

/** Keys and indexes from the root of a document to a value. */
export type ValuePath = readonly (string | number)[];

/** A position in a text; both count from 1. */
export interface TextPosition {
  readonly line: number;
  readonly column: number;
}

interface Located {
  /** Where the node begins; for a value in a mapping, where its key begins. */
  readonly offset: number;
  readonly children: ReadonlyMap<string | number, Located>;
}

/** The position of a value in a valid YAML text; for a value in a mapping, that of its key. The nearest parent if it is missing. */
export function yamlPosition(text: string, path: ValuePath): TextPosition {
  let node: Located | undefined = new EventReader(text).read();
  let { offset } = node;
  for (const step of path) {
    node = node?.children.get(step);
    offset = node?.offset ?? offset;
  }
  const before = text.slice(0, offset).split('\n');
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}

/** Builds a tree of positions from the events of the parser. */
class EventReader {
  readonly #text: string;
  readonly #events: readonly Event[];
  #next = 0;

  constructor(text: string) {
    this.#text = text;
    this.#events = parseEvents(text, {}).filter(({ type }) => type !== EVENT_ID.DOCUMENT);
  }

  read(): Located {
    const event = this.#take();
    switch (event?.type) {
      case EVENT_ID.MAPPING:
        return { offset: event.start, children: this.#mapping() };
      case EVENT_ID.SEQUENCE:
        return { offset: event.start, children: this.#sequence() };
      case EVENT_ID.SCALAR:
        return { offset: Math.max(event.valueStart, 0), children: new Map() };
      default:
        return { offset: 0, children: new Map() };
    }
  }

  #mapping(): Map<string | number, Located> {
    const children = new Map<string | number, Located>();
    while (!this.#atEnd()) {
      const event = this.#events[this.#next];
      const key = this.read();
      const value = this.read();
      if (event?.type === EVENT_ID.SCALAR) {
        children.set(getScalarValue(this.#text, event), { offset: key.offset, children: value.children });
      }
    }
    return children;
  }

  #sequence(): Map<string | number, Located> {
    const children = new Map<string | number, Located>();
    while (!this.#atEnd()) {
      children.set(children.size, this.read());
    }
    return children;
  }

  /** Consumes the end of the current collection, if it is next. */
  #atEnd(): boolean {
    const event = this.#events[this.#next];
    const ends = event === undefined || event.type === EVENT_ID.POP;
    if (ends) {
      this.#next++;
    }
    return ends;
  }

  #take(): Event | undefined {
    return this.#events[this.#next++];
  }
}
