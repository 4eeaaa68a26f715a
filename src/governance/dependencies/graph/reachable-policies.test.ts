import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { DependencyGraph } from './dependency-graph.ts';
import type { GraphPolicy } from './graph-policy.ts';
import { reachablePolicies } from './reachable-policies.ts';

/** Policies `p0`, `p1`… with the numbers of those that they depend on. */
function policies(dependencies: readonly (readonly number[])[]): readonly GraphPolicy[] {
  return dependencies.map((targets, index) => ({
    namespace: 'n',
    name: `p${index}`,
    isPlaced: true,
    problems: [],
    templates: [
      {
        apiVersion: 'v1',
        kind: 'Check',
        name: `t${index}`,
        ignorePending: false,
        requirements: targets.map((target) => ({
          apiVersion: 'policy.open-cluster-management.io/v1',
          kind: 'Policy',
          namespace: 'local-cluster',
          name: `n.p${target}`,
          compliance: 'Compliant',
        })),
      },
    ],
  }));
}

function reached(all: readonly GraphPolicy[]) {
  const byName = new Map(all.map((policy) => [`n.${policy.name}`, policy]));
  const [start] = all;
  assert.ok(start);
  return reachablePolicies(start, ({ name }) => {
    const target = byName.get(name);
    return target === undefined ? [] : [target];
  });
}

describe('the policies that a policy depends on', () => {
  it('are those on any way, and no others', () => {
    const { policies: found, isComplete } = reached(policies([[1, 9], [2], [0], [0]]));
    assert.deepEqual([found.map(({ name }) => name), isComplete], [['p0', 'p1', 'p2'], true]);
  });

  it('have the same findings as in the graph of all', () => {
    const targets = fc.array(fc.nat({ max: 7 }), { maxLength: 3 });
    fc.assert(
      fc.property(fc.array(targets, { minLength: 1, maxLength: 7 }), (dependencies) => {
        const all = policies(dependencies);
        const key = { namespace: 'n', name: 'p0' };
        assert.deepEqual(
          new DependencyGraph(reached(all).policies, 'local-cluster').findingsOf(key),
          new DependencyGraph(all, 'local-cluster').findingsOf(key),
        );
      }),
    );
  });

  it('are not all of them where they are too many', () => {
    const chain = Array.from({ length: 3000 }, (_, index) => [index + 1]);
    const { policies: found, isComplete } = reached(policies(chain));
    assert.equal(isComplete, false);
    assert.ok(found.length < 1100);
  });
});
