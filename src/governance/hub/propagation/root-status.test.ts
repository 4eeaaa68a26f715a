import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findCondition, type Policy, setReadiness } from '../../../resources/index.ts';
import { notAppliedStatus, rootStatus } from './root-status.ts';

const HERE = { name: 'local-cluster', namespace: 'local-cluster' };
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
    const status = rootStatus(policy({}, 7), [{ target: HERE, copy, failure: undefined }], NOW);
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
        [{ target: HERE, copy, failure: undefined }],
        NOW,
      );
      assert.equal(status.compliant, undefined);
      assert.deepEqual(ready(status.conditions), ['False', 'Evaluating']);
      assert.deepEqual(status.status, [{ clustername: 'local-cluster', clusternamespace: 'local-cluster' }]);
    }
  });

  it('says why a pass failed', () => {
    const failure = { state: 'stalled', reason: 'ClusterNamespaceNotOurs', message: 'not ours' } as const;
    const status = rootStatus(policy(), [{ target: HERE, copy: undefined, failure }], NOW);
    assert.deepEqual([status.message, ...ready(status.conditions)], ['not ours', 'False', 'ClusterNamespaceNotOurs']);
    assert.equal(findCondition(status.conditions, 'Stalled')?.status, 'True');
  });

  it('that applies nowhere has no compliance, and is stalled only if a user must act', () => {
    for (const [state, status] of [
      ['stalled', 'False'],
      ['ready', 'True'],
    ] as const) {
      const result = notAppliedStatus(
        policy({ compliant: 'Compliant' }),
        { state, reason: 'Disabled', message: 'off' },
        NOW,
      );
      assert.deepEqual(
        [result.compliant, result.message, ...ready(result.conditions)],
        [undefined, 'off', status, 'Disabled'],
      );
    }
  });

  it('of several clusters is that of each and the worst of all, and names who reports nothing', () => {
    const reported = (name: string, status?: NonNullable<Policy['status']>) => ({
      target: { name, namespace: `ns-${name}` },
      copy: status && policy({ conditions: EVALUATED, observedGeneration: 3, ...status }),
      failure: undefined,
    });
    const pending = [{ template: 'a', reason: 'NotFound', message: 'missing' }] as const;
    const waiting = reported('c', { compliant: 'Pending', pending });
    const alsoWaiting = reported('d', { compliant: 'Pending', pending });
    const good = reported('a', { compliant: 'Compliant' });
    const bad = reported('b', { compliant: 'NonCompliant' });
    const silent = reported('silent');
    const outdated = reported('old', { compliant: 'Compliant', observedGeneration: 2 });

    const all = rootStatus(policy(), [silent, waiting, alsoWaiting, bad, good], NOW);
    assert.equal(all.compliant, 'NonCompliant');
    assert.equal(all.message, 'NonCompliant on b; Pending on c, d; not known on silent');
    assert.deepEqual(all.pending, pending);
    assert.deepEqual(all.status, [
      { clustername: 'a', clusternamespace: 'ns-a', compliant: 'Compliant' },
      { clustername: 'b', clusternamespace: 'ns-b', compliant: 'NonCompliant' },
      { clustername: 'c', clusternamespace: 'ns-c', compliant: 'Pending' },
      { clustername: 'd', clusternamespace: 'ns-d', compliant: 'Pending' },
      { clustername: 'silent', clusternamespace: 'ns-silent' },
    ]);
    assert.deepEqual(ready(all.conditions), ['False', 'Evaluating']);
    for (const unknown of [silent, outdated]) {
      const { compliant, message } = rootStatus(policy(), [good, unknown], NOW);
      assert.deepEqual([compliant, message], [undefined, `not known on ${unknown.target.name}`]);
    }
    const done = rootStatus(policy(), [good, reported('b', { compliant: 'Compliant' })], NOW);
    assert.deepEqual(
      [done.compliant, done.message, ...ready(done.conditions)],
      ['Compliant', undefined, 'True', 'Evaluated'],
    );
  });

  it('names the cluster whose copy could not be written', () => {
    const failure = { state: 'stalled', reason: 'ClusterNamespaceNotOurs', message: 'not ours' } as const;
    const copy = policy({ compliant: 'Compliant', conditions: EVALUATED, observedGeneration: 3 });
    const results = [
      { target: HERE, copy, failure: undefined },
      { target: { name: 'x', namespace: 'x' }, copy: undefined, failure },
    ];
    const status = rootStatus(policy(), results, NOW);
    assert.equal(status.compliant, undefined);
    assert.equal(findCondition(status.conditions, 'Stalled')?.message, 'x: not ours');
  });
});
