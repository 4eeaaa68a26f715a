import { valueText } from '../../go/index.ts';
import { isJsonObject, own } from '../../values/index.ts';
import type { JsonValue } from '../../values/index.ts';
import type { ComparisonBudget } from './comparison-budget.ts';
import { parseKubernetesQuantity } from './kubernetes-quantity.ts';

/** Indexes of items, ascending. */
type Indexes = Set<number>;

/** A text that an item of the template has in common with every live item that it matches. */
type Trait = string;

/**
 * The items of a template's list that no live item has matched yet. Each is filed under one of its traits, so that a live
 * item need not be compared with every item of the template.
 */
export class DesiredItems {
  readonly #key: string;
  /** Items without traits, which any live item may match. */
  readonly #unfiled: Indexes = new Set();
  readonly #files = new Map<Trait, Indexes>();
  /** The fields whose traits are in use. */
  readonly #fields = new Set<string>();
  /** The file of each item. */
  readonly #fileOf: readonly Indexes[];

  /** @param key the field that identifies items */
  constructor(items: readonly JsonValue[], key: string) {
    this.#key = key;
    const traits = items.map((item) => this.#traitsOf(item));
    const frequencies = countTraits(traits);
    this.#fileOf = traits.map((ofItem, index) => this.#file(ofItem, frequencies).add(index));
  }

  /** The items that a live item may match, in the order of the template. Those that were yielded may be removed. */
  *candidates(live: JsonValue, liveText: string, budget: ComparisonBudget): Generator<number> {
    const files = new Set([this.#unfiled, ...this.#filesOf(live, liveText)]);
    const cursors = [...files].filter(({ size }) => size > 0).map((file) => file.values());
    const heads = cursors.map(nextOf);
    for (let index = least(heads); index < Infinity; index = least(heads)) {
      budget.visit(heads.length);
      yield index;
      const at = heads.indexOf(index);
      heads[at] = nextOf(cursors[at]);
    }
  }

  /** Removes an item that a live item has matched. */
  remove(index: number): void {
    this.#fileOf[index]?.delete(index);
  }

  #traitsOf(item: JsonValue): readonly FieldTrait[] {
    if (!isJsonObject(item)) {
      const text = Array.isArray(item) ? undefined : plainText(item);
      return text === undefined ? [] : [{ field: '', trait: wholeTrait(text) }];
    }
    // An item that has an identity may also match by that alone.
    const key = own(item, this.#key);
    return isIdentity(key)
      ? fieldTraits(this.#key, key)
      : Object.entries(item).flatMap(([field, value]) => fieldTraits(field, value));
  }

  /** The file for an item: that of its rarest trait. */
  #file(traits: readonly FieldTrait[], frequencies: ReadonlyMap<Trait, number>): Indexes {
    let rarest: FieldTrait | undefined;
    for (const one of traits) {
      const isRarer = rarest === undefined || (frequencies.get(one.trait) ?? 0) < (frequencies.get(rarest.trait) ?? 0);
      rarest = isRarer ? one : rarest;
    }
    if (rarest === undefined) {
      return this.#unfiled;
    }
    const file = this.#files.get(rarest.trait) ?? new Set();
    this.#files.set(rarest.trait, file);
    this.#fields.add(rarest.field);
    return file;
  }

  #filesOf(live: JsonValue, liveText: string): readonly Indexes[] {
    return [wholeTrait(liveText), ...this.#liveTraits(live)].flatMap((trait) => this.#files.get(trait) ?? []);
  }

  #liveTraits(live: JsonValue): readonly Trait[] {
    return Object.entries(isJsonObject(live) ? live : {})
      .filter(([field]) => this.#fields.has(field))
      .flatMap(([field, value]) => [
        valueTrait(field, valueText(value)),
        ...(Array.isArray(value) ? value.map((item) => itemTrait(field, valueText(item))) : []),
      ]);
  }
}

/** Whether a value can identify an item: a string that is not empty, or a number. */
export function isIdentity(value: JsonValue | undefined): value is string | number {
  return typeof value === 'number' || (typeof value === 'string' && value !== '');
}

interface FieldTrait {
  readonly field: string;
  readonly trait: Trait;
}

function fieldTraits(field: string, value: JsonValue): readonly FieldTrait[] {
  if (Array.isArray(value)) {
    const texts = value.flatMap((item) => plainText(item) ?? []);
    return texts.map((text) => ({ field, trait: itemTrait(field, text) }));
  }
  // Quantities are equal to others with other texts.
  const isQuantity = typeof value === 'string' && parseKubernetesQuantity(value) !== undefined;
  const text = isQuantity ? undefined : plainText(value);
  return text === undefined ? [] : [{ field, trait: valueTrait(field, text) }];
}

/** The text of a scalar that is not zero; zero values equal absent ones. */
function plainText(value: JsonValue): string | undefined {
  return typeof value === 'object' || value === '' || value === 0 || value === false ? undefined : valueText(value);
}

function wholeTrait(text: string): Trait {
  return `=${text}`;
}

function valueTrait(field: string, text: string): Trait {
  return `.${field}=${text}`;
}

function itemTrait(field: string, text: string): Trait {
  return `.${field}[]=${text}`;
}

function countTraits(traits: readonly (readonly FieldTrait[])[]): ReadonlyMap<Trait, number> {
  const counts = new Map<Trait, number>();
  for (const { trait } of traits.flat()) {
    counts.set(trait, (counts.get(trait) ?? 0) + 1);
  }
  return counts;
}

/** The next index; Infinity after the last one. */
function nextOf(cursor: Iterator<number, undefined> | undefined): number {
  return cursor?.next().value ?? Infinity;
}

function least(heads: readonly number[]): number {
  return heads.reduce((smallest, head) => Math.min(smallest, head), Infinity);
}
