// Finds expressions that are true for no object of a kind, because they read a field that the kind does not have, or call a function
// with a value of another type. A warning is no proof: a test with has(), or an operand that is not evaluated, may make it harmless.
import { type Expression, findCertain } from '../../cel/index.ts';
import { isVariables } from '../cel-policy/lints/field-chain.ts';

/** Lists that validation of API servers does not allow to be empty: every pod, and every pod template, has a container. */
const NEVER_EMPTY: ReadonlySet<string> = new Set(['containers']);

/**
 * Functions that fail for values whose types the checker refuses. Others may accept them: equality of any values is defined, and the
 * types of the elements of lists do not matter.
 */
const STRICT: ReadonlySet<string> = new Set(
  (
    '_<_ _<=_ _>_ _>=_ _-_ _*_ _/_ _%_ -_ !_ ' +
    'contains startsWith endsWith matches lowerAscii upperAscii split replace substring trim'
  ).split(' '),
);

/** What the type checker found in an expression: ids of nodes that are evaluated. */
export interface Mistakes {
  /** Nodes that select a field which the kind does not have. */
  readonly undefinedFields: ReadonlySet<number>;
  /** Calls with values of other types than the function has. */
  readonly mismatches: ReadonlySet<number>;
}

/** Whether the evaluation of an expression always fails. */
export type Fails = (node: Expression) => boolean;

/**
 * Whether the evaluation fails for every object.
 * @param failing names of variables whose expression always fails
 */
export function failsAlways({ undefinedFields, mismatches }: Mistakes, failing: ReadonlySet<string>): Fails {
  const isFailure: Fails = (node) =>
    node.kind === 'call'
      ? mismatches.has(node.id) && STRICT.has(node.function)
      : node.kind === 'select' &&
        !node.isTest &&
        !isOptionalChain(node.operand) &&
        (undefinedFields.has(node.id) || (isVariables(node.operand) && failing.has(node.field)));
  return (root) => findCertain(root, isFailure) !== undefined;
}

/**
 * Whether an expression is true for no object: it is false, or fails. An expression without mistakes is not judged.
 * @param mismatches see {@link Mistakes}
 */
export function isNeverTrue(node: Expression, fails: Fails, mismatches: ReadonlySet<number>): boolean {
  const isNever = (one: Expression): boolean => isNeverTrue(one, fails, mismatches);
  if (node.kind === 'comprehension') {
    return fails(node) || isNeverTrueOfAny(node, isNever);
  }
  if (node.kind !== 'call') {
    return fails(node);
  }
  switch (node.function) {
    case '_&&_':
      return node.args.some(isNever);
    case '_||_':
      return node.args.every(isNever);
    case '_?_:_': {
      const [condition, ...branches] = node.args;
      return (condition !== undefined && fails(condition)) || branches.every(isNever);
    }
    case '_==_':
      // Values of different types are not equal.
      return mismatches.has(node.id) || fails(node);
    default:
      return fails(node);
  }
}

/** `all` of a list that is not empty, and `exists` of any list, with a condition that is true for no element. */
function isNeverTrueOfAny(
  { step, range }: Extract<Expression, { kind: 'comprehension' }>,
  isNever: (node: Expression) => boolean,
): boolean {
  const condition = step.kind === 'call' ? step.args[1] : undefined;
  if (step.kind !== 'call' || condition === undefined || !isNever(condition)) {
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
