// Concurrent writes: webhooks are called between reading an object and storing it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubernetesObject, ResourceType } from '../../resources/index.ts';
import { servedKind } from '../testing/served-kind.ts';
import { EmbeddedCluster } from './embedded-cluster.ts';
import { WebhookRecorder } from './testing/webhook-recorder.ts';
import type { Review } from './testing/webhook-recorder.ts';

const CONFIG_MAPS = servedKind('v1', 'ConfigMap') as ResourceType;
const NAMESPACES = servedKind('v1', 'Namespace') as ResourceType;
const SERVICES = servedKind('v1', 'Service') as ResourceType;
const DEFINITIONS = servedKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition') as ResourceType;
const WEBHOOKS = servedKind('admissionregistration.k8s.io/v1', 'ValidatingWebhookConfiguration') as ResourceType;
const WIDGETS: ResourceType = {
  group: 'example.com',
  version: 'v1',
  resource: 'widgets',
  kind: 'Widget',
  namespaced: true,
};

const KEY = { namespace: 'default', name: 'a' };

function configMap(name: string, namespace = 'default', data: Record<string, string> = {}): KubernetesObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name }, data };
}

function service(name: string, spec: object): KubernetesObject {
  return { apiVersion: 'v1', kind: 'Service', metadata: { namespace: 'default', name }, spec };
}

function definition(plural: string, kind: string): KubernetesObject {
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.example.com` },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural, kind },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  };
}

/** A webhook for the creation of a resource. It runs a callback during the review. */
async function whileAsked(
  cluster: EmbeddedCluster,
  resource: string,
  act: (review: Review) => Promise<void>,
): Promise<AsyncDisposable> {
  const recorder = await WebhookRecorder.start({
    act: async (review) => {
      await act(review);
      return { response: { allowed: true } };
    },
  });
  await cluster.admin.create(WEBHOOKS, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: resource },
    webhooks: [
      {
        name: 'act.example.com',
        clientConfig: {
          url: recorder.url('act'),
          caBundle: Buffer.from(recorder.certificate.cert).toString('base64'),
        },
        rules: [{ apiGroups: ['*'], apiVersions: ['*'], operations: ['CREATE'], resources: [resource] }],
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      },
    ],
  });
  return recorder;
}

test('however many change one object at once, no change is lost and none is refused', async () => {
  await using cluster = await EmbeddedCluster.open();
  const { admin } = cluster;
  await admin.create(CONFIG_MAPS, configMap('a'));
  const keys = Array.from({ length: 30 }, (_, index) => `key-${index}`);
  await Promise.all(
    keys.map((key) => admin.patch(CONFIG_MAPS, KEY, { type: 'merge', body: { data: { [key]: '1' } } })),
  );
  const { data } = await admin.get(CONFIG_MAPS, KEY);
  assert.deepEqual(Object.keys(data as object).sort(), keys.sort());
});

test('those who apply a new object at once make one of it together', async () => {
  await using cluster = await EmbeddedCluster.open();
  const managers = ['one', 'two', 'three'];
  await Promise.all(
    managers.map((fieldManager) => {
      const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { [fieldManager]: '1' } };
      return cluster.admin.patch(CONFIG_MAPS, KEY, { type: 'apply', body }, { fieldManager });
    }),
  );
  const { metadata, data } = await cluster.admin.get(CONFIG_MAPS, KEY);
  assert.deepEqual(Object.keys(data as object).sort(), managers.toSorted());
  assert.deepEqual(metadata.managedFields?.map(({ manager }) => manager).sort(), managers.toSorted());
});

test('of two creations of one name, one fails with AlreadyExists', async () => {
  await using cluster = await EmbeddedCluster.open();
  const made = [1, 2].map(() => cluster.admin.create(CONFIG_MAPS, configMap('a')));
  const results = await Promise.allSettled(made);
  assert.deepEqual(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
});

test('a namespace that went while an object was made in it stays empty', async () => {
  await using cluster = await EmbeddedCluster.open();
  const { admin } = cluster;
  await admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  await using _ = await whileAsked(cluster, 'configmaps', async () => {
    await admin.delete(NAMESPACES, { name: 'shop' });
    await cluster.idle();
  });
  await assert.rejects(admin.create(CONFIG_MAPS, configMap('a', 'shop')), {
    code: 404,
    message: 'namespaces "shop" not found',
  });
  assert.equal(cluster.state.get(CONFIG_MAPS, 'shop', 'a'), undefined);
});

test('a kind that went while an object of it was made has none', async () => {
  await using cluster = await EmbeddedCluster.open();
  const { admin } = cluster;
  await admin.create(DEFINITIONS, definition('widgets', 'Widget'));
  await using _ = await whileAsked(cluster, 'widgets', async () => {
    await admin.delete(DEFINITIONS, { name: 'widgets.example.com' });
    await cluster.idle();
  });
  const widget = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: KEY };
  await assert.rejects(admin.create(WIDGETS, widget), { code: 404 });
  assert.deepEqual([...cluster.state.list(WIDGETS)], []);
});

test('an object that is changed while it is deleted is deleted, and its change is refused', async () => {
  await using cluster = await EmbeddedCluster.open();
  const { admin } = cluster;
  await admin.create(CONFIG_MAPS, configMap('a'));
  const [changed, deleted] = await Promise.allSettled([
    admin.patch(CONFIG_MAPS, KEY, { type: 'merge', body: { data: { a: '1' } } }),
    admin.delete(CONFIG_MAPS, KEY),
    admin.patch(CONFIG_MAPS, KEY, { type: 'merge', body: { data: { b: '1' } } }),
  ]);
  assert.equal(deleted.status, 'fulfilled');
  assert.ok(changed.status === 'fulfilled' || changed.reason.code === 404);
  assert.equal(cluster.state.get(CONFIG_MAPS, 'default', 'a'), undefined);
});

test('finalizers that are removed concurrently are all removed, and so is the object', async () => {
  await using cluster = await EmbeddedCluster.open();
  const { admin } = cluster;
  const finalizers = ['example.com/a', 'example.com/b', 'example.com/c'];
  await admin.create(CONFIG_MAPS, { ...configMap('a'), metadata: { ...KEY, finalizers } });
  await admin.delete(CONFIG_MAPS, KEY);
  const remove = async (finalizer: string): Promise<void> => {
    for (;;) {
      const index = cluster.state.get(CONFIG_MAPS, 'default', 'a')?.metadata.finalizers?.indexOf(finalizer) ?? -1;
      const path = `/metadata/finalizers/${index}`;
      const body = [
        { op: 'test', path, value: finalizer },
        { op: 'remove', path },
      ];
      try {
        await admin.patch(CONFIG_MAPS, KEY, { type: 'json', body });
        return;
      } catch (error) {
        assert.equal((error as { code: unknown }).code, 422, 'another one was faster');
      }
    }
  };
  await Promise.all(finalizers.map(remove));
  assert.equal(cluster.state.get(CONFIG_MAPS, 'default', 'a'), undefined);
});

test('services that are made at once do not share addresses and node ports', async () => {
  await using cluster = await EmbeddedCluster.open();
  const spec = { type: 'NodePort', clusterIP: '10.96.7.7', ports: [{ port: 80 }] };
  const ports = { type: 'NodePort', ports: [{ port: 80, nodePort: 30_080 }] };
  const outcomes = async (objects: readonly KubernetesObject[]): Promise<string[]> => {
    const results = await Promise.allSettled(objects.map((one) => cluster.admin.create(SERVICES, one)));
    return results.map((result) => (result.status === 'fulfilled' ? 'made' : String(result.reason.message)));
  };
  assert.deepEqual(await outcomes([service('a', spec), service('b', spec)]), [
    'made',
    'Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.96.7.7"]: failed to allocate IP 10.96.7.7: provided IP is already allocated',
  ]);
  assert.deepEqual(await outcomes([service('c', ports), service('d', ports)]), [
    'made',
    'Service "d" is invalid: spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated',
  ]);
});

test('of two kinds of one name that are installed at once, one gets it', async () => {
  await using cluster = await EmbeddedCluster.open();
  const made = ['things', 'others'].map((plural) => cluster.admin.create(DEFINITIONS, definition(plural, 'Same')));
  const accepted = (await Promise.all(made)).map(
    ({ status }) => (status as { conditions: { status: string }[] }).conditions[0]?.status,
  );
  assert.deepEqual(accepted, ['True', 'False']);
});

test('a dry run leaves nothing behind', async () => {
  await using cluster = await EmbeddedCluster.open();
  const { admin } = cluster;
  const { revision } = cluster;
  const spec = { type: 'NodePort', clusterIP: '10.96.7.7', ports: [{ port: 80, nodePort: 30_080 }] };
  for (const name of ['a', 'b']) {
    await admin.create(SERVICES, service(name, spec), { dryRun: true });
  }
  await admin.create(DEFINITIONS, definition('widgets', 'Widget'), { dryRun: true });
  await assert.rejects(admin.list(WIDGETS), { code: 404 });
  await admin.delete(NAMESPACES, { name: 'kube-node-lease' }, { dryRun: true });
  await cluster.idle();
  assert.equal(cluster.revision, revision);
  await admin.create(SERVICES, service('c', spec));
});
