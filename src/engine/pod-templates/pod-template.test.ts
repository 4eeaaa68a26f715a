import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { WORKLOADS, type Workload } from '../../resources/index.ts';
import type { Review } from '../review/admission-review.ts';
import { readReview } from '../evaluate.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { bytes, podReview } from '../testing/reviews.ts';
import { podTemplateOf, type PodTemplate, withPod } from './pod-template.ts';

const TEMPLATE: JsonObject = {
  metadata: { labels: { app: 'web' }, annotations: { a: 'b' }, name: 'ignored', creationTimestamp: null },
  spec: { containers: [{ name: 'web', image: 'nginx:1.27' }] },
};

/** A workload with a template. */
function workloadWith({ group, kind, path }: Workload, template: JsonValue, metadata: JsonObject = {}): JsonObject {
  const inner = path.reduceRight<JsonValue>((value, key) => ({ [key]: value }), template) as JsonObject;
  const apiVersion = group === '' ? 'v1' : `${group}/v1`;
  return { apiVersion, kind, metadata: { name: 'web', namespace: 'shop', uid: 'u1', ...metadata }, ...inner };
}

function reviewOf({ group, kind, resource }: Workload, request: JsonObject): Review {
  const names = { kind: { group, version: 'v1', kind }, resource: { group, version: 'v1', resource } };
  const body = podReview({
    ...names,
    requestKind: names.kind,
    requestResource: names.resource,
    name: 'web',
    namespace: 'shop',
    ...request,
  });
  return readReview('validate', bytes(body));
}

function found(workload: Workload, request: JsonObject): PodTemplate | undefined {
  const review = reviewOf(workload, request);
  return podTemplateOf(review, review.target ?? assert.fail());
}

const named = (kind: string): Workload => WORKLOADS.find((one) => one.kind === kind) ?? assert.fail(kind);
const DEPLOYMENT = named('Deployment');

describe('podTemplateOf', () => {
  for (const workload of WORKLOADS) {
    it(`reviews the pods of a ${workload.kind} as its controller creates them`, () => {
      const template = found(workload, { object: workloadWith(workload, TEMPLATE), dryRun: true });
      assert.ok(template);
      const { podOwner, podCreator, group, path } = workload;
      const owner = {
        apiVersion: group === '' ? 'v1' : `${group}/v1`,
        kind: podOwner,
        name: 'web',
        uid: 'u1',
        controller: true,
        blockOwnerDeletion: true,
      };
      assert.deepEqual(JSON.parse(template.pod.requestJson.toString()), {
        uid: '1299d386-525b-4032-98ae-1949f69f9cfc',
        kind: { group: '', version: 'v1', kind: 'Pod' },
        resource: { group: '', version: 'v1', resource: 'pods' },
        requestKind: { group: '', version: 'v1', kind: 'Pod' },
        requestResource: { group: '', version: 'v1', resource: 'pods' },
        name: 'web',
        namespace: 'shop',
        operation: 'CREATE',
        userInfo:
          podCreator === undefined
            ? { username: 'kubernetes-admin', groups: ['system:masters'] }
            : {
                username: `system:serviceaccount:kube-system:${podCreator}`,
                groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated'],
              },
        object: {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: {
            name: 'web',
            generateName: 'web-',
            namespace: 'shop',
            labels: { app: 'web' },
            annotations: { a: 'b' },
            ...(podOwner === undefined ? {} : { ownerReferences: [owner] }),
          },
          spec: TEMPLATE['spec'],
        },
        dryRun: true,
        options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' },
      });
      assert.deepEqual(template.path, path);
    });
  }

  it('names pods after a workload whose name is generated', () => {
    const object = workloadWith(named('Job'), TEMPLATE, { name: '', generateName: 'import-' });
    assert.equal(found(named('Job'), { object, name: '' })?.pod.requester()?.name, 'import-');
  });

  it('reviews an update only if it changes the template', () => {
    const before = workloadWith(DEPLOYMENT, TEMPLATE);
    const scaled = { ...before, spec: { ...(before['spec'] as JsonObject), replicas: 3 } };
    const changed = workloadWith(DEPLOYMENT, { ...TEMPLATE, spec: { containers: [] } });
    const update = (object: JsonValue): boolean =>
      found(DEPLOYMENT, { operation: 'UPDATE', object, oldObject: before }) !== undefined;
    assert.deepEqual([update(before), update(scaled), update(changed)], [false, false, true]);
  });

  it('reviews nothing that a controller copied from a workload of its own', () => {
    const owned = (workload: Workload, ...owners: JsonValue[]): boolean =>
      found(workload, { object: workloadWith(workload, TEMPLATE, { ownerReferences: owners }) }) !== undefined;
    const of = (kind: string, apiVersion: string, controller: JsonValue = true): JsonObject => ({
      apiVersion,
      kind,
      name: 'x',
      uid: 'y',
      controller,
    });
    const isReviewed = {
      'a ReplicaSet of a Deployment': owned(named('ReplicaSet'), of('Deployment', 'apps/v1')),
      'a Job of a CronJob': owned(named('Job'), 1, of('CronJob', 'batch/v1')),
      'a ReplicaSet of a Rollout': owned(named('ReplicaSet'), of('Rollout', 'argoproj.io/v1alpha1')),
      'a ReplicaSet of a Deployment of another group': owned(named('ReplicaSet'), of('Deployment', 'example.com/v1')),
      'a Job that a CronJob owns without controlling it': owned(named('Job'), of('CronJob', 'batch/v1', false)),
      'a Deployment that claims an owner': owned(DEPLOYMENT, of('Deployment', 'apps/v1')),
    };
    assert.deepEqual(isReviewed, {
      'a ReplicaSet of a Deployment': false,
      'a Job of a CronJob': false,
      'a ReplicaSet of a Rollout': true,
      'a ReplicaSet of a Deployment of another group': true,
      'a Job that a CronJob owns without controlling it': true,
      'a Deployment that claims an owner': true,
    });
  });

  for (const [what, workload, request] of [
    ['a deletion', DEPLOYMENT, { operation: 'DELETE', object: null, oldObject: workloadWith(DEPLOYMENT, TEMPLATE) }],
    ['a subresource', DEPLOYMENT, { subResource: 'scale', object: workloadWith(DEPLOYMENT, TEMPLATE) }],
    ['a kind without pods', { ...DEPLOYMENT, resource: 'services' }, { object: workloadWith(DEPLOYMENT, TEMPLATE) }],
    ['the same resource of another group', { ...DEPLOYMENT, group: 'x.io' }, { object: { spec: TEMPLATE } }],
    ['no template', named('ReplicationController'), { object: { spec: {} } }],
    ['a template that is no object', DEPLOYMENT, { object: workloadWith(DEPLOYMENT, 'text') }],
    ['a template that is a list', named('CronJob'), { object: workloadWith(named('CronJob'), [TEMPLATE]) }],
    ['a spec that is a list', DEPLOYMENT, { object: { spec: [TEMPLATE] } }],
  ] as const) {
    it(`reviews nothing of ${what}`, () => {
      assert.equal(found(workload, request as JsonObject), undefined);
    });
  }

  it('reviews a template with a malformed spec and metadata as it is', () => {
    const object = workloadWith(DEPLOYMENT, { metadata: ['x'], spec: 'y' }, { name: 7, uid: {} });
    const pod = found(DEPLOYMENT, { object, namespace: '' })?.pod.object as JsonObject;
    assert.equal(pod['spec'], 'y');
    assert.equal((pod['metadata'] as JsonObject)['generateName'], '-');
  });

  it('reviews templates of any JSON, and puts the pod back without a change', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...WORKLOADS),
        fc.object({ withNullPrototype: false }),
        fc.jsonValue(),
        (workload, template, labels) => {
          const whole = JSON.parse(JSON.stringify({ ...template, metadata: { labels, x: 1 } })) as JsonObject;
          const before = workloadWith(workload, whole);
          const one = found(workload, { object: before });
          assert.deepEqual(one && withPod(one, one.pod.object as JsonObject), before);
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe('withPod', () => {
  const template = (): PodTemplate =>
    found(named('CronJob'), { object: workloadWith(named('CronJob'), TEMPLATE) }) ?? assert.fail();

  it('takes the spec and the metadata that templates have, and nothing else', () => {
    const pod: JsonObject = {
      kind: 'Other',
      metadata: { name: 'new', namespace: 'other', labels: { app: 'web', team: 'a' }, ownerReferences: [] },
      spec: { hostNetwork: false },
      status: {},
    };
    const after = { metadata: { name: 'ignored', creationTimestamp: null, labels: { app: 'web', team: 'a' } } };
    assert.deepEqual(
      withPod(template(), pod),
      workloadWith(named('CronJob'), { ...after, spec: { hostNetwork: false } }),
    );
  });

  it('adds no metadata to a template without any', () => {
    const object = workloadWith(DEPLOYMENT, { spec: {} });
    const one = found(DEPLOYMENT, { object }) ?? assert.fail();
    assert.deepEqual(withPod(one, { metadata: { name: 'x' }, spec: {} }), object);
    assert.deepEqual(
      withPod(one, { metadata: { labels: { a: 'b' } }, spec: {} }),
      workloadWith(DEPLOYMENT, { spec: {}, metadata: { labels: { a: 'b' } } }),
    );
  });
});
