import type { Schema } from '../schema.ts';
import { additionalOf, propertyOf } from './schema-fields.ts';

/** A path below a value, `spec.policies[a]`, and its schema. */
export interface SchemaPath {
  readonly path: string;
  readonly schema: Schema;
}

/** The path of a field; `path` is empty for the object itself. */
export function pathOfField(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}

const TOKEN = /'(?:[^'\\]|\\.)*'|[.[\]]|[^.[\]]+/gsu;

const ESCAPES: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  "'": "'",
  '\\': '\\',
};

/**
 * Parses a `fieldPath` of a rule: `.spec.policies['a']`, without list indices.
 *
 * @returns an error message if it is invalid.
 */
export function parseFieldPath(text: string, root: Schema, { isBracketAllowed = true } = {}): SchemaPath | string {
  const tokens = text.match(TOKEN) ?? [];
  let schema = root;
  let path = '';
  for (let at = 0; at < tokens.length;) {
    let name: string | undefined;
    if (tokens[at] === '.') {
      name = tokens[at + 1];
      at += 2;
    } else if (tokens[at] === '[') {
      if (!isBracketAllowed) {
        return 'array notation is not allowed';
      }
      const quoted = tokens[at + 1] ?? '';
      if (!/^'.*'$/su.test(quoted)) {
        return quoted === '' ? 'unexpected end of JSON path' : `expected single quoted string but got ${quoted}`;
      }
      name = unescape(quoted.slice(1, -1));
      if (tokens[at + 2] !== ']') {
        const got = tokens[at + 2];
        return got === undefined ? 'unexpected end of JSON path' : `expected ] but got ${got}`;
      }
      at += 3;
    } else {
      return `expected [ or . but got: ${tokens[at]}`;
    }
    if (name === undefined) {
      return 'unexpected end of JSON path';
    }
    const isProperty = schema.properties !== undefined;
    const next = isProperty ? propertyOf(schema, name) : additionalOf(schema);
    if (next === undefined) {
      return 'does not refer to a valid field';
    }
    path = isProperty ? pathOfField(path, name) : `${path}[${name}]`;
    schema = next;
  }
  return { path, schema };
}

function unescape(text: string): string {
  return text.replaceAll(/\\(.)/gsu, (_match, letter: string) => ESCAPES[letter] ?? letter);
}
