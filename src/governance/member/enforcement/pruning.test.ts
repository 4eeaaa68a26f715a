import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ConfigurationPolicy, RelatedObject } from '../../../resources/index.ts';
import { droppedObjects, mayPrune, pruneFailureText, prunes } from './pruning.ts';

type Spec = ConfigurationPolicy['spec'];

function policy(
  pruneObjectBehavior: Spec['pruneObjectBehavior'],
  remediationAction: Spec['remediationAction'] = 'enforce',
) {
  return {
    apiVersion: 'policy.open-cluster-management.io/v1',
    kind: 'ConfigurationPolicy',
    metadata: { name: 'a' },
    spec: { remediationAction, pruneObjectBehavior, 'object-templates': [] },
  } satisfies ConfigurationPolicy;
}

function related(name: string, properties?: RelatedObject['properties'], apiVersion = 'v1'): RelatedObject {
  return {
    object: { apiVersion, kind: 'ConfigMap', metadata: { name, namespace: 'default' } },
    compliant: 'Compliant',
    reason: 'Resource found as expected',
    ...(properties === undefined ? {} : { properties }),
  };
}

const CREATED = { createdByPolicy: true, uid: 'u1' };
const FOUND = { createdByPolicy: false, uid: 'u1' };

describe('a policy', () => {
  for (const [behavior, remediation, expected] of [
    ['None', 'enforce', false],
    ['DeleteAll', 'inform', false],
    ['DeleteAll', 'Enforce', true],
    ['DeleteIfCreated', 'enforce', true],
  ] as const) {
    it(`with ${behavior} and ${remediation} ${expected ? 'prunes' : 'does not prune'}`, () => {
      assert.equal(prunes(policy(behavior, remediation)), expected);
    });
  }

  for (const [what, object, all, ifCreated] of [
    ['an object that it created', related('a', CREATED), true, true],
    ['an object that was there before', related('a', FOUND), true, false],
    ['an object that it created, without a uid', related('a', { createdByPolicy: true }), true, false],
    ['an object that must not exist, or is only looked at', related('a'), false, false],
    ['objects without a name', related('-', CREATED), false, false],
    ['an entry without an object', {}, false, false],
  ] as const) {
    it(`may delete ${what}: with DeleteAll ${all}, with DeleteIfCreated ${ifCreated}`, () => {
      assert.deepEqual(
        [mayPrune(policy('DeleteAll'), object), mayPrune(policy('DeleteIfCreated'), object)],
        [all, ifCreated],
      );
      assert.equal(mayPrune(policy('None'), object), false);
    });
  }
});

describe('the objects that left a policy', () => {
  it('are those that it is no longer about', () => {
    const left = droppedObjects(
      policy('DeleteAll'),
      [related('a', { ...CREATED, uid: 'u0' }), related('b', CREATED)],
      [related('b', CREATED)],
    );
    assert.deepEqual(
      left.map(({ object }) => object?.metadata?.name),
      ['a'],
    );
  });

  it('are not those whose version or group is another one now', () => {
    const before = [related('a', CREATED, 'apps/v1beta1')];
    for (const apiVersion of ['apps/v1', 'extensions/v1']) {
      assert.deepEqual(droppedObjects(policy('DeleteAll'), before, [related('a', FOUND, apiVersion)]), []);
    }
  });
});

describe('the message about objects that are left', () => {
  it('names each of them, and why', () => {
    const text = pruneFailureText({
      failures: [{ object: related('a'), message: 'forbidden' }],
      terminating: [related('b')],
    });
    assert.equal(
      text,
      'Failed to delete objects: v1, Kind=ConfigMap "a" in namespace default (forbidden), v1, Kind=ConfigMap "b" in namespace default (it is being deleted)',
    );
  });
});
