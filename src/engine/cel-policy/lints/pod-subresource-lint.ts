// Finds policies on pods whose rules leave out the subresources by which what they look at changes.
import { type Expression, expressionsOf } from '../../../cel/index.ts';
import type { RequestRule } from '../../../resources/index.ts';
import { EPHEMERAL_CONTAINERS_MISSED, missesEphemeralContainers, missesUpdates } from '../../pod-subresources.ts';
import { fieldChain, type Variables } from './field-chain.ts';
import { findingAt, type LintFinding, type Programs } from './lint-finding.ts';

const LOOKUPS: ReadonlySet<string> = new Set(['_?._', '_[_]', '_[?_]']);

/** Expressions about containers that are added, and resources that are changed, without a request for the pod itself. */
export function podSubresourceLint(
  programs: Programs,
  variables: Variables,
  rules: readonly RequestRule[],
): readonly LintFinding[] {
  const wanted = [
    ...(missesEphemeralContainers(rules)
      ? [{ test: readsEphemeralContainers, message: EPHEMERAL_CONTAINERS_MISSED }]
      : []),
    ...(missesUpdates(rules, 'resize') ? [{ test: readsResources, message: RESIZE_MISSED }] : []),
  ];
  return wanted.flatMap(({ test, message }) => {
    for (const [field, program] of programs) {
      const node = [...expressionsOf(program.checked.expression)].find((one) => test(one, variables));
      if (node !== undefined) {
        return [findingAt('pod-subresource', field, program, node.start, message)];
      }
    }
    return [];
  });
}

const RESIZE_MISSED =
  'resources of containers are changed in running pods by pods/resize, which the rules leave out: add it to resources, with the operation UPDATE';

function readsEphemeralContainers(node: Expression): boolean {
  return lastField(node) === 'ephemeralContainers';
}

function readsResources(node: Expression, variables: Variables): boolean {
  const operand = node.kind === 'select' ? node.operand : node.kind === 'call' ? node.args[0] : undefined;
  const field = lastField(node);
  const isPart = field === 'limits' || field === 'requests';
  return isPart && operand !== undefined && fieldChain(operand, variables)?.fields.at(-1) === 'resources';
}

/** The field that a node selects, tests or looks up. */
function lastField(node: Expression): string | undefined {
  if (node.kind === 'select') {
    return node.field;
  }
  const [, key] = node.kind === 'call' && LOOKUPS.has(node.function) ? node.args : [];
  return key?.kind === 'literal' && typeof key.value === 'string' ? key.value : undefined;
}
