import type { Expression } from './ast.ts';

/** The first expression of a tree, including the root, that passes a test. Not recursive, because trees may be deep. */
export function findExpression(root: Expression, test: (node: Expression) => boolean): Expression | undefined {
  const open: Expression[] = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (test(node)) {
      return node;
    }
    open.push(...childrenOf(node));
  }
  return undefined;
}

/** Whether an expression contains a variable, under any local name. */
export function usesVariable(root: Expression, name: string): boolean {
  return findExpression(root, (node) => node.kind === 'identifier' && node.name === name) !== undefined;
}

/** Whether an expression contains a call of a function, on a value of any type. */
export function callsFunction(root: Expression, name: string): boolean {
  return findExpression(root, (node) => node.kind === 'call' && node.function === name) !== undefined;
}

function childrenOf(node: Expression): readonly Expression[] {
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
