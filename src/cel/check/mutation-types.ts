import { DYN, STRING, struct } from '../type.ts';
import type { CelType } from '../type.ts';
import type { TypeProvider } from './declarations.ts';

const OBJECT = 'Object';
const JSON_PATCH = 'JSONPatch';

const JSON_PATCH_FIELDS: ReadonlyMap<string, CelType> = new Map([
  ['op', STRING],
  ['path', STRING],
  ['from', STRING],
  ['value', DYN],
]);

/**
 * Types that mutations construct: `Object`, `Object.spec`, `Object.spec.containers` and so on, with any field of any
 * type because the schema is unknown; and `JSONPatch`.
 */
export const MUTATION_TYPES: TypeProvider = {
  findStruct: (name) => (isObjectType(name) || name === JSON_PATCH ? struct(name) : undefined),
  fieldType: (name, field) => (name === JSON_PATCH ? JSON_PATCH_FIELDS.get(field) : DYN),
  fieldNames: (name) => (name === JSON_PATCH ? [...JSON_PATCH_FIELDS.keys()] : []),
  mayQualify: (firstWord) => firstWord === OBJECT,
};

function isObjectType(name: string): boolean {
  return name === OBJECT || name.startsWith(`${OBJECT}.`);
}
