import { valueText } from '../../go/index.ts';
import { isJsonObject, own } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import type { ComparisonBudget } from './comparison-budget.ts';
import { parseKubernetesQuantity } from './kubernetes-quantity.ts';

/** Indexes of items, ascending. */
type Indexes = Set<number>;
const NO_INDEXES: Indexes = new Set();

/**
 * The items of a template's list that no live item has matched yet. Each is filed under the value of one of its fields, so
 * that a live item need not be compared with every item of the template.
 */
export class DesiredItems {
  readonly #key: string;
  /** Items that any live item may match. */
  readonly #unfiled: Indexes = new Set();
  /** Items that are no objects, by their text. */
  readonly #scalars = new Map<string, Indexes>();
  /** Objects, by a field and by the text of its value. */
  readonly #objects = new Map<string, Map<string, Indexes>>();

  /** @param key the field that identifies items */
  constructor(items: readonly JsonValue[], key: string) {
    this.#key = key;
    const frequencies = countValues(items);
    for (const [index, item] of items.entries()) {
      this.#fileOf(item, frequencies).add(index);
    }
  }

  /** The items that a live item may match, in the order of the template. Those that were yielded may be removed. */
  *candidates(live: JsonValue, liveText: string, budget: ComparisonBudget): Generator<number> {
    const files = [this.#unfiled, this.#scalars.get(liveText) ?? NO_INDEXES, ...this.#filesOf(live)];
    const cursors = files.filter(({ size }) => size > 0).map((file) => file.values());
    const heads = cursors.map(nextOf);
    for (let index = least(heads); index < Infinity; index = least(heads)) {
      budget.visit(heads.length);
      yield index;
      const at = heads.indexOf(index);
      heads[at] = nextOf(cursors[at]);
    }
  }

  /** Removes an item that a live item has matched. */
  remove(index: number, item: JsonValue): void {
    this.#unfiled.delete(index);
    if (!isJsonObject(item)) {
      this.#scalars.get(valueText(item))?.delete(index);
      return;
    }
    for (const file of this.#filesOf(item)) {
      file.delete(index);
    }
  }

  #filesOf(item: JsonValue): readonly Indexes[] {
    if (!isJsonObject(item)) {
      return [];
    }
    return Object.entries(item).flatMap(([field, value]) => this.#objects.get(field)?.get(valueText(value)) ?? []);
  }

  #fileOf(item: JsonValue, frequencies: Frequencies): Indexes {
    if (!isJsonObject(item)) {
      const text = Array.isArray(item) ? undefined : fileText(item);
      return text === undefined ? this.#unfiled : fileIn(this.#scalars, text);
    }
    const field = this.#fieldOf(item, frequencies);
    const text = field === undefined ? undefined : fileText(own(item, field));
    if (field === undefined || text === undefined) {
      return this.#unfiled;
    }
    const byText = this.#objects.get(field) ?? new Map<string, Indexes>();
    this.#objects.set(field, byText);
    return fileIn(byText, text);
  }

  /** The field under which an object is filed: its key, which decides alone, or else the one with the rarest value. */
  #fieldOf(item: JsonObject, frequencies: Frequencies): string | undefined {
    if (isIdentity(own(item, this.#key))) {
      return this.#key;
    }
    let rarest: string | undefined;
    let least = Infinity;
    for (const [field, value] of Object.entries(item)) {
      const text = fileText(value);
      const frequency = text === undefined ? Infinity : (frequencies.get(field)?.get(text) ?? Infinity);
      if (frequency < least) {
        [rarest, least] = [field, frequency];
      }
    }
    return rarest;
  }
}

/** Whether a value can identify an item: a string that is not empty, or a number. */
export function isIdentity(value: JsonValue | undefined): value is string | number {
  return typeof value === 'number' || (typeof value === 'string' && value !== '');
}

type Frequencies = ReadonlyMap<string, ReadonlyMap<string, number>>;

/** How many objects have each value of each field. */
function countValues(items: readonly JsonValue[]): Frequencies {
  const frequencies = new Map<string, Map<string, number>>();
  for (const item of items) {
    for (const [field, value] of isJsonObject(item) ? Object.entries(item) : []) {
      const text = fileText(value);
      if (text !== undefined) {
        const counts = frequencies.get(field) ?? new Map<string, number>();
        frequencies.set(field, counts.set(text, (counts.get(text) ?? 0) + 1));
      }
    }
  }
  return frequencies;
}

/**
 * The text that each live value has that equals the value of a template; undefined if several texts do, because of zero
 * values or quantities.
 */
function fileText(value: JsonValue | undefined): string | undefined {
  if (typeof value === 'string') {
    return value === '' || parseKubernetesQuantity(value) !== undefined ? undefined : value;
  }
  return typeof value === 'number' || typeof value === 'boolean' ? (value ? valueText(value) : undefined) : undefined;
}

function fileIn(files: Map<string, Indexes>, text: string): Indexes {
  const file = files.get(text) ?? new Set();
  files.set(text, file);
  return file;
}

/** The next index; Infinity after the last one. */
function nextOf(cursor: Iterator<number, undefined> | undefined): number {
  return cursor?.next().value ?? Infinity;
}

function least(heads: readonly number[]): number {
  return heads.reduce((smallest, head) => Math.min(smallest, head), Infinity);
}
