// Which parts of an expression are evaluated for objects of one kind: `object.kind != 'Pod' || …` for pods only.
import { childrenOf, type Expression } from '../../cel/index.ts';
import type { KnownValues } from './known-values.ts';

/** Parts of an expression, by the ids of their nodes. */
export interface Reachability {
  /** Never evaluated, or without influence on the result. */
  readonly dead: ReadonlySet<number>;
  /** Behind a comparison of the kind that holds. */
  readonly chosen: ReadonlySet<number>;
  /** Tests for a field: `has(a.b)`, `a.?b`. */
  readonly tests: ReadonlySet<number>;
}

/**
 * @param values with tests of fields that the kind does not have
 * @param facts only what is known of the kind
 */
export function reachability(root: Expression, values: KnownValues, facts: KnownValues): Reachability {
  const dead = new Set<number>();
  const chosen = new Set<number>();
  const tests = new Set<number>();
  const open: { readonly node: Expression; readonly isDead: boolean; readonly isChosen: boolean }[] = [
    { node: root, isDead: false, isChosen: false },
  ];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node, isDead, isChosen } = next;
    if (isDead) {
      dead.add(node.id);
    }
    if (isChosen) {
      chosen.add(node.id);
    }
    if ((node.kind === 'select' && node.isTest) || (node.kind === 'call' && node.function === '_?._')) {
      tests.add(node.id);
    }
    for (const child of childrenOf(node)) {
      open.push({
        node: child,
        isDead: isDead || isSkipped(node, child, values),
        isChosen: isChosen || isDecided(node, child, facts),
      });
    }
  }
  return { dead, chosen, tests };
}

function isSkipped(node: Expression, child: Expression, values: KnownValues): boolean {
  if (node.kind !== 'call') {
    return false;
  }
  const others = node.args.filter((arg) => arg !== child);
  switch (node.function) {
    case '_||_':
      return others.some((other) => values.of(other) === true);
    case '_&&_':
      return others.some((other) => values.of(other) === false);
    case '_?_:_': {
      const [condition, yes, no] = node.args;
      const value = condition && values.of(condition);
      return (child === yes && value === false) || (child === no && value === true);
    }
    default:
      return false;
  }
}

/** Whether the value of an operand beside it is known, so that the child decides. */
function isDecided(node: Expression, child: Expression, facts: KnownValues): boolean {
  const isLogic = node.kind === 'call' && ['_||_', '_&&_', '_?_:_'].includes(node.function);
  return isLogic && node.args.some((arg) => arg !== child && typeof facts.of(arg) === 'boolean');
}
