// Finds the schema of what an expression reads of the object, through macros: `c.image` in `object.spec.containers.all(c, …)`.
import { type Expression, expressionsOf } from '../../../cel/index.ts';
import type { Schema } from '../../../resources/index.ts';
import { fieldChain, type Variables } from './field-chain.ts';

/** Macros in macros that are followed, at most. */
const MAX_DEPTH = 10;
/** An element of a list; of a map, macros with one variable have the keys. */
const ELEMENT = '[]';

/** What variables of macros stand for, by their names. */
export type MacroVariables = ReadonlyMap<string, MacroVariable>;

interface MacroVariable {
  readonly range: Expression;
  /** From the range to the value: {@link ELEMENT}, or `*`. */
  readonly step: string;
}

/** The variables of all macros in an expression. */
export function macroVariables(root: Expression): MacroVariables {
  return new Map(
    [...expressionsOf(root)].flatMap((node): readonly (readonly [string, MacroVariable])[] => {
      if (node.kind !== 'comprehension') {
        return [];
      }
      const { variable, secondVariable, range } = node;
      return secondVariable === undefined
        ? [[variable, { range, step: ELEMENT }]]
        : [[secondVariable, { range, step: '*' }]];
    }),
  );
}

/** The schema of a field of the object; undefined for other expressions, and for fields that are not known. */
export function fieldSchema(
  node: Expression,
  variables: Variables,
  macros: MacroVariables,
  root: Schema,
): Schema | undefined {
  return objectPath(node, variables, macros)?.reduce<Schema | undefined>(
    (schema, step) => schema && schemaBelow(schema, step),
    root,
  );
}

function objectPath(
  node: Expression,
  variables: Variables,
  macros: MacroVariables,
  depth = 0,
): readonly string[] | undefined {
  const { root = '', fields = [] } = fieldChain(node, variables) ?? {};
  if (root === 'object' || root === 'oldObject') {
    return fields;
  }
  const macro = depth < MAX_DEPTH ? macros.get(root) : undefined;
  const above = macro && objectPath(macro.range, variables, macros, depth + 1);
  return macro && above && [...above, macro.step, ...fields];
}

function schemaBelow(whole: Schema, step: string): Schema | undefined {
  const schema = whole.type === undefined && whole.allOf?.length === 1 ? (whole.allOf[0] ?? whole) : whole;
  if (schema.items !== undefined) {
    return schema.items;
  }
  const { properties, additionalProperties } = schema;
  if (step === ELEMENT) {
    return undefined;
  }
  const field = properties !== undefined && Object.hasOwn(properties, step) ? properties[step] : undefined;
  return field ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined);
}
