import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type JsonObject, readReview } from '../../engine/index.ts';
import { admissionReview, type RequestDetails } from './admission-request.ts';

const POD: JsonObject = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' } };

function requestOf(object: JsonObject | undefined, details: RequestDetails = {}, oldObject?: JsonObject): JsonObject {
  const objects = { ...(object === undefined ? {} : { object }), ...(oldObject === undefined ? {} : { oldObject }) };
  const review = admissionReview(objects, details);
  assert.doesNotThrow(() => readReview('validate', Buffer.from(JSON.stringify(review))));
  return review['request'] as JsonObject;
}

describe('admissionReview', () => {
  it('is what an API server sends for a new object', () => {
    assert.deepEqual(requestOf(POD), {
      uid: '00000000-0000-4000-8000-000000000000',
      kind: { group: '', version: 'v1', kind: 'Pod' },
      resource: { group: '', version: 'v1', resource: 'pods' },
      requestKind: { group: '', version: 'v1', kind: 'Pod' },
      requestResource: { group: '', version: 'v1', resource: 'pods' },
      name: 'web',
      namespace: 'default',
      operation: 'CREATE',
      userInfo: { username: 'kubernetes-admin', groups: ['kubeadm:cluster-admins', 'system:authenticated'] },
      object: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'default' } },
      oldObject: null,
      dryRun: false,
      options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' },
    });
  });

  it('takes the operation from the objects that are there', () => {
    const update = requestOf(POD, {}, POD);
    assert.equal(update['operation'], 'UPDATE');
    assert.deepEqual(update['options'], { kind: 'UpdateOptions', apiVersion: 'meta.k8s.io/v1' });
    const removal = requestOf(undefined, {}, POD);
    assert.equal(removal['operation'], 'DELETE');
    assert.equal(removal['object'], null);
    assert.equal(removal['name'], 'web');
    const connect = requestOf(
      { ...POD, kind: 'PodExecOptions' },
      { operation: 'CONNECT', resource: 'pods.v1', subresource: 'exec' },
    );
    assert.equal(connect['options'], null);
    assert.equal(connect['subResource'], 'exec');
    assert.equal(connect['requestSubResource'], 'exec');
  });

  it('puts objects into the namespace that the case says, and keeps theirs otherwise', () => {
    const elsewhere = { ...POD, metadata: { name: 'web', namespace: 'shop' } };
    assert.equal(requestOf(elsewhere)['namespace'], 'shop');
    const moved = requestOf(elsewhere, { namespace: 'base' }, elsewhere);
    assert.equal(moved['namespace'], 'base');
    assert.deepEqual(moved['object'], { ...POD, metadata: { name: 'web', namespace: 'base' } });
    assert.deepEqual(moved['oldObject'], moved['object']);
  });

  it('knows what is in no namespace, and that a namespace is in itself', () => {
    const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'r' } };
    const request = requestOf(role, { namespace: 'shop' });
    assert.equal('namespace' in request, false);
    assert.deepEqual(request['object'], role);
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } };
    assert.equal(requestOf(namespace)['namespace'], 'shop');
    assert.deepEqual(requestOf(namespace)['object'], namespace);
  });

  for (const [apiVersion, kind, plural] of [
    ['networking.k8s.io/v1', 'NetworkPolicy', 'networkpolicies'],
    ['networking.k8s.io/v1', 'Ingress', 'ingresses'],
    ['networking.k8s.io/v1', 'IPAddress', 'ipaddresses'],
    ['v1', 'Endpoints', 'endpoints'],
    ['v1', 'ComponentStatus', 'componentstatuses'],
    ['storage.k8s.io/v1', 'StorageClass', 'storageclasses'],
    ['storage.k8s.io/v1', 'CSIStorageCapacity', 'csistoragecapacities'],
    ['batch/v1', 'CronJob', 'cronjobs'],
    ['autoscaling/v2', 'HorizontalPodAutoscaler', 'horizontalpodautoscalers'],
    ['admissionregistration.k8s.io/v1', 'ValidatingAdmissionPolicy', 'validatingadmissionpolicies'],
  ] as const) {
    it(`knows ${plural}`, () => {
      const { resource } = requestOf({ apiVersion, kind, metadata: { name: 'x' } });
      const [version, group = ''] = apiVersion.split('/').toReversed();
      assert.deepEqual(resource, { group, version, resource: plural });
    });
  }

  it('asks for the resource of other kinds, and takes it as it is said', () => {
    const widget = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'w' } };
    assert.throws(() => requestOf(widget), /Widget of example\.com\/v1 is not a builtin kind: expected "resource"/);
    assert.deepEqual(requestOf(widget, { resource: 'widgets' })['resource'], {
      group: 'example.com',
      version: 'v1',
      resource: 'widgets',
    });
    assert.equal(requestOf(widget, { resource: 'widgets' })['namespace'], 'default');
    assert.equal('namespace' in requestOf(widget, { resource: 'widgets', scope: 'Cluster' }), false);
    const scale = { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'web' } };
    const request = requestOf(scale, { resource: 'deployments.v1.apps', subresource: 'scale' });
    assert.deepEqual(request['resource'], { group: 'apps', version: 'v1', resource: 'deployments' });
    assert.deepEqual(request['kind'], { group: 'autoscaling', version: 'v1', kind: 'Scale' });
  });

  it('says who asks', () => {
    assert.deepEqual(requestOf(POD, { user: { username: 'alice' } })['userInfo'], {
      username: 'alice',
      groups: ['system:authenticated'],
    });
    const user = { username: 'alice', uid: '7', groups: ['dev'], extra: { scopes: ['a'] } };
    assert.deepEqual(requestOf(POD, { user })['userInfo'], user);
    assert.equal(requestOf(POD, { dryRun: true })['dryRun'], true);
    assert.deepEqual(requestOf(POD, { options: { fieldManager: 'kubectl' } })['options'], { fieldManager: 'kubectl' });
  });

  it('has no name while one is to be generated', () => {
    assert.equal('name' in requestOf({ ...POD, metadata: { generateName: 'web-' } }), false);
  });

  it('refuses what is no object', () => {
    assert.throws(() => admissionReview({ object: { kind: 'Pod' } }, {}), /apiVersion and kind/);
  });
});
