import { setOwn } from '../../values/index.ts';
import { CelDouble, CelMap, CelUint } from '../model/value.ts';
import type { CelRecord, CelValue, MapKey } from '../model/value.ts';
import { isInt, toInt } from './number.ts';

/** The identity of a map key; undefined if a value of this type cannot be a key. */
function keyOf(value: CelValue): MapKey | undefined {
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

/** The identity of a key for lookups: a double finds the integer that it equals. */
function lookupKeyOf(value: CelValue): MapKey | undefined {
  if (value instanceof CelDouble) {
    const { value: double } = value;
    return Number.isSafeInteger(double) ? double + 0 : toInt(BigInt(double));
  }
  return keyOf(value);
}

/** The value of a key; undefined if the map does not have it. */
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

/** A map under construction. Builds a plain object if all keys are strings; `__proto__` is an ordinary key. */
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

  has(key: CelValue): boolean {
    const identity = keyOf(key);
    return identity !== undefined && this.#entries.has(identity);
  }

  /** Sets an entry and replaces an existing one; returns false if the value cannot be a key. */
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

/**
 * The index that a value denotes in a list; a message if it is invalid. Integral doubles and uints are valid indexes.
 */
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
