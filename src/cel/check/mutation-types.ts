import { DYN, STRING, struct } from '../model/type.ts';
import type { CelType } from '../model/type.ts';
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

/**
 * As {@link MUTATION_TYPES}, but only with the fields that objects of a kind have. Values may have any type.
 * @param object the type of objects of the kind
 */
export function mutationTypesOf(object: CelType, types: TypeProvider): TypeProvider {
  const typeOfPath = (name: string): CelType =>
    name
      .split('.')
      .slice(1)
      .reduce((type, field) => valueOf(fieldOf(type, field, types) ?? DYN), object);
  return {
    ...MUTATION_TYPES,
    fieldType: (name, field) => {
      if (!isObjectType(name)) {
        return MUTATION_TYPES.fieldType(name, field);
      }
      return fieldOf(typeOfPath(name), field, types) === undefined ? undefined : DYN;
    },
    fieldNames: (name) => {
      const type = isObjectType(name) ? typeOfPath(name) : DYN;
      return type.kind === 'struct' ? (types.fieldNames?.(type.name) ?? []) : (MUTATION_TYPES.fieldNames?.(name) ?? []);
    },
  };
}

/** Undefined if there is no such field. Fields of what is no struct may be anything. */
function fieldOf(type: CelType, field: string, types: TypeProvider): CelType | undefined {
  return type.kind === 'struct' ? types.fieldType(type.name, field) : DYN;
}

/** The type of elements and of values of entries, whose types are named by the path of the list or map. */
function valueOf(type: CelType): CelType {
  switch (type.kind) {
    case 'list':
      return valueOf(type.element);
    case 'map':
      return valueOf(type.value);
    default:
      return type;
  }
}

function isObjectType(name: string): boolean {
  return name === OBJECT || name.startsWith(`${OBJECT}.`);
}
