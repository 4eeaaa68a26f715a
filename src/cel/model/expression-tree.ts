import type { Expression } from './ast.ts';

/** The first expression of a tree, including the root, that passes a test. */
export function findExpression(root: Expression, test: (node: Expression) => boolean): Expression | undefined {
  return search(root, test, childrenOf);
}

/**
 * The first expression that passes a test, among those whose failure always makes the evaluation of the root fail: without
 * operands that `&&`, `||`, `?:`, `or` and macros may skip or whose failure they may ignore.
 */
export function findCertain(root: Expression, test: (node: Expression) => boolean): Expression | undefined {
  return search(root, test, certainChildrenOf);
}

/** All expressions of a tree, including the root. */
export function* expressionsOf(root: Expression): Generator<Expression> {
  yield* walk(root, childrenOf);
}

function search(
  root: Expression,
  test: (node: Expression) => boolean,
  children: (node: Expression) => readonly Expression[],
): Expression | undefined {
  for (const node of walk(root, children)) {
    if (test(node)) {
      return node;
    }
  }
  return undefined;
}

/** Not recursive, because trees may be deep. */
function* walk(root: Expression, children: (node: Expression) => readonly Expression[]): Generator<Expression> {
  const open: Expression[] = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    yield node;
    open.push(...children(node));
  }
}

/** Whether an expression contains a variable, under any local name. */
export function usesVariable(root: Expression, name: string): boolean {
  return findExpression(root, (node) => node.kind === 'identifier' && node.name === name) !== undefined;
}

/**
 * Whether a node is `variable.field` or `variable[key]`, which fails while the variable is null. `has(variable.field)` is
 * false then.
 */
export function readsField(node: Expression, variable: string): boolean {
  switch (node.kind) {
    case 'select':
      return !node.isTest && isVariable(node.operand, variable);
    case 'call':
      return node.function === '_[_]' && isVariable(node.args[0], variable);
    default:
      return false;
  }
}

function isVariable(node: Expression | undefined, name: string): boolean {
  return node?.kind === 'identifier' && node.name === name;
}

/** Whether an expression contains a call of a function, on a value of any type. */
export function callsFunction(root: Expression, name: string): boolean {
  return findExpression(root, (node) => node.kind === 'call' && node.function === name) !== undefined;
}

function certainChildrenOf(node: Expression): readonly Expression[] {
  if (node.kind === 'comprehension') {
    return [node.range, node.initial];
  }
  if (node.kind !== 'call') {
    return childrenOf(node);
  }
  switch (node.function) {
    case '_&&_':
    case '_||_':
      return [];
    case '_?_:_':
      return node.args.slice(0, 1);
    case 'or':
    case 'orValue':
      return node.target === undefined ? [] : [node.target];
    default:
      return childrenOf(node);
  }
}

/** The parts of an expression. */
export function childrenOf(node: Expression): readonly Expression[] {
  switch (node.kind) {
    case 'literal':
    case 'identifier':
      return [];
    case 'select':
      return [node.operand];
    case 'call':
      return node.target === undefined ? node.args : [node.target, ...node.args];
    case 'list':
      return node.elements;
    case 'map':
      return node.entries.flatMap(({ key, value }) => [key, value]);
    case 'struct':
      return node.fields.map(({ value }) => value);
    default:
      return [node.range, node.initial, node.condition, node.step, node.result];
  }
}
