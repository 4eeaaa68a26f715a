import type { Expression, Program } from '../../../cel/index.ts';

/** Variables of policies that use others, at most so many one after the other. */
const MAX_DEPTH = 10;

/** An index, or a key that is computed. */
const ANY_KEY = '*';

/** The variables of a policy by name. */
export type Variables = ReadonlyMap<string, Program>;

/** What a chain of fields and keys reads: `c.?resources.?limits['cpu']` has the fields `resources`, `limits`, `cpu`. */
export interface FieldChain {
  /** The name of the variable at its beginning; undefined for another expression. */
  readonly root: string | undefined;
  readonly fields: readonly string[];
}

/**
 * The chain that an expression reads, through optionals (`.?field`, `.orValue(…)`, `.value()`) and variables of the policy.
 * Undefined for other expressions.
 */
export function fieldChain(node: Expression, variables: Variables, depth = 0): FieldChain | undefined {
  const fields: string[] = [];
  let current: Expression | undefined = node;
  for (;;) {
    if (current?.kind === 'identifier') {
      return { root: current.name, fields };
    }
    if (current?.kind === 'select' && !current.isTest) {
      const variable = isVariables(current.operand) ? variables.get(current.field) : undefined;
      if (variable !== undefined && depth < MAX_DEPTH) {
        const before = fieldChain(variable.checked.expression, variables, depth + 1);
        return before && { root: before.root, fields: [...before.fields, ...fields] };
      }
      fields.unshift(current.field);
      current = current.operand;
      continue;
    }
    if (current?.kind !== 'call') {
      return current === undefined ? undefined : { root: undefined, fields };
    }
    const step = stepOf(current);
    if (step === undefined) {
      return undefined;
    }
    fields.unshift(...step.keys);
    current = step.operand;
  }
}

/** Whether the expression is the variables of a policy. */
export function isVariables(node: Expression): boolean {
  return node.kind === 'identifier' && node.name === 'variables';
}

/** One step of a chain: an index, an optional field, or what unwraps an optional. */
function stepOf({
  function: name,
  target,
  args,
}: Extract<Expression, { kind: 'call' }>):
  | { readonly operand: Expression | undefined; readonly keys: readonly string[] }
  | undefined {
  if (name === 'orValue' || name === 'value' || name === 'or') {
    return target === undefined ? undefined : { operand: target, keys: [] };
  }
  if (!['_[_]', '_?._', '_[?_]'].includes(name)) {
    return undefined;
  }
  const key = args[1];
  const text = key?.kind === 'literal' && typeof key.value === 'string' ? key.value : ANY_KEY;
  return { operand: args[0], keys: [text] };
}
