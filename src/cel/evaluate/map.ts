import { CelDouble, CelMap, CelUint } from '../value.ts';
import type { CelRecord, CelValue, MapKey } from '../value.ts';
import { isInt, toInt } from './number.ts';

/** What identifies a key of a map; undefined when a value of such a type is never a key. */
export function keyOf(value: CelValue): MapKey | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
    case 'bigint':
      return value;
    case 'number':
      return Number.isInteger(value) ? value : undefined;
    default:
      return value instanceof CelUint ? toInt(value.value) : undefined;
  }
}

/** What identifies a key that is looked up: a double finds the integer that it equals. */
function lookupKeyOf(value: CelValue): MapKey | undefined {
  if (value instanceof CelDouble) {
    const { value: double } = value;
    return Number.isSafeInteger(double) ? double + 0 : toInt(BigInt(double));
  }
  return keyOf(value);
}

/** The value of a key, undefined when the map does not have it. */
export function findInMap(map: CelRecord | CelMap, key: CelValue): CelValue | undefined {
  if (map instanceof CelMap) {
    const identity = lookupKeyOf(key);
    return identity === undefined ? undefined : map.entries.get(identity)?.[1];
  }
  return typeof key === 'string' && Object.hasOwn(map, key) ? map[key] : undefined;
}

export function mapSize(map: CelRecord | CelMap): number {
  return map instanceof CelMap ? map.entries.size : Object.keys(map).length;
}

/** The keys of a map, in its order. */
export function keysOf(map: CelRecord | CelMap): readonly CelValue[] {
  return map instanceof CelMap ? Array.from(map.entries.values(), ([key]) => key) : Object.keys(map);
}

/**
 * A map under construction. Keeps to a plain object while all keys are strings; `__proto__` is a key like any other.
 */
export class MapBuilder {
  readonly #entries = new Map<MapKey, readonly [CelValue, CelValue]>();
  #hasOnlyStrings = true;

  constructor(from?: CelRecord | CelMap) {
    if (from !== undefined) {
      for (const key of keysOf(from)) {
        this.set(key, findInMap(from, key) ?? null);
      }
    }
  }

  get size(): number {
    return this.#entries.size;
  }

  has(key: CelValue): boolean {
    const identity = keyOf(key);
    return identity !== undefined && this.#entries.has(identity);
  }

  /** Sets an entry, the last one of a key counts; false when the value cannot be a key. */
  set(key: CelValue, value: CelValue): boolean {
    const identity = keyOf(key);
    if (identity === undefined) {
      return false;
    }
    this.#hasOnlyStrings &&= typeof key === 'string';
    this.#entries.set(identity, [key, value]);
    return true;
  }

  delete(key: CelValue): void {
    const identity = keyOf(key);
    if (identity !== undefined) {
      this.#entries.delete(identity);
    }
  }

  build(): CelRecord | CelMap {
    if (!this.#hasOnlyStrings) {
      return new CelMap(new Map(this.#entries));
    }
    const record: Record<string, CelValue> = {};
    for (const [key, value] of this.#entries.values()) {
      setOwn(record, typeof key === 'string' ? key : '', value);
    }
    return record;
  }
}

/** A key that the engine takes for an index of an array. The smallest are so few that they may be. */
const INDEX = /^[1-9]\d{1,9}$/;
/** The largest index that there is. */
const LAST_INDEX = 4_294_967_294;

/**
 * Sets a property of an object whatever its name: an assignment to `__proto__` would change the prototype, and for an index the
 * engine would keep room for all below it.
 */
export function setOwn(record: Record<string, CelValue>, name: string, value: CelValue): void {
  if (name === '__proto__') {
    Object.defineProperty(record, name, { value, enumerable: true, configurable: true, writable: true });
    return;
  }
  if (INDEX.test(name)) {
    keepSparse(record);
  }
  record[name] = value;
}

/**
 * Makes the engine keep what has indexes for keys as a table: otherwise it takes a thousand times what was written. An index far
 * from all others does that, and may be deleted again.
 */
function keepSparse(record: Record<string, CelValue>): void {
  if (!Object.hasOwn(record, LAST_INDEX)) {
    record[LAST_INDEX] = null;
    delete record[LAST_INDEX];
  }
}

/** The index that a value means in a list; a message when it cannot be one. Doubles and uints index as ints do. */
export function indexOf(value: CelValue, describe: (value: CelValue) => string, typeName: string): number | string {
  if (isInt(value)) {
    return Number(value);
  }
  if (value instanceof CelUint) {
    return value.value < 2n ** 63n ? Number(value.value) : `unsupported index value ${describe(value)} in list`;
  }
  if (value instanceof CelDouble) {
    return Number.isSafeInteger(value.value) ? value.value : `unsupported index value ${describe(value)} in list`;
  }
  return typeof value === 'number'
    ? `unsupported index value ${describe(value)} in list`
    : `unsupported index type '${typeName}' in list`;
}
