import { compareStrings, jsonText } from '../../go/index.ts';
import { valueText } from '../field-error.ts';
import type { JsonValue } from '../../values/index.ts';
import { compareJson, compareLists } from './json-order.ts';
import { checkMergeDepth, MergeError } from './merge-error.ts';
import { isJsonObject, parseJson } from '../../values/index.ts';

/** One step of a path through an object. Steps are equal when their `text` is. */
export type PathElement = {
  /** In the format of FieldsV1: `f:name`, `k:{"name":"a"}`, `v:"x"`, `i:0`. */
  readonly text: string;
} & (
  | { readonly kind: 'field'; readonly name: string }
  /** The list element with these key fields, in the order of their names. */
  | { readonly kind: 'key'; readonly fields: readonly KeyField[] }
  /** The element of a set. */
  | { readonly kind: 'value'; readonly value: JsonValue }
  | { readonly kind: 'index'; readonly index: number }
);

export type KeyField = readonly [name: string, value: JsonValue];

export type FieldPath = readonly PathElement[];

export function fieldElement(name: string): PathElement {
  return { kind: 'field', name, text: `f:${name}` };
}

export function keyElement(fields: readonly KeyField[]): PathElement {
  const sorted = fields.length < 2 ? fields : fields.toSorted(([a], [b]) => compareStrings(a, b));
  const text = sorted.map(([name, value]) => `${jsonText(name)}:${jsonText(value)}`).join(',');
  return { kind: 'key', fields: sorted, text: `k:{${text}}` };
}

export function valueElement(value: JsonValue): PathElement {
  return { kind: 'value', value, text: `v:${jsonText(value)}` };
}

function indexElement(index: number): PathElement {
  return { kind: 'index', index, text: `i:${index}` };
}

/** Parses a key of FieldsV1; undefined for unknown kinds of keys. Throws MergeError `fields-malformed`. */
export function parsePathElement(text: string): PathElement | undefined {
  if (text.length < 2) {
    throw malformed('key must be 2 characters long:', text);
  }
  if (text[1] !== ':') {
    throw malformed('missing colon:', text);
  }
  const rest = text.slice(2);
  switch (text[0]) {
    case 'f':
      return fieldElement(rest);
    case 'v':
      return valueElement(parsed(rest));
    case 'k': {
      const fields = parsed(rest);
      if (!isJsonObject(fields)) {
        throw malformed('expected an object behind k:', text);
      }
      return keyElement(Object.entries(fields));
    }
    case 'i':
      if (!/^[+-]?\d{1,15}$/u.test(rest)) {
        throw malformed('expected a number behind i:', text);
      }
      return indexElement(Number(rest));
    default:
      return undefined;
  }
}

function parsed(text: string): JsonValue {
  let value: JsonValue;
  try {
    value = parseJson(text) as JsonValue;
  } catch (error) {
    throw malformed('expected JSON:', text, error);
  }
  checkNesting(value);
  return value;
}

/** The nesting of a value that was text is unbounded until here. */
function checkNesting(value: JsonValue, depth = 0): void {
  checkMergeDepth(depth);
  if (typeof value === 'object' && value !== null) {
    for (const one of Object.values(value)) {
      checkNesting(one, depth + 1);
    }
  }
}

function malformed(why: string, text: string, cause?: unknown): MergeError {
  return new MergeError('fields-malformed', `parsing key as path element: ${why} ${text}`, { cause });
}

const KINDS = ['field', 'key', 'value', 'index'];

/** Fields first, then keys, values, indexes; each by content. */
export function compareElements(left: PathElement, right: PathElement): number {
  if (left.kind === 'field' && right.kind === 'field') {
    return compareStrings(left.name, right.name);
  }
  if (left.kind === 'key' && right.kind === 'key') {
    return compareLists(
      left.fields,
      right.fields,
      ([a, one], [b, other]) => compareStrings(a, b) || compareJson(one, other),
    );
  }
  if (left.kind === 'value' && right.kind === 'value') {
    return compareJson(left.value, right.value);
  }
  if (left.kind === 'index' && right.kind === 'index') {
    return left.index - right.index;
  }
  return KINDS.indexOf(left.kind) - KINDS.indexOf(right.kind);
}

/** `.spec.containers[name="a"].image`: a path in messages. */
export function pathText(path: FieldPath): string {
  return path.map(elementText).join('');
}

/** `.spec`, `[name="a"]`, `[="x"]`, `[0]`. */
export function elementText(element: PathElement): string {
  switch (element.kind) {
    case 'field':
      return `.${element.name}`;
    case 'key':
      return `[${element.fields.map(([name, value]) => `${name}=${valueText(value)}`).join(',')}]`;
    case 'value':
      return `[=${valueText(element.value)}]`;
    default:
      return `[${element.index}]`;
  }
}
