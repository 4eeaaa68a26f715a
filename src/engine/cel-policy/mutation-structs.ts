import { quote } from '../../go/index.ts';
import {
  CelDouble,
  CelMap,
  CelOptional,
  CelStruct,
  CelUint,
  equalValues,
  EvaluationFailure,
  textInJson,
  typeNameOf,
} from '../../cel/index.ts';
import type { CelResult, CelValue, StructFactory } from '../../cel/index.ts';
import { MAX_NESTING } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';

const JSON_PATCH = 'JSONPatch';
const OBJECT = 'Object';

/** A value of `Object{…}`, `Object.spec{…}` and so on. */
export class ObjectValue extends CelStruct {
  readonly typeName: string;
  readonly fields: ReadonlyMap<string, CelValue>;

  constructor(typeName: string, fields: ReadonlyMap<string, CelValue>) {
    super();
    this.typeName = typeName;
    this.fields = fields;
  }

  get(field: string): CelResult | undefined {
    return this.fields.get(field);
  }

  equals(other: CelValue): boolean {
    return (
      other instanceof ObjectValue &&
      other.typeName === this.typeName &&
      other.fields.size === this.fields.size &&
      [...this.fields].every(([name, value]) => {
        const theirs = other.fields.get(name);
        return theirs !== undefined && equalValues(value, theirs);
      })
    );
  }
}

/** A value of `JSONPatch{…}`: one operation. */
export class JsonPatchValue extends CelStruct {
  readonly typeName = JSON_PATCH;
  readonly fields: ReadonlyMap<string, CelValue>;

  constructor(fields: ReadonlyMap<string, CelValue>) {
    super();
    this.fields = fields;
  }

  get(field: string): CelResult | undefined {
    return this.fields.get(field) ?? (field === 'value' ? undefined : '');
  }

  override has(field: string): CelResult {
    const value = this.fields.get(field);
    return value !== undefined && (field === 'value' || value !== '');
  }

  equals(other: CelValue): boolean {
    if (!(other instanceof JsonPatchValue)) {
      return false;
    }
    const value = this.fields.get('value');
    const theirs = other.fields.get('value');
    return (
      ['op', 'path', 'from'].every((field) => this.get(field) === other.get(field)) &&
      (value === undefined || theirs === undefined ? value === theirs : equalValues(value, theirs))
    );
  }

  /** One of the text fields. */
  text(field: 'op' | 'path' | 'from'): string {
    const value = this.fields.get(field);
    return typeof value === 'string' ? value : '';
  }
}

/** Creates the values of mutations. */
export const MUTATION_STRUCTS: StructFactory = {
  has: (typeName) => typeName === JSON_PATCH || typeName === OBJECT || typeName.startsWith(`${OBJECT}.`),
  create(typeName, fields) {
    if (typeName !== JSON_PATCH) {
      return new ObjectValue(typeName, fields);
    }
    for (const [name, value] of fields) {
      if (name !== 'value' && typeof value !== 'string') {
        return new EvaluationFailure(`unexpected type ${goTypeOf(value)} for JSONPatchType '${name}' field`);
      }
    }
    return new JsonPatchValue(fields);
  },
};

/** A value without a JSON form, or of a wrong type. */
export class MutationValueError extends Error {}

/**
 * Checks that structs are named by their field paths: `Object.spec{template: Object.spec.template{}}`. Throws
 * MutationValueError with the wrong names.
 */
export function checkTypeNames(value: ObjectValue): void {
  const errors: string[] = [];
  const open: { readonly value: CelValue; readonly path: string; readonly depth: number }[] = [
    { value, path: value.typeName, depth: 0 },
  ];
  for (let item = open.pop(); item !== undefined; item = open.pop()) {
    const { value: current, path, depth } = item;
    if (depth > MAX_NESTING) {
      throw tooDeep();
    }
    if (current instanceof ObjectValue) {
      if (current.typeName !== path) {
        errors.push(
          `unexpected type name ${quote(current.typeName)}, expected ${quote(path)}, which matches field name path from root Object type`,
        );
      }
      for (const [name, field] of current.fields) {
        open.push({ value: field, path: `${path}.${name}`, depth: depth + 1 });
      }
    } else {
      for (const child of childrenOf(current)) {
        open.push({ value: child, path, depth: depth + 1 });
      }
    }
  }
  if (errors.length > 0) {
    throw new MutationValueError(`type mismatch: ${errors.join('\n')}`);
  }
}

function childrenOf(value: CelValue): readonly CelValue[] {
  if (Array.isArray(value)) {
    return value as readonly CelValue[];
  }
  if (value instanceof CelMap) {
    return Array.from(value.entries.values(), ([, one]) => one);
  }
  return isRecord(value) ? Object.values(value) : [];
}

/** A value as JSON. Throws MutationValueError for values without a JSON form. */
export function jsonOf(value: CelValue, depth = 0): JsonValue {
  if (depth > MAX_NESTING) {
    throw tooDeep();
  }
  if (value === null || typeof value === 'boolean' || typeof value === 'string') {
    return value;
  }
  if (typeof value === 'number') {
    return numberOf(value);
  }
  if (Array.isArray(value)) {
    return (value as readonly CelValue[]).map((element) => jsonOf(element, depth + 1));
  }
  const text = textInJson(value);
  if (text !== undefined) {
    return text;
  }
  if (value instanceof CelDouble) {
    return numberOf(value.value);
  }
  if (value instanceof CelUint) {
    return Number(value.value);
  }
  if (value instanceof CelMap) {
    return mapOf(value, depth);
  }
  if (value instanceof ObjectValue) {
    return fromEntries([...value.fields].map(([name, field]) => [name, jsonOf(field, depth + 1)]));
  }
  if (isRecord(value)) {
    return fromEntries(Object.entries(value).map(([key, one]) => [key, jsonOf(one, depth + 1)]));
  }
  throw new MutationValueError(
    `unsupported value type: ${value instanceof CelOptional ? 'optional_type' : typeNameOf(value)}`,
  );
}

function mapOf(map: CelMap, depth: number): JsonObject {
  return fromEntries(
    Array.from(map.entries.values(), ([key, value]) => {
      if (typeof key !== 'string') {
        throw new MutationValueError(`unsupported type conversion from '${typeNameOf(key)}' to string`);
      }
      return [key, jsonOf(value, depth + 1)] as const;
    }),
  );
}

/** Own properties with any names, such as `__proto__`. */
function fromEntries(entries: readonly (readonly [string, JsonValue])[]): JsonObject {
  return Object.fromEntries(entries);
}

function numberOf(value: number): JsonValue {
  if (!Number.isFinite(value)) {
    throw new MutationValueError(`unsupported number: ${value}`);
  }
  return value;
}

function isRecord(value: CelValue): value is { readonly [key: string]: CelValue } {
  if (typeof value !== 'object' || value === null) {
    return false;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function goTypeOf(value: CelValue): string {
  switch (typeof value) {
    case 'number':
      return Number.isInteger(value) ? 'int64' : 'float64';
    case 'bigint':
      return 'int64';
    case 'boolean':
      return 'bool';
    default:
      return value instanceof CelDouble ? 'float64' : value instanceof CelUint ? 'uint64' : typeNameOf(value);
  }
}

function tooDeep(): MutationValueError {
  return new MutationValueError(`the value is nested deeper than ${MAX_NESTING} levels`);
}
