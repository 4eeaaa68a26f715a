import { compareStrings } from '../../../go/index.ts';
import { canonicalNumber, compareNumbers, RegoNumber } from './number.ts';

/** A Rego value. Strings, booleans, null and arrays are JavaScript values. */
export type RegoValue = null | boolean | string | RegoNumber | readonly RegoValue[] | RegoSet | RegoObject;

/** An immutable set; elements are compared by value. */
export class RegoSet {
  readonly #items = new Map<string, RegoValue>();

  constructor(items: Iterable<RegoValue>) {
    for (const item of items) {
      this.#items.set(identityOf(item), item);
    }
  }

  get size(): number {
    return this.#items.size;
  }

  has(value: RegoValue): boolean {
    return this.#items.has(identityOf(value));
  }

  /** The elements in Rego's order. */
  sorted(): RegoValue[] {
    return [...this.#items.values()].sort(compareValues);
  }

  [Symbol.iterator](): Iterator<RegoValue> {
    return this.#items.values();
  }
}

/** An immutable object with keys of any type. A later entry replaces one with an equal key. */
export class RegoObject {
  readonly #entries = new Map<string, readonly [RegoValue, RegoValue]>();

  constructor(entries: Iterable<readonly [RegoValue, RegoValue]>) {
    for (const entry of entries) {
      this.#entries.set(identityOf(entry[0]), entry);
    }
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: RegoValue): RegoValue | undefined {
    return this.#entries.get(identityOf(key))?.[1];
  }

  /** The entries in Rego's order of their keys. */
  sorted(): (readonly [RegoValue, RegoValue])[] {
    return [...this.#entries.values()].sort(([a], [b]) => compareValues(a, b));
  }

  [Symbol.iterator](): Iterator<readonly [RegoValue, RegoValue]> {
    return this.#entries.values();
  }
}

export function isArray(value: RegoValue | undefined): value is readonly RegoValue[] {
  return Array.isArray(value);
}

/** A text that is the same exactly for equal values. */
export function identityOf(value: RegoValue): string {
  if (typeof value === 'string') {
    return JSON.stringify(value);
  }
  if (value === null || typeof value === 'boolean') {
    return String(value);
  }
  if (value instanceof RegoNumber) {
    return canonicalNumber(value.text);
  }
  if (isArray(value)) {
    return `[${value.map(identityOf).join()}]`;
  }
  if (value instanceof RegoSet) {
    return `<${[...value].map(identityOf).sort().join()}>`;
  }
  return `{${[...value]
    .map(([key, item]) => `${identityOf(key)}:${identityOf(item)}`)
    .sort()
    .join()}}`;
}

export function valuesEqual(a: RegoValue, b: RegoValue): boolean {
  return a === b || identityOf(a) === identityOf(b);
}

/** Type names in error messages, in Rego's order of types. */
const TYPE_ORDER = ['null', 'boolean', 'number', 'string', 'array', 'object', 'set'] as const;
export type RegoTypeName = (typeof TYPE_ORDER)[number];

export function typeName(value: RegoValue): RegoTypeName {
  if (value === null) {
    return 'null';
  }
  if (typeof value === 'boolean' || typeof value === 'string') {
    return typeof value as 'boolean' | 'string';
  }
  if (value instanceof RegoNumber) {
    return 'number';
  }
  if (value instanceof RegoSet) {
    return 'set';
  }
  return value instanceof RegoObject ? 'object' : 'array';
}

/** Rego's total order: null < booleans < numbers < strings < arrays < objects < sets. */
export function compareValues(a: RegoValue, b: RegoValue): number {
  if (typeof a === 'string' && typeof b === 'string') {
    return compareStrings(a, b);
  }
  if (a instanceof RegoNumber && b instanceof RegoNumber) {
    return compareNumbers(a.text, b.text);
  }
  if (isArray(a) && isArray(b)) {
    return compareLists(a, b);
  }
  if (a instanceof RegoSet && b instanceof RegoSet) {
    return compareLists(a.sorted(), b.sorted());
  }
  if (a instanceof RegoObject && b instanceof RegoObject) {
    return compareLists(a.sorted().flat(), b.sorted().flat());
  }
  if (typeof a === 'boolean' && typeof b === 'boolean') {
    return Number(a) - Number(b);
  }
  return TYPE_ORDER.indexOf(typeName(a)) - TYPE_ORDER.indexOf(typeName(b));
}

function compareLists(a: readonly RegoValue[], b: readonly RegoValue[]): number {
  for (const [index, item] of a.entries()) {
    const other = b[index];
    if (other === undefined) {
      return 1;
    }
    const order = compareValues(item, other);
    if (order !== 0) {
      return order;
    }
  }
  return a.length - b.length;
}
