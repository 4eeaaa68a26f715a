import type { Library } from '../model/library.ts';
import { BOOL, DYN, INT, STRING, listOf, mapOf, optionalOf, parameter } from '../model/type.ts';
import { EvaluationFailure, NO_SUCH_OVERLOAD } from '../model/value.ts';
import type { CelResult, CelValue } from '../model/value.ts';
import { isZero } from './arithmetic.ts';
import { MapBuilder, findInMap, keysOf } from './map.ts';
import { CelOptional } from './optional.ts';
import { printValue } from './print.ts';
import { isList, isMap } from './type-name.ts';

const K = parameter('K');
const V = parameter('V');
const OPTIONAL_V = optionalOf(V);
const LIST_V = listOf(V);
const MAP_K_V = mapOf(K, V);

/** The compiler handles these calls, because they do not evaluate all operands. */
const handledByCompiler = (): CelResult => new EvaluationFailure(NO_SUCH_OVERLOAD);

function ofOptional(read: (optional: CelOptional) => CelResult): (value: CelValue) => CelResult {
  return (value) => (value instanceof CelOptional ? read(value) : new EvaluationFailure(NO_SUCH_OVERLOAD));
}

function ofList(read: (list: readonly CelValue[]) => CelResult): (value: CelValue) => CelResult {
  return (value) => (isList(value) ? read(value) : new EvaluationFailure(NO_SUCH_OVERLOAD));
}

/** The value of an optional; a failure if it has none. */
function valueOfOptional(optional: CelOptional): CelResult {
  return optional.value === undefined ? new EvaluationFailure('optional.none() dereference') : optional.value;
}

function elementAt(index: 0 | -1): (list: readonly CelValue[]) => CelResult {
  return (list) => (list.length === 0 ? CelOptional.NONE : new CelOptional(list.at(index)));
}

function unwrap(list: readonly CelValue[]): CelResult {
  const values: CelValue[] = [];
  for (const element of list) {
    if (!(element instanceof CelOptional)) {
      return new EvaluationFailure(`value ${printValue(element)} is not optional`);
    }
    if (element.value !== undefined) {
      values.push(element.value);
    }
  }
  return values;
}

/** Optional values. */
export const OPTIONAL_LIBRARY: Library = {
  name: 'optional',
  since: 28,
  types: [OPTIONAL_V],
  functions: [
    {
      name: 'optional.of',
      summary: 'An optional with a value.',
      overloads: [
        {
          id: 'optional_of',
          isMember: false,
          parameters: [V],
          result: OPTIONAL_V,
          call: (value: CelValue) => new CelOptional(value),
        },
      ],
    },
    {
      name: 'optional.ofNonZeroValue',
      summary: 'An optional with the value, or without one if the value is empty, zero, false or null.',
      overloads: [
        {
          id: 'optional_ofNonZeroValue',
          isMember: false,
          parameters: [V],
          result: OPTIONAL_V,
          call: (value: CelValue) => (isZero(value) ? CelOptional.NONE : new CelOptional(value)),
        },
      ],
    },
    {
      name: 'optional.none',
      summary: 'An optional without a value.',
      overloads: [
        { id: 'optional_none', isMember: false, parameters: [], result: OPTIONAL_V, call: () => CelOptional.NONE },
      ],
    },
    {
      name: 'value',
      summary: 'The value of the optional; an error if it has none.',
      overloads: [
        {
          id: 'optional_value',
          isMember: true,
          parameters: [OPTIONAL_V],
          result: V,
          call: ofOptional(valueOfOptional),
        },
      ],
    },
    {
      name: 'hasValue',
      summary: 'Whether the optional has a value.',
      overloads: [
        {
          id: 'optional_hasValue',
          isMember: true,
          parameters: [OPTIONAL_V],
          result: BOOL,
          call: ofOptional((optional) => optional.value !== undefined),
        },
      ],
    },
    {
      name: 'or',
      summary: 'The optional if it has a value, otherwise the argument.',
      overloads: [
        {
          id: 'optional_or_optional',
          isMember: true,
          parameters: [OPTIONAL_V, OPTIONAL_V],
          result: OPTIONAL_V,
          call: handledByCompiler,
        },
      ],
    },
    {
      name: 'orValue',
      summary: 'The value of the optional, or the argument if it has none.',
      overloads: [
        {
          id: 'optional_orValue_value',
          isMember: true,
          parameters: [OPTIONAL_V, V],
          result: V,
          call: handledByCompiler,
        },
      ],
    },
    {
      name: '_?._',
      summary: 'The field as an optional.',
      overloads: [
        {
          id: 'select_optional_field',
          isMember: false,
          parameters: [DYN, STRING],
          result: OPTIONAL_V,
          call: handledByCompiler,
        },
      ],
    },
    {
      name: '_[?_]',
      summary: 'The element of a list, or the value of a map, as an optional.',
      overloads: [
        {
          id: 'list_optindex_optional_int',
          isMember: false,
          parameters: [LIST_V, INT],
          result: OPTIONAL_V,
          call: handledByCompiler,
        },
        {
          id: 'optional_list_optindex_optional_int',
          isMember: false,
          parameters: [optionalOf(LIST_V), INT],
          result: OPTIONAL_V,
          call: handledByCompiler,
        },
        {
          id: 'map_optindex_optional_value',
          isMember: false,
          parameters: [MAP_K_V, K],
          result: OPTIONAL_V,
          call: handledByCompiler,
        },
        {
          id: 'optional_map_optindex_optional_value',
          isMember: false,
          parameters: [optionalOf(MAP_K_V), K],
          result: OPTIONAL_V,
          call: handledByCompiler,
        },
      ],
    },
    {
      name: '_[_]',
      overloads: [
        {
          id: 'optional_list_index_int',
          isMember: false,
          parameters: [optionalOf(LIST_V), INT],
          result: OPTIONAL_V,
          call: handledByCompiler,
        },
        {
          id: 'optional_map_index_value',
          isMember: false,
          parameters: [optionalOf(MAP_K_V), K],
          result: OPTIONAL_V,
          call: handledByCompiler,
        },
      ],
    },
    {
      name: 'last',
      summary: 'The last element of a list as an optional.',
      overloads: [
        { id: 'list_last', isMember: true, parameters: [LIST_V], result: OPTIONAL_V, call: ofList(elementAt(-1)) },
      ],
    },
    {
      name: 'first',
      summary: 'The first element of a list as an optional.',
      overloads: [
        { id: 'list_first', isMember: true, parameters: [LIST_V], result: OPTIONAL_V, call: ofList(elementAt(0)) },
      ],
    },
    {
      name: 'optional.unwrap',
      summary: 'The values of the optionals in the list that have one.',
      overloads: [
        {
          id: 'optional_unwrap',
          isMember: false,
          parameters: [listOf(OPTIONAL_V)],
          result: LIST_V,
          call: ofList(unwrap),
        },
      ],
    },
    {
      name: 'unwrapOpt',
      summary: 'The values of the optionals in the list that have one.',
      overloads: [
        {
          id: 'optional_unwrapOpt',
          isMember: true,
          parameters: [listOf(OPTIONAL_V)],
          result: LIST_V,
          call: ofList(unwrap),
        },
      ],
    },
  ],
};

function insertEntry(map: CelValue, key: CelValue, value: CelValue): CelResult {
  if (!isMap(map)) {
    return new EvaluationFailure(NO_SUCH_OVERLOAD);
  }
  const builder = new MapBuilder(map);
  return insertInto(builder, key, value) ?? builder.build();
}

/** Adds an entry to a map under construction; a failure if the key exists or is not a valid key. */
export function insertInto(builder: MapBuilder, key: CelValue, value: CelValue): EvaluationFailure | undefined {
  if (builder.has(key)) {
    return new EvaluationFailure(`insert failed: key ${printValue(key)} already exists`);
  }
  return builder.set(key, value) ? undefined : new EvaluationFailure('unsupported key type');
}

function insertMap(map: CelValue, entries: CelValue): CelResult {
  if (!isMap(map) || !isMap(entries)) {
    return new EvaluationFailure(NO_SUCH_OVERLOAD);
  }
  const builder = new MapBuilder(map);
  for (const key of keysOf(entries)) {
    const failure = insertInto(builder, key, findInMap(entries, key) ?? null);
    if (failure !== undefined) {
      return failure;
    }
  }
  return builder.build();
}

/** Functions that the macros with two variables expand to. */
export const COMPREHENSION_LIBRARY: Library = {
  name: 'two-variable-comprehensions',
  since: 32,
  functions: [
    {
      name: 'cel.@mapInsert',
      overloads: [
        {
          id: '@mapInsert_map_map',
          isMember: false,
          parameters: [MAP_K_V, MAP_K_V],
          result: MAP_K_V,
          call: insertMap,
        },
        {
          id: '@mapInsert_map_key_value',
          isMember: false,
          parameters: [MAP_K_V, K, V],
          result: MAP_K_V,
          call: insertEntry,
        },
      ],
    },
  ],
};
