// Patches of all types, and server-side apply.
import assert from 'node:assert/strict';
import type { PortCase } from './cases.ts';
import { refused } from './expectations.ts';
import { CONFIG_MAPS, configMap, deployment, DEPLOYMENTS, SERVICES } from './resource-types.ts';
import type { JsonObject } from '../../src/resources/index.ts';

interface Container {
  readonly name: string;
  readonly image?: string;
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}

function containersOf(object: { readonly spec: Readonly<Record<string, unknown>> }): readonly Container[] {
  return (object.spec['template'] as { spec: { containers: readonly Container[] } }).spec.containers;
}

function inTemplate(containers: readonly object[]): JsonObject {
  return { spec: { template: { spec: { containers } } } } as unknown as JsonObject;
}

export const PATCH_CASES: readonly PortCase[] = [
  {
    name: 'a merge patch sets and removes fields, and replaces lists',
    async run({ cluster, namespace }) {
      const key = { namespace, name: 'a' };
      await cluster.create(CONFIG_MAPS, configMap(namespace, 'a', { keep: '1', drop: '2' }));
      const patched = await cluster.patch(CONFIG_MAPS, key, {
        type: 'merge',
        body: { data: { drop: null, add: '3' } },
      });
      assert.deepEqual(patched.data, { keep: '1', add: '3' });
      await cluster.create(DEPLOYMENTS, deployment(namespace, 'web'));
      const replaced = await cluster.patch(
        DEPLOYMENTS,
        { namespace, name: 'web' },
        { type: 'merge', body: inTemplate([{ name: 'other', image: 'registry.example/other:1' }]) },
      );
      assert.deepEqual(
        containersOf(replaced).map(({ name }) => name),
        ['other'],
      );
    },
  },
  {
    name: 'a JSON patch applies all of its operations, or none',
    async run({ cluster, namespace }) {
      const key = { namespace, name: 'a' };
      await cluster.create(CONFIG_MAPS, configMap(namespace, 'a', { n: '1' }));
      const patched = await cluster.patch(CONFIG_MAPS, key, {
        type: 'json',
        body: [
          { op: 'test', path: '/data/n', value: '1' },
          { op: 'replace', path: '/data/n', value: '2' },
          { op: 'add', path: '/data/m', value: 'x' },
        ],
      });
      assert.deepEqual(patched.data, { n: '2', m: 'x' });
      await refused(
        cluster.patch(CONFIG_MAPS, key, {
          type: 'json',
          body: [
            { op: 'replace', path: '/data/n', value: '3' },
            { op: 'test', path: '/data/m', value: 'other' },
          ],
        }),
        422,
        'Invalid',
        'the server rejected our request due to an error in our request',
      );
      assert.deepEqual((await cluster.get(CONFIG_MAPS, key)).data, { n: '2', m: 'x' });
    },
  },
  {
    name: 'a strategic merge patch merges lists by their keys',
    async run({ cluster, namespace }) {
      const key = { namespace, name: 'web' };
      await cluster.create(DEPLOYMENTS, deployment(namespace, 'web'));
      const added = await cluster.patch(DEPLOYMENTS, key, {
        type: 'strategic',
        body: inTemplate([{ name: 'side', image: 'registry.example/side:1', env: [{ name: 'A', value: '1' }] }]),
      });
      assert.deepEqual(
        containersOf(added)
          .map(({ name }) => name)
          .toSorted(),
        ['main', 'side'],
      );
      const changed = await cluster.patch(DEPLOYMENTS, key, {
        type: 'strategic',
        body: inTemplate([{ name: 'side', env: [{ name: 'B', value: '2' }] }]),
      });
      const side = containersOf(changed).find(({ name }) => name === 'side');
      assert.equal(side?.image, 'registry.example/side:1');
      assert.deepEqual((side?.env ?? []).map(({ name }) => name).toSorted(), ['A', 'B']);
      const removed = await cluster.patch(DEPLOYMENTS, key, {
        type: 'strategic',
        body: inTemplate([{ name: 'side', $patch: 'delete' }]),
      });
      assert.deepEqual(
        containersOf(removed).map(({ name }) => name),
        ['main'],
      );
    },
  },
  {
    name: 'a patch of a missing object is not found',
    async run({ cluster, namespace }) {
      await refused(
        cluster.patch(CONFIG_MAPS, { namespace, name: 'none' }, { type: 'merge', body: { data: {} } }),
        404,
        'NotFound',
        'configmaps "none" not found',
      );
    },
  },
  {
    name: 'a patch of an old version is a conflict',
    async run({ cluster, namespace }) {
      const key = { namespace, name: 'a' };
      const first = await cluster.create(CONFIG_MAPS, configMap(namespace, 'a', { n: '1' }));
      await cluster.patch(CONFIG_MAPS, key, { type: 'merge', body: { data: { n: '2' } } });
      const body = { metadata: { resourceVersion: first.metadata.resourceVersion ?? '' }, data: { n: '3' } };
      await refused(
        cluster.patch(CONFIG_MAPS, key, { type: 'merge', body }),
        409,
        'Conflict',
        /^Operation cannot be fulfilled on configmaps "a": the object has been modified/,
      );
    },
  },
  {
    name: 'a patch cannot rename',
    async run({ cluster, namespace }) {
      await cluster.create(CONFIG_MAPS, configMap(namespace, 'a'));
      await refused(
        cluster.patch(CONFIG_MAPS, { namespace, name: 'a' }, { type: 'merge', body: { metadata: { name: 'b' } } }),
        400,
        'BadRequest',
        'the name of the object (b) does not match the name on the URL (a)',
      );
    },
  },
  {
    name: 'apply creates, changes, and removes fields that its manager no longer sets',
    async run({ cluster, namespace }) {
      const key = { namespace, name: 'a' };
      const wanted = (data: Record<string, string>): JsonObject => ({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { namespace, name: 'a' },
        data,
      });
      const options = { fieldManager: 'me' };
      await cluster.patch(CONFIG_MAPS, key, { type: 'apply', body: wanted({ one: '1', two: '2' }) }, options);
      await cluster.patch(
        CONFIG_MAPS,
        key,
        { type: 'merge', body: { data: { three: '3' } } },
        { fieldManager: 'other' },
      );
      const applied = await cluster.patch(CONFIG_MAPS, key, { type: 'apply', body: wanted({ one: '1' }) }, options);
      assert.deepEqual(applied.data, { one: '1', three: '3' });
      assert.deepEqual(
        applied.metadata.managedFields?.map(({ manager, operation, apiVersion, fieldsType, fieldsV1 }) => ({
          manager,
          operation,
          apiVersion,
          fieldsType,
          fieldsV1,
        })),
        [
          {
            manager: 'me',
            operation: 'Apply',
            apiVersion: 'v1',
            fieldsType: 'FieldsV1',
            fieldsV1: { 'f:data': { 'f:one': {} } },
          },
          {
            manager: 'other',
            operation: 'Update',
            apiVersion: 'v1',
            fieldsType: 'FieldsV1',
            fieldsV1: { 'f:data': { 'f:three': {} } },
          },
        ],
      );
      const again = await cluster.patch(CONFIG_MAPS, key, { type: 'apply', body: wanted({ one: '1' }) }, options);
      assert.equal(again.metadata.resourceVersion, applied.metadata.resourceVersion);
    },
  },
  {
    name: 'apply does not take over fields of other managers, unless forced',
    async run({ cluster, namespace }) {
      const key = { namespace, name: 'web' };
      await cluster.create(DEPLOYMENTS, deployment(namespace, 'web', 1), { fieldManager: 'creator' });
      const body: JsonObject = {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { namespace, name: 'web' },
        spec: { replicas: 4 },
      };
      const error = await refused(
        cluster.patch(DEPLOYMENTS, key, { type: 'apply', body }, { fieldManager: 'me' }),
        409,
        'Conflict',
        'Apply failed with 1 conflict: conflict with "creator" using apps/v1: .spec.replicas',
      );
      assert.deepEqual(error.details?.causes, [
        {
          reason: 'FieldManagerConflict',
          message: 'conflict with "creator" using apps/v1',
          field: '.spec.replicas',
        },
      ]);
      const forced = await cluster.patch(
        DEPLOYMENTS,
        key,
        { type: 'apply', body, force: true },
        { fieldManager: 'me' },
      );
      assert.equal(forced.spec['replicas'], 4);
      const shared = await cluster.patch(DEPLOYMENTS, key, { type: 'apply', body }, { fieldManager: 'third' });
      assert.equal(shared.metadata.managedFields?.filter(({ operation }) => operation === 'Apply').length, 2);
    },
  },
  {
    name: 'apply merges lists by their keys',
    async run({ cluster, namespace }) {
      const key = { namespace, name: 'svc' };
      const ports = (list: readonly object[]): JsonObject =>
        ({
          apiVersion: 'v1',
          kind: 'Service',
          metadata: { namespace, name: 'svc' },
          spec: { selector: { app: 'x' }, ports: list },
        }) as unknown as JsonObject;
      const http = { name: 'http', port: 80, protocol: 'TCP' };
      const https = { name: 'https', port: 443, protocol: 'TCP' };
      await cluster.patch(SERVICES, key, { type: 'apply', body: ports([http]) }, { fieldManager: 'one' });
      await cluster.patch(SERVICES, key, { type: 'apply', body: ports([https]) }, { fieldManager: 'two' });
      const namesOf = (spec: Readonly<Record<string, unknown>>): string[] =>
        (spec['ports'] as { name: string }[]).map(({ name }) => name);
      assert.deepEqual(namesOf((await cluster.get(SERVICES, key)).spec), ['http', 'https']);
      const body = ports([https, { name: 'metrics', port: 9090, protocol: 'TCP' }]);
      const three = await cluster.patch(SERVICES, key, { type: 'apply', body }, { fieldManager: 'two' });
      assert.deepEqual(namesOf(three.spec).toSorted(), ['http', 'https', 'metrics']);
      const rest = await cluster.patch(SERVICES, key, { type: 'apply', body: ports([http]) }, { fieldManager: 'two' });
      assert.deepEqual(namesOf(rest.spec), ['http']);
    },
  },
  {
    name: 'apply needs a manager, and an object with kind and version',
    async run({ cluster, namespace }) {
      const key = { namespace, name: 'a' };
      const body: JsonObject = { kind: 'ConfigMap', metadata: { namespace, name: 'a' } };
      await refused(
        cluster.patch(CONFIG_MAPS, key, { type: 'apply', body }, { fieldManager: 'me' }),
        400,
        'BadRequest',
        'invalid object type: /, Kind=ConfigMap',
      );
    },
  },
  {
    name: 'writers own the fields that they set',
    async run({ cluster, namespace }) {
      const made = await cluster.create(CONFIG_MAPS, configMap(namespace, 'a', { n: '1' }), {
        fieldManager: 'creator',
      });
      const updated = await cluster.update(
        CONFIG_MAPS,
        { ...made, data: { n: '2', m: '1' } },
        { fieldManager: 'updater' },
      );
      const owned = Object.fromEntries(
        (updated.metadata.managedFields ?? []).map(({ manager, fieldsV1 }) => [manager, fieldsV1]),
      );
      assert.deepEqual(owned, {
        creator: { 'f:data': {} },
        updater: { 'f:data': { 'f:m': {}, 'f:n': {} } },
      });
    },
  },
];
