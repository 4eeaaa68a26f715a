import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubernetesObject } from '../../resources/index.ts';
import type { Requirement } from './dependency.ts';
import { CLUSTER, dependency, policyObject } from './testing/dependency-scene.ts';
import {
  type DependencyObject,
  pendingDependencies,
  unmetDependencies,
  unmetDependency,
  type UnmetReason,
} from './unmet-dependencies.ts';

const found = (object: KubernetesObject): DependencyObject => ({ type: 'found', object });
const withStatus = (status: Readonly<Record<string, unknown>>, generation?: number): DependencyObject =>
  found(policyObject('a.b', status, generation === undefined ? {} : { metadata: { name: 'a.b', generation } }));
const gatekeeper = (kind: string, group: string, compliance: string): Requirement =>
  dependency('labels', compliance, { apiVersion: `${group}/v1`, kind });
const TEMPLATE = 'templates.gatekeeper.sh';
const CONSTRAINT = 'constraints.gatekeeper.sh';
const constraint = (status: Readonly<Record<string, unknown>>): DependencyObject =>
  found(policyObject('labels', status, { apiVersion: `${CONSTRAINT}/v1beta1`, kind: 'K8sLabels' }));
const deployment = (status: Readonly<Record<string, unknown>>): DependencyObject =>
  found(policyObject('web', status, { apiVersion: 'apps/v1', kind: 'Deployment' }));

type Case = readonly [string, Requirement, DependencyObject, UnmetReason | undefined, text?: string];
const MISMATCH = 'Compliance mismatch on the dependency object';
const NO_STATE = 'Failed to find complianceState on the dependency object';
const policy = dependency('a.b');

const CASES: readonly Case[] = [
  [
    'an unknown kind',
    policy,
    { type: 'no-such-kind' },
    'NoSuchKind',
    'Could not find an API mapping for the dependency',
  ],
  ['an absent object', policy, { type: 'not-found' }, 'NotFound', 'Dependency object not found'],
  ['a policy of another cluster', policy, { type: 'not-placed' }, 'NotPlaced', 'Dependency object not found'],
  [
    'an object out of reach',
    policy,
    { type: 'forbidden', message: 'no' },
    'Forbidden',
    'Failed to get the dependency object',
  ],
  ['a failed read', policy, { type: 'failed', message: '500' }, 'GetFailed', 'Failed to get the dependency object'],
  ['the required state', policy, withStatus({ compliant: 'Compliant' }), undefined],
  ['another state', policy, withStatus({ compliant: 'NonCompliant' }), 'Mismatch', MISMATCH],
  ['another case', policy, withStatus({ compliant: 'compliant' }), 'Mismatch', MISMATCH],
  ['a required violation', dependency('a.b', 'NonCompliant'), withStatus({ compliant: 'NonCompliant' }), undefined],
  ['no state', policy, withStatus({}), 'NoStatus', NO_STATE],
  [
    'no state, with conditions',
    policy,
    withStatus({ conditions: [{ type: 'Ready', status: 'True' }] }),
    'NoStatus',
    NO_STATE,
  ],
  ['an empty state', policy, withStatus({ compliant: '' }), 'NoStatus', NO_STATE],
  ['a state that is no text', policy, withStatus({ compliant: { a: 1 } }), 'NoStatus', NO_STATE],
  ['an older spec', policy, withStatus({ compliant: 'Compliant', observedGeneration: 1 }, 2), 'Stale', MISMATCH],
  [
    'an older evaluation',
    policy,
    withStatus({ compliant: 'Compliant', lastEvaluatedGeneration: 1 }, 2),
    'Stale',
    MISMATCH,
  ],
  ['the newest spec', policy, withStatus({ compliant: 'Compliant', lastEvaluatedGeneration: 2 }, 2), undefined],
  [
    'a stale state that would not do',
    policy,
    withStatus({ compliant: 'Pending', observedGeneration: 1 }, 2),
    'Stale',
    MISMATCH,
  ],
  ['no ConstraintTemplate', gatekeeper('ConstraintTemplate', TEMPLATE, 'Compliant'), { type: 'not-found' }, 'NotFound'],
  [
    'no ConstraintTemplate, as required',
    gatekeeper('ConstraintTemplate', TEMPLATE, 'NonCompliant'),
    { type: 'not-found' },
    undefined,
  ],
  [
    'a ConstraintTemplate',
    gatekeeper('ConstraintTemplate', TEMPLATE, 'Compliant'),
    found(policyObject('labels', {}, { apiVersion: `${TEMPLATE}/v1`, kind: 'ConstraintTemplate' })),
    undefined,
  ],
  [
    'a ConstraintTemplate that should not exist',
    gatekeeper('ConstraintTemplate', TEMPLATE, 'NonCompliant'),
    found(policyObject('labels', {}, { apiVersion: `${TEMPLATE}/v1`, kind: 'ConstraintTemplate' })),
    'Mismatch',
    MISMATCH,
  ],
  ['a constraint', gatekeeper('K8sLabels', CONSTRAINT, 'Compliant'), constraint({ totalViolations: 0 }), undefined],
  [
    'violations',
    gatekeeper('K8sLabels', CONSTRAINT, 'Compliant'),
    constraint({ totalViolations: 2 }),
    'Mismatch',
    MISMATCH,
  ],
  [
    'required violations',
    gatekeeper('K8sLabels', CONSTRAINT, 'NonCompliant'),
    constraint({ totalViolations: 2 }),
    undefined,
  ],
  [
    'a constraint without an audit',
    gatekeeper('K8sLabels', CONSTRAINT, 'Compliant'),
    constraint({}),
    'NoStatus',
    NO_STATE,
  ],
  [
    'an available Deployment',
    dependency('web', 'Compliant', { apiVersion: 'apps/v1', kind: 'Deployment' }),
    deployment({
      replicas: 1,
      updatedReplicas: 1,
      readyReplicas: 1,
      availableReplicas: 1,
      conditions: [{ type: 'Available', status: 'True' }],
    }),
    undefined,
  ],
  [
    'a Deployment that starts',
    dependency('web', 'Pending', { apiVersion: 'apps/v1', kind: 'Deployment' }),
    deployment({}),
    undefined,
  ],
  [
    'a stalled Deployment',
    dependency('web', 'NonCompliant', { apiVersion: 'apps/v1', kind: 'Deployment' }),
    deployment({ conditions: [{ type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' }] }),
    undefined,
  ],
];

describe('unmetDependency', () => {
  for (const [name, requirement, object, reason, text] of CASES) {
    it(`takes ${name} for ${reason ?? 'met'}`, () => {
      const unmet = unmetDependency(requirement, object);
      assert.equal(unmet?.reason, reason);
      assert.ok(text === undefined || unmet?.text === text, unmet?.text);
    });
  }

  it('says the actual state only when it is known', () => {
    assert.equal(unmetDependency(policy, withStatus({ compliant: 'Pending' }))?.actual, 'Pending');
    assert.equal(
      unmetDependency(policy, withStatus({ compliant: 'Pending', observedGeneration: 1 }, 2))?.actual,
      undefined,
    );
  });

  it('shortens the messages of others', () => {
    const unmet = unmetDependency(policy, { type: 'failed', message: 'x'.repeat(100_000) });
    assert.equal(unmet?.detail.length, 500);
  });
});

describe('unmetDependencies', () => {
  it('names a cycle also where the object has no state, because it was never applied, and keeps the order', () => {
    const objects: Readonly<Record<string, DependencyObject>> = {
      b: withStatus({ compliant: 'Pending' }),
      c: withStatus({}),
      d: withStatus({ compliant: 'Compliant' }),
    };
    const requirements = ['b', 'c', 'd'].map((name) => dependency(name));
    const unmet = unmetDependencies(
      requirements,
      ({ name }) => objects[name]!,
      () => true,
    );
    assert.deepEqual(
      unmet.map(({ name, reason, text }) => [name, reason, text]),
      [
        ['b', 'Cycle', MISMATCH],
        ['c', 'Cycle', NO_STATE],
      ],
    );
  });
});

describe('pendingDependencies', () => {
  const pending = (compliant: string, before: ReturnType<typeof pendingDependencies>, now: number) =>
    pendingDependencies(
      unmetDependencies([{ ...policy, namespace: CLUSTER }], () => withStatus({ compliant })),
      before,
      now,
    );

  it('keeps the time while nothing changes, and begins anew when the state changes', () => {
    const first = pending('Pending', [], 1_000);
    assert.deepEqual(first, [
      {
        apiVersion: policy.apiVersion,
        kind: 'Policy',
        namespace: CLUSTER,
        name: 'a.b',
        required: 'Compliant',
        actual: 'Pending',
        reason: 'Mismatch',
        since: '1970-01-01T00:00:01Z',
      },
    ]);
    assert.deepEqual(pending('Pending', first, 60_000), first);
    assert.equal(pending('NonCompliant', first, 60_000)[0]?.since, '1970-01-01T00:01:00Z');
    assert.deepEqual(pending('Compliant', first, 60_000), []);
  });
});
