// Pruning of unknown fields by structural schemas, like apiextensions.
import type { JsonObject, JsonValue } from '../../values/index.ts';
import { OBJECT_META_SCHEMA } from '../object-meta-schema.ts';
import type { Schema } from '../schema.ts';
import { pathOfField } from './field-path.ts';
import { additionalOf, MAX_NESTING, propertyOf } from './schema-fields.ts';
import { own } from '../../values/index.ts';

/** Fields of every object, also of embedded ones; schemas need not name them. */
const RESOURCE_FIELDS = new Set(['apiVersion', 'kind', 'metadata']);

/**
 * Maximum length of all returned paths; further fields are removed without being returned. A long key with many fields
 * below would otherwise give gigabytes of paths.
 */
export const MAX_FOUND_CHARACTERS = 1024 * 1024;

export interface PruneOptions {
  /** Whether unknown fields are removed, or only found. */
  readonly isRemoving: boolean;
  /** Whether paths are sorted, or in the document's order. Default: sorted. */
  readonly areSorted?: boolean;
}

/**
 * Finds unknown fields.
 *
 * @returns their paths: `spec.foo`, `spec.rules[0].bar`.
 */
export function unknownFields(object: JsonObject, schema: Schema, options: PruneOptions): string[] {
  const walk = new PruneWalk(options);
  walk.resource(object, schema, '');
  return options.areSorted === false ? walk.found : walk.found.toSorted();
}

class PruneWalk {
  readonly found: string[] = [];
  readonly #options: PruneOptions;
  #depth = 0;
  #characters = 0;

  constructor(options: PruneOptions) {
    this.#options = options;
  }

  /** A whole object, whose metadata are known without a schema. */
  resource(object: JsonObject, schema: Schema, path: string): void {
    const metadata = own(object, 'metadata');
    if (metadata !== undefined) {
      this.#value(metadata, OBJECT_META_SCHEMA, pathOfField(path, 'metadata'));
    }
    this.#fields(object, schema, path, { isResource: true });
  }

  #find(path: string): void {
    if (this.#characters < MAX_FOUND_CHARACTERS) {
      this.found.push(path);
    }
    this.#characters += path.length;
  }

  #value(value: JsonValue, schema: Schema | undefined, path: string): void {
    if (this.#depth >= MAX_NESTING || typeof value !== 'object' || value === null) {
      return;
    }
    this.#depth += 1;
    if (Array.isArray(value)) {
      const items = schema !== undefined && isPreserving(schema) ? preserving(schema.items) : schema?.items;
      for (const [index, element] of value.entries()) {
        this.#value(element, items, `${path}[${index}]`);
      }
    } else if (schema?.['x-kubernetes-embedded-resource'] === true) {
      this.resource(value, schema, path);
    } else {
      this.#fields(value, schema, path, { isResource: false });
    }
    this.#depth -= 1;
  }

  #fields(object: JsonObject, schema: Schema | undefined, path: string, { isResource }: { isResource: boolean }): void {
    for (const [field, value] of Object.entries(object)) {
      if (isResource && RESOURCE_FIELDS.has(field)) {
        continue;
      }
      const property = schema === undefined ? undefined : (propertyOf(schema, field) ?? additionalOf(schema));
      if (property !== undefined) {
        this.#value(value, property, pathOfField(path, field));
      } else if (schema === undefined || !isPreserving(schema)) {
        this.#find(pathOfField(path, field));
        if (this.#options.isRemoving) {
          delete object[field];
        }
      }
    }
  }
}

/** Whether an object may have any fields. `additionalProperties: true` allows that in builtin kinds only. */
function isPreserving(schema: Schema): boolean {
  return schema['x-kubernetes-preserve-unknown-fields'] === true || schema.additionalProperties === true;
}

/** Elements of a list that preserves unknown fields preserve theirs as well. */
function preserving(items: Schema | undefined): Schema {
  return { ...items, 'x-kubernetes-preserve-unknown-fields': true };
}
