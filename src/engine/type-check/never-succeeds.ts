// Finds expressions that are true for no object of a kind, because they read a field that the kind does not have. A warning about a
// field is no proof: a test with has(), or an operand that is not evaluated, may make it harmless.
import { type Expression, findCertain } from '../../cel/index.ts';

/** Lists that validation of API servers does not allow to be empty: every pod, and every pod template, has a container. */
const NEVER_EMPTY: ReadonlySet<string> = new Set(['containers']);

/** Whether the evaluation of an expression always fails. */
export type Fails = (node: Expression) => boolean;

/**
 * Whether the evaluation fails for every object.
 * @param undefinedFields ids of nodes that select a field which the kind does not have
 * @param failing names of variables whose expression always fails
 */
export function failsAlways(undefinedFields: ReadonlySet<number>, failing: ReadonlySet<string> = new Set()): Fails {
  const isFailure: Fails = (node) =>
    node.kind === 'select' &&
    !node.isTest &&
    !isOptionalChain(node.operand) &&
    (undefinedFields.has(node.id) || (isVariables(node.operand) && failing.has(node.field)));
  return (root) => findCertain(root, isFailure) !== undefined;
}

/** Whether an expression is true for no object: it is false, or fails. An expression without failures is not judged. */
export function isNeverTrue(node: Expression, fails: Fails): boolean {
  if (node.kind === 'comprehension') {
    return fails(node) || isNeverTrueOfAny(node, fails);
  }
  if (node.kind !== 'call') {
    return fails(node);
  }
  switch (node.function) {
    case '_&&_':
      return node.args.some((arg) => isNeverTrue(arg, fails));
    case '_||_':
      return node.args.every((arg) => isNeverTrue(arg, fails));
    case '_?_:_': {
      const [condition, ...branches] = node.args;
      return (condition !== undefined && fails(condition)) || branches.every((one) => isNeverTrue(one, fails));
    }
    default:
      return fails(node);
  }
}

/** `all` of a list that is not empty, and `exists` of any list, with a condition that is true for no element. */
function isNeverTrueOfAny(node: Extract<Expression, { kind: 'comprehension' }>, fails: Fails): boolean {
  const { step, range } = node;
  const condition = step.kind === 'call' ? step.args[1] : undefined;
  if (step.kind !== 'call' || condition === undefined || !isNeverTrue(condition, fails)) {
    return false;
  }
  return step.function === '_||_' || (step.function === '_&&_' && isNeverEmpty(range));
}

function isNeverEmpty(range: Expression): boolean {
  return range.kind === 'select'
    ? !range.isTest && NEVER_EMPTY.has(range.field)
    : range.kind === 'call' && range.function === '_+_' && range.args.some(isNeverEmpty);
}

/** Whether a value is optional, so that a field which it does not have is none: `object.?spec.x`, `a[?0].x`. */
function isOptionalChain(node: Expression): boolean {
  let current = node;
  while (current.kind === 'select') {
    current = current.operand;
  }
  return current.kind === 'call' && (current.function === '_?._' || current.function === '_[?_]');
}

function isVariables(node: Expression): boolean {
  return node.kind === 'identifier' && node.name === 'variables';
}
