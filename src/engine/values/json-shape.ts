import { isJsonObject } from './json-text.ts';

/**
 * Maximum number of entries of a list or map of a pod: a hundred times the largest known pods. Bounds the time and
 * memory of a check, and the length of messages.
 */
export const MAX_ENTRIES = 5_000;

/** A mistake in the shape of a value: its path (`.spec.containers[0]`), expected and found type. */
export interface ShapeFault {
  readonly path: string;
  readonly problem: string;
}

/** The shape of untrusted JSON. Values are validated in place, not copied. */
export interface Shape<Value> {
  readonly faultIn: (value: unknown) => ShapeFault | undefined;
  /** Never set; carries the type. */
  readonly type?: Value;
}

/** The type of the values that a shape accepts. */
export type ValueOf<S> = S extends Shape<infer Value> ? Value : never;

function leaf<Value>(expected: string, isSound: (value: unknown) => boolean): Shape<Value> {
  return {
    faultIn(value) {
      return isSound(value) ? undefined : { path: '', problem: `expected ${expected}, got ${nameOf(value)}` };
    },
  };
}

export const text: Shape<string> = leaf('text', (value) => typeof value === 'string');
export const flag: Shape<boolean> = leaf('true or false', (value) => typeof value === 'boolean');
export const integer: Shape<number> = leaf('a whole number', Number.isInteger);

export function list<Value>(elements: Shape<Value>): Shape<readonly Value[]> {
  return {
    faultIn(value) {
      if (!Array.isArray(value)) {
        return { path: '', problem: `expected a list, got ${nameOf(value)}` };
      }
      if (value.length > MAX_ENTRIES) {
        return { path: '', problem: `expected at most ${MAX_ENTRIES} elements, got ${value.length}` };
      }
      for (let index = 0; index < value.length; index++) {
        const fault = elements.faultIn(value[index]);
        if (fault !== undefined) {
          return { ...fault, path: `[${index}]${fault.path}` };
        }
      }
      return undefined;
    },
  };
}

/** Any keys. Null counts as the empty value, as in Kubernetes' decoder. */
export function record<Value>(values: Shape<Value>): Shape<Readonly<Record<string, Value | null>>> {
  return {
    faultIn: (value) =>
      faultInMembers(
        value,
        () => values,
        (key) => `[${key}]`,
      ),
  };
}

/** The given keys, all optional; null counts as missing, as in Kubernetes' decoder. Other keys may have any value. */
export function object<Fields extends Readonly<Record<string, Shape<unknown>>>>(
  fields: Fields,
): Shape<{ readonly [Key in keyof Fields]?: ValueOf<Fields[Key]> | null }> {
  const shapes = new Map<string, Shape<unknown>>(Object.entries(fields));
  return {
    faultIn: (value) =>
      faultInMembers(
        value,
        (key) => shapes.get(key),
        (key) => `.${key}`,
      ),
  };
}

function faultInMembers(
  value: unknown,
  shapeOf: (key: string) => Shape<unknown> | undefined,
  pathOf: (key: string) => string,
): ShapeFault | undefined {
  if (!isJsonObject(value)) {
    return { path: '', problem: `expected an object, got ${nameOf(value)}` };
  }
  const keys = Object.keys(value);
  if (keys.length > MAX_ENTRIES) {
    return { path: '', problem: `expected at most ${MAX_ENTRIES} keys, got ${keys.length}` };
  }
  for (const key of keys) {
    const member = value[key];
    const fault = member === null || member === undefined ? undefined : shapeOf(key)?.faultIn(member);
    if (fault !== undefined) {
      return { ...fault, path: `${pathOf(key)}${fault.path}` };
    }
  }
  return undefined;
}

/** The type of a JSON value, for messages. */
function nameOf(value: unknown): string {
  if (value === null || value === undefined) {
    return 'nothing';
  }
  if (typeof value === 'object') {
    return Array.isArray(value) ? 'a list' : 'an object';
  }
  return typeof value === 'string' ? 'text' : JSON.stringify(value);
}
