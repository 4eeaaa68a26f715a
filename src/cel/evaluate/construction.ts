import { EvaluationFailure } from '../model/value.ts';
import type { CelResult, CelValue } from '../model/value.ts';
import type { Run } from './frame.ts';
import { MapBuilder } from './map.ts';
import { CelOptional } from './optional.ts';
import { printValue } from './print.ts';
import type { StructFactory } from './struct.ts';

// Costs of creating lists, maps and structs, independent of their contents and of success.
const LIST_COST = 10;
const MAP_COST = 30;
const STRUCT_COST = 40;

/** `[element, ?optional]`. */
export function compileList(elements: readonly Run[], optionalIndexes: ReadonlySet<number>): Run {
  return (frame) => {
    const list: CelValue[] = [];
    for (const [index, element] of elements.entries()) {
      const value = element(frame);
      if (value instanceof EvaluationFailure) {
        frame.cost += LIST_COST;
        return value;
      }
      if (!optionalIndexes.has(index)) {
        list.push(value);
      } else if (!(value instanceof CelOptional)) {
        frame.cost += LIST_COST;
        return new EvaluationFailure(
          `cannot initialize optional list element from non-optional value ${printValue(value)}`,
        );
      } else if (value.value !== undefined) {
        list.push(value.value);
      }
    }
    frame.cost += LIST_COST;
    return list;
  };
}

interface CompiledEntry {
  readonly key: Run;
  readonly value: Run;
  readonly isOptional: boolean;
}

/** `{key: value, ?key: optional}`. */
export function compileMap(entries: readonly CompiledEntry[]): Run {
  return (frame) => {
    const builder = new MapBuilder();
    for (const entry of entries) {
      const key = entry.key(frame);
      const value = key instanceof EvaluationFailure ? key : entry.value(frame);
      const failure =
        key instanceof EvaluationFailure || value instanceof EvaluationFailure
          ? value
          : addEntry(builder, key, value, entry.isOptional);
      if (failure instanceof EvaluationFailure) {
        frame.cost += MAP_COST;
        return failure;
      }
    }
    frame.cost += MAP_COST;
    return builder.build();
  };
}

function addEntry(
  builder: MapBuilder,
  key: CelValue,
  value: CelValue,
  isOptional: boolean,
): EvaluationFailure | undefined {
  const content = isOptional ? contentOf(value, () => printValue(key)) : value;
  if (content instanceof EvaluationFailure) {
    return content;
  }
  if (content === undefined) {
    builder.delete(key);
    return undefined;
  }
  return builder.set(key, content) ? undefined : new EvaluationFailure('unsupported key type');
}

/** The value of an optional entry; undefined if it has none. */
function contentOf(value: CelValue, name: () => string): CelResult | undefined {
  return value instanceof CelOptional
    ? value.value
    : new EvaluationFailure(
        `cannot initialize optional entry '${name()}' from non-optional value ${printValue(value)}`,
      );
}

interface CompiledField {
  readonly name: string;
  readonly value: Run;
  readonly isOptional: boolean;
}

/** `Type{field: value, ?field: optional}`. */
export function compileStruct(structs: StructFactory, typeName: string, fields: readonly CompiledField[]): Run {
  return (frame) => {
    frame.cost += STRUCT_COST;
    const values = new Map<string, CelValue>();
    for (const field of fields) {
      const value = field.value(frame);
      const content =
        field.isOptional && !(value instanceof EvaluationFailure) ? contentOf(value, () => field.name) : value;
      if (content instanceof EvaluationFailure) {
        return content;
      }
      if (content === undefined) {
        values.delete(field.name);
      } else {
        values.set(field.name, content);
      }
    }
    return structs.create(typeName, values, frame);
  };
}
