import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findCondition, type Policy, setReadiness } from '../../resources/index.ts';
import { notAppliedStatus, rootStatus } from './root-status.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');

function policy(status: NonNullable<Policy['status']> = {}, generation = 3): Policy {
  return {
    apiVersion: 'policy.open-cluster-management.io/v1',
    kind: 'Policy',
    metadata: { name: 'kafka', namespace: 'policies', generation },
    spec: { disabled: false, 'policy-templates': [] },
    status,
  };
}

const EVALUATED = setReadiness(undefined, { state: 'ready', reason: 'Evaluated', message: 'done' }, 3, NOW);
const ready = (conditions: Parameters<typeof findCondition>[0]): readonly (string | undefined)[] => {
  const { status, reason } = findCondition(conditions, 'Ready') ?? {};
  return [status, reason];
};

describe('the status of a Policy', () => {
  it('is that of its copy', () => {
    const pending = [{ template: 'a', reason: 'NotFound', message: 'missing' }] as const;
    const invalid = {
      type: 'DependenciesValid',
      status: 'False',
      reason: 'Cycle',
      message: 'a → a',
      observedGeneration: 3,
      lastTransitionTime: '2026-01-01T00:00:00Z',
    } as const;
    const copy = policy({
      compliant: 'Pending',
      message: 'a waits',
      pending,
      conditions: [...EVALUATED, invalid],
      observedGeneration: 3,
    });
    const status = rootStatus(policy({}, 7), copy, 'local-cluster', undefined, NOW);
    assert.deepEqual(
      [status.compliant, status.message, status.pending, status.observedGeneration],
      ['Pending', 'a waits', pending, 7],
    );
    assert.deepEqual(status.status, [
      { clustername: 'local-cluster', clusternamespace: 'local-cluster', compliant: 'Pending' },
    ]);
    assert.deepEqual(findCondition(status.conditions, 'DependenciesValid'), { ...invalid, observedGeneration: 7 });
  });

  it('has no compliance of an older spec', () => {
    for (const copy of [undefined, policy({ compliant: 'Compliant', conditions: EVALUATED, observedGeneration: 2 })]) {
      const status = rootStatus(
        policy({ compliant: 'Compliant', conditions: EVALUATED }),
        copy,
        'local-cluster',
        undefined,
        NOW,
      );
      assert.equal(status.compliant, undefined);
      assert.deepEqual(ready(status.conditions), ['False', 'Evaluating']);
      assert.deepEqual(status.status, [{ clustername: 'local-cluster', clusternamespace: 'local-cluster' }]);
    }
  });

  it('says why a pass failed', () => {
    const failure = { state: 'stalled', reason: 'ClusterNamespaceNotOurs', message: 'not ours' } as const;
    const status = rootStatus(policy(), undefined, 'local-cluster', failure, NOW);
    assert.deepEqual([status.message, ...ready(status.conditions)], ['not ours', 'False', 'ClusterNamespaceNotOurs']);
    assert.equal(findCondition(status.conditions, 'Stalled')?.status, 'True');
  });

  it('that applies nowhere has no compliance, and is stalled only if a user must act', () => {
    for (const [isStalled, status] of [
      [true, 'False'],
      [false, 'True'],
    ] as const) {
      const result = notAppliedStatus(
        policy({ compliant: 'Compliant' }),
        { reason: 'Disabled', message: 'off', isStalled },
        NOW,
      );
      assert.deepEqual(
        [result.compliant, result.message, ...ready(result.conditions)],
        [undefined, 'off', status, 'Disabled'],
      );
    }
  });
});
