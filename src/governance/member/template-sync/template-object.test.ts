import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject, Policy } from '../../../resources/index.ts';
import {
  APPLIED_ANNOTATION,
  isApplied,
  POLICY_ANNOTATION,
  SUSPENDED_ANNOTATION,
  type TemplateObject,
  templateObject,
  updatedTemplate,
} from './template-object.ts';

const GROUP = 'policy.open-cluster-management.io';

function copy(spec: Partial<Policy['spec']> = {}): Policy {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'Policy',
    metadata: { name: 'policies.kafka', namespace: 'local-cluster', uid: 'u1' },
    spec: { disabled: false, 'policy-templates': [], ...spec },
  };
}

function definition(spec: JsonObject | undefined, apiVersion = `${GROUP}/v1`, metadata: JsonObject = {}): JsonObject {
  return {
    apiVersion,
    kind: 'ConfigurationPolicy',
    metadata: { name: 'a', ...metadata },
    ...(spec === undefined ? {} : { spec }),
    status: { compliant: 'Compliant' },
  };
}

const specOf = (policy: Policy, from: JsonObject): unknown => templateObject(policy, from, true).spec;

describe('the object of a template', () => {
  it('is in the namespace of the copy, and owned by it', () => {
    const { metadata, ...rest } = templateObject(copy(), definition({ severity: 'low' }), true);
    assert.deepEqual(rest, { apiVersion: `${GROUP}/v1`, kind: 'ConfigurationPolicy', spec: { severity: 'low' } });
    assert.equal(metadata.namespace, 'local-cluster');
    assert.deepEqual(metadata.ownerReferences, [
      {
        apiVersion: `${GROUP}/v1`,
        kind: 'Policy',
        name: 'policies.kafka',
        uid: 'u1',
        controller: true,
        blockOwnerDeletion: true,
      },
    ]);
  });

  it('names its copy in an annotation if it is cluster-scoped', () => {
    const { metadata } = templateObject(copy(), definition({}), false);
    assert.deepEqual([metadata.namespace, metadata.ownerReferences], [undefined, undefined]);
    assert.equal(metadata.annotations?.[POLICY_ANNOTATION], 'policies.kafka');
  });

  it('cannot set annotations of the controller', () => {
    const annotations = {
      [SUSPENDED_ANNOTATION]: 'x',
      [POLICY_ANNOTATION]: 'y',
      [APPLIED_ANNOTATION]: 'z',
      note: 'kept',
      odd: 1,
    };
    const { metadata } = templateObject(copy(), definition({}, undefined, { annotations }), true);
    assert.deepEqual(Object.keys(metadata.annotations ?? {}), ['note', APPLIED_ANNOTATION]);
    assert.notEqual(metadata.annotations?.[APPLIED_ANNOTATION], 'z');
  });

  for (const [ofPolicy, ofTemplate, expected] of [
    [undefined, 'enforce', 'enforce'],
    ['inform', 'enforce', 'inform'],
    ['Enforce', 'inform', 'Enforce'],
    ['enforce', 'InformOnly', 'inform'],
    [undefined, 'informonly', 'inform'],
    [undefined, undefined, undefined],
  ] as const) {
    it(`with ${String(ofTemplate)} in a Policy with ${String(ofPolicy)} has ${String(expected)}`, () => {
      const policy = copy(ofPolicy === undefined ? {} : { remediationAction: ofPolicy });
      const spec = specOf(policy, definition(ofTemplate === undefined ? {} : { remediationAction: ofTemplate }));
      assert.deepEqual(spec, expected === undefined ? {} : { remediationAction: expected });
    });
  }

  it('has the enforcement of a constraint of Gatekeeper, and leaves other kinds alone', () => {
    const policy = copy({ remediationAction: 'Enforce' });
    assert.deepEqual(specOf(policy, definition({}, 'constraints.gatekeeper.sh/v1beta1')), {
      enforcementAction: 'deny',
    });
    assert.deepEqual(specOf(policy, definition({ x: 1 }, 'lab.example.com/v1')), { x: 1 });
  });
});

describe('a stored template', () => {
  const wanted = templateObject(copy(), definition({ list: [{ a: 1 }], nested: { b: 2 } }), true);
  const { spec = {} } = wanted;
  const changes: readonly (readonly [string, Partial<TemplateObject>])[] = [
    ['a value differs', { spec: { ...spec, nested: { b: 3 } } }],
    ['a list is longer', { spec: { ...spec, list: [{ a: 1 }, { a: 1 }] } }],
    ['a field is missing', { spec: { list: [{ a: 1 }] } }],
    ['a label differs', { metadata: { ...wanted.metadata, labels: {} } }],
    [
      'it is suspended',
      {
        metadata: { ...wanted.metadata, annotations: { ...wanted.metadata.annotations, [SUSPENDED_ANNOTATION]: 'x' } },
      },
    ],
    [
      'its template had other fields before',
      { metadata: { ...wanted.metadata, annotations: { [APPLIED_ANNOTATION]: 'x' } } },
    ],
  ];

  it('is as it was applied, whatever others added to its metadata', () => {
    const metadata = { ...wanted.metadata, labels: { ...wanted.metadata.labels, odd: 'yes' }, finalizers: ['x'] };
    assert.ok(isApplied({ ...wanted, metadata }, wanted));
  });

  for (const [what, change] of changes) {
    it(`is to be written when ${what}`, () => {
      assert.ok(!isApplied({ ...wanted, ...change }, wanted));
      assert.ok(isApplied(updatedTemplate({ ...wanted, ...change }, wanted), wanted));
    });
  }

  it('is to be written when it has a further field, if the defaults of its kind are known', () => {
    const further = { ...wanted, spec: { ...spec, added: true } };
    assert.ok(isApplied(further, wanted));
    assert.ok(!isApplied(further, wanted, (object) => object));
    assert.ok(isApplied(further, wanted, (object) => ({ ...object, spec: { ...object.spec, added: true } })));
  });

  it('keeps its finalizers and the labels of others in an update, and is evaluated again', () => {
    const metadata = {
      ...wanted.metadata,
      labels: { odd: 'yes' },
      annotations: { [SUSPENDED_ANNOTATION]: 'x', theirs: 'kept' },
      finalizers: ['hold'],
      resourceVersion: '7',
    };
    const updated = updatedTemplate({ ...wanted, metadata }, wanted);
    assert.deepEqual([updated.metadata.finalizers, updated.metadata.resourceVersion], [['hold'], '7']);
    assert.deepEqual([updated.metadata.labels?.['odd'], updated.metadata.annotations?.['theirs']], ['yes', 'kept']);
    assert.equal(updated.metadata.annotations?.[SUSPENDED_ANNOTATION], undefined);
  });
});
