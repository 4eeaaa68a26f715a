import { isJsonObject, own } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import type { Schema } from '../schema.ts';
import { equalJson } from './equality.ts';
import { MAX_NESTING, schemaOfField } from './schema-fields.ts';

/**
 * A value and the old value at the same place, if known. Unchanged mistakes do not fail an update (KEP-4008), and
 * transition rules compare both values.
 */
export class Correlation {
  readonly value: JsonValue;
  readonly old: JsonValue;
  readonly #schema: Schema;
  readonly #depth: number;
  readonly #children = new Map<string | number, Correlation | undefined>();
  #items: ListItems | undefined;
  #isUnchanged: boolean | undefined;

  constructor(value: JsonValue, old: JsonValue, schema: Schema, depth = 0) {
    this.value = value;
    this.old = old;
    this.#schema = schema;
    this.#depth = depth;
  }

  /** The field of both values; undefined when one lacks it, or it has no schema. */
  field(name: string): Correlation | undefined {
    return this.#child(name, () => {
      const { value, old } = this;
      if (!isJsonObject(value) || !isJsonObject(old)) {
        return undefined;
      }
      const [child, oldChild, schema] = [own(value, name), own(old, name), schemaOfField(this.#schema, name)];
      return child === undefined || oldChild === undefined || schema === undefined
        ? undefined
        : new Correlation(child, oldChild, schema, this.#depth + 1);
    });
  }

  /** The element at an index and the old element with the same keys, for lists of type map. */
  element(index: number): Correlation | undefined {
    return this.#child(index, () => {
      const { value } = this;
      const { items } = this.#schema;
      const old = this.#oldItems?.find(Array.isArray(value) ? value[index] : undefined);
      return old === undefined || items === undefined || !Array.isArray(value)
        ? undefined
        : new Correlation(value[index] ?? null, old, items, this.#depth + 1);
    });
  }

  /** Whether both values are equal. The order of lists of type map does not count. */
  get isUnchanged(): boolean {
    this.#isUnchanged ??= this.#compare();
    return this.#isUnchanged;
  }

  #compare(): boolean {
    const { value, old } = this;
    if (Array.isArray(value) && Array.isArray(old)) {
      if (value.length !== old.length) {
        return false;
      }
      return this.#oldItems === undefined
        ? equalJson(value, old)
        : value.every((_element, index) => this.element(index)?.isUnchanged === true);
    }
    if (isJsonObject(value) && isJsonObject(old)) {
      const fields = Object.keys(value);
      return (
        fields.length === Object.keys(old).length && fields.every((name) => this.field(name)?.isUnchanged === true)
      );
    }
    return value === old;
  }

  get #oldItems(): ListItems | undefined {
    if (this.#items === undefined && Array.isArray(this.old)) {
      this.#items = ListItems.of(this.old, this.#schema);
    }
    return this.#items;
  }

  #child(key: string | number, make: () => Correlation | undefined): Correlation | undefined {
    if (this.#depth >= MAX_NESTING) {
      return undefined;
    }
    if (!this.#children.has(key)) {
      this.#children.set(key, make());
    }
    return this.#children.get(key);
  }
}

/** The elements of a list of type map by their keys. */
export class ListItems {
  readonly #keys: readonly string[];
  readonly #items = new Map<string, JsonObject>();

  private constructor(list: readonly JsonValue[], keys: readonly string[]) {
    this.#keys = keys;
    for (const item of list) {
      const key = this.#keyOf(item);
      if (key !== undefined && isJsonObject(item) && !this.#items.has(key)) {
        this.#items.set(key, item);
      }
    }
  }

  /** Undefined for lists without keys. */
  static of(list: readonly JsonValue[], schema: Schema): ListItems | undefined {
    const keys = schema['x-kubernetes-list-map-keys'] ?? [];
    const isMap = schema['x-kubernetes-list-type'] === 'map' && keys.length > 0 && list.length > 0;
    return isMap ? new ListItems(list, keys) : undefined;
  }

  /** The element with the same keys. */
  find(item: JsonValue | undefined): JsonObject | undefined {
    const key = this.#keyOf(item);
    return key === undefined ? undefined : this.#items.get(key);
  }

  /** The keys as one text; undefined when one is missing or not a scalar. */
  #keyOf(item: JsonValue | undefined): string | undefined {
    if (item === undefined || !isJsonObject(item)) {
      return undefined;
    }
    const values = this.#keys.map((key) => own(item, key) ?? null);
    return values.some((value) => typeof value === 'object') ? undefined : JSON.stringify(values);
  }
}
