// Arbitrary requests succeed or fail with an ApiError, and the cluster continues to work.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ApiError } from '../../cluster/index.ts';
import type { Patch } from '../../cluster/index.ts';
import type { JsonObject, JsonValue, KubernetesObject, ResourceType } from '../../resources/index.ts';
import { servedKind } from '../testing/served-kind.ts';
import { EmbeddedCluster } from './embedded-cluster.ts';

const RUNS = 150;

const WIDGETS: ResourceType = {
  group: 'example.com',
  version: 'v1',
  resource: 'widgets',
  kind: 'Widget',
  namespaced: true,
};

const DEFINITION: KubernetesObject = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', kind: 'Widget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
        },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                'x-kubernetes-preserve-unknown-fields': true,
                properties: { replicas: { type: 'integer' } },
              },
              status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
            },
          },
        },
      },
    ],
  },
};

/** Arbitrary JSON values. Some keys have a meaning in JavaScript or in Kubernetes. */
const anything: fc.Arbitrary<JsonValue> = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<JsonValue>;
const keys = fc.constantFrom('__proto__', 'constructor', 'toString', 'name', 'uid', 'kind', 'apiVersion', 'a');
const objects = fc.oneof(anything, fc.dictionary(keys, anything) as fc.Arbitrary<JsonValue>);
const values = fc.oneof(objects, fc.array(objects, { maxLength: 2 }));

const METADATA_FIELDS = [
  'annotations',
  'creationTimestamp',
  'deletionGracePeriodSeconds',
  'deletionTimestamp',
  'finalizers',
  'generateName',
  'generation',
  'labels',
  'managedFields',
  'name',
  'namespace',
  'ownerReferences',
  'resourceVersion',
  'selfLink',
  'uid',
] as const;

const metadata = fc
  .array(fc.tuple(fc.constantFrom(...METADATA_FIELDS), values), { maxLength: 3 })
  .map((fields) => ({ name: 'fuzzed', namespace: 'default', ...Object.fromEntries(fields) }));

const FIELDS = [
  'apiVersion',
  'kind',
  'spec',
  'status',
  'data',
  'rules',
  'subjects',
  'roleRef',
  'webhooks',
  'message',
  '__proto__',
];

const bodies = fc
  .tuple(metadata, fc.array(fc.tuple(fc.constantFrom(...FIELDS), values), { maxLength: 3 }))
  .map(([meta, fields]): JsonObject => ({ metadata: meta, ...Object.fromEntries(fields) }));

const types = [
  ['v1', 'ConfigMap'],
  ['v1', 'Namespace'],
  ['v1', 'Pod'],
  ['v1', 'Service'],
  ['v1', 'Event'],
  ['events.k8s.io/v1', 'Event'],
  ['apps/v1', 'Deployment'],
  ['rbac.authorization.k8s.io/v1', 'RoleBinding'],
  ['admissionregistration.k8s.io/v1', 'MutatingWebhookConfiguration'],
  ['apiextensions.k8s.io/v1', 'CustomResourceDefinition'],
].map(([apiVersion = '', kind = '']) => servedKind(apiVersion, kind) as ResourceType);

const patches = fc.oneof(
  bodies.map((body): Patch => ({ type: 'merge', body })),
  bodies.map((body): Patch => ({ type: 'strategic', body })),
  bodies.map((body): Patch => ({ type: 'apply', body, force: true })),
  fc.array(values, { maxLength: 3 }).map((body): Patch => ({ type: 'json', body })),
);

async function answered(request: Promise<unknown>): Promise<void> {
  try {
    await request;
  } catch (error) {
    assert.ok(
      error instanceof ApiError,
      `expected a refusal, got ${error instanceof Error ? error.stack : String(error)}`,
    );
  }
}

test('nothing that clients send breaks a cluster', async () => {
  await using cluster = await EmbeddedCluster.open({
    onControllerError: (error) => assert.ok(error instanceof ApiError, String(error)),
  });
  const { admin } = cluster;
  await admin.create(servedKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition') as ResourceType, DEFINITION);
  await admin.create(WIDGETS, {
    apiVersion: 'example.com/v1',
    kind: 'Widget',
    metadata: { namespace: 'default', name: 'kept' },
  });
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(WIDGETS, ...types),
      bodies,
      patches,
      fc.constantFrom(undefined, 'status', 'scale', 'token', 'eviction'),
      async (type, body, patch, subresource) => {
        const object = body as KubernetesObject;
        const key = type.namespaced ? { namespace: 'default', name: 'fuzzed' } : { name: 'fuzzed' };
        const options = { fieldManager: 'fuzz', ...(subresource === undefined ? {} : { subresource }) };
        await answered(admin.create(type, object));
        await answered(admin.update(type, object, options));
        await answered(admin.patch(type, key, patch, options));
        await answered(admin.create(type, object, options));
        await answered(
          admin.list(type, { labelSelector: JSON.stringify(body['spec']), fieldSelector: 'metadata.name=x' }),
        );
        await answered(admin.delete(type, key));
      },
    ),
    { numRuns: RUNS },
  );
  await cluster.idle();
  const { metadata: kept } = await admin.get(WIDGETS, { namespace: 'default', name: 'kept' });
  assert.equal(kept.name, 'kept');
  assert.equal(Object.getPrototypeOf({}), Object.prototype);
});
