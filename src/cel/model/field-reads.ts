import type { Expression } from './ast.ts';
import { childrenOf } from './expression-tree.ts';
import { rootedName } from './rooted-name.ts';

/** A variable, and the fields that lead to what is read of it, with all that is below: `['object', 'metadata', 'labels', 'app']`. */
export type ReadPath = readonly [variable: string, ...fields: string[]];

/**
 * All that an expression can read of its variables: the longest chains of fields and of keys that are texts. An element of a list,
 * a key that is computed, and what a macro visits count as the whole list or map.
 * @param isSkipped nodes that are left out, with all below. Default: none
 */
export function fieldReads(
  root: Expression,
  isSkipped: (node: Expression) => boolean = () => false,
): readonly ReadPath[] {
  const reads = new Map<string, ReadPath>();
  const open = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (isSkipped(node)) {
      continue;
    }
    const path = pathOf(node);
    if (path === undefined) {
      open.push(...childrenOf(node));
    } else {
      reads.set(JSON.stringify(path), path);
    }
  }
  return [...reads.values()];
}

/** Undefined for a node that is no chain of fields from a variable. */
function pathOf(node: Expression): ReadPath | undefined {
  const fields: string[] = [];
  let at = node;
  while (at.kind !== 'identifier') {
    const step = stepOf(at);
    if (step === undefined) {
      return undefined;
    }
    fields.push(step.field);
    at = step.operand;
  }
  return [rootedName(at.name), ...fields.toReversed()];
}

/** The last step of a chain: `operand.field`, `operand["field"]`, `operand.?field`, `operand[?"field"]`. */
function stepOf(node: Expression): { readonly operand: Expression; readonly field: string } | undefined {
  if (node.kind === 'select') {
    return node;
  }
  if (node.kind !== 'call' || !['_[_]', '_?._', '_[?_]'].includes(node.function)) {
    return undefined;
  }
  const [operand, key] = node.args;
  return operand !== undefined && key?.kind === 'literal' && typeof key.value === 'string'
    ? { operand, field: key.value }
    : undefined;
}
