// Creating, reading, replacing and deleting objects.
import assert from 'node:assert/strict';
import type { PortCase } from './cases.ts';
import { eventually, refused } from './expectations.ts';
import { CONFIG_MAPS, configMap, deployment, DEPLOYMENTS, NAMESPACES, pod, PODS } from './resource-types.ts';

const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again';

export const OBJECT_CASES: readonly PortCase[] = [
  {
    name: 'a new object gets a uid, a version and a time',
    async run({ cluster, namespace }) {
      const created = await cluster.create(CONFIG_MAPS, configMap(namespace, 'a', { key: 'value' }));
      assert.match(created.metadata.uid ?? '', /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/);
      assert.match(created.metadata.resourceVersion ?? '', /^[1-9]\d*$/);
      assert.match(created.metadata.creationTimestamp ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      assert.equal(created.metadata.generation, undefined);
      assert.deepEqual(created.data, { key: 'value' });
      assert.deepEqual(await cluster.get(CONFIG_MAPS, { namespace, name: 'a' }), created);
    },
  },
  {
    name: 'a client cannot choose uid, version, time or deletion of a new object',
    async run({ cluster, namespace }) {
      const object = configMap(namespace, 'a');
      const created = await cluster.create(CONFIG_MAPS, {
        ...object,
        metadata: {
          ...object.metadata,
          uid: 'mine',
          creationTimestamp: '2000-01-01T00:00:00Z',
          deletionTimestamp: '2000-01-01T00:00:00Z',
          generation: 7,
        },
      });
      assert.notEqual(created.metadata.uid, 'mine');
      assert.notEqual(created.metadata.creationTimestamp, '2000-01-01T00:00:00Z');
      assert.equal(created.metadata.deletionTimestamp, undefined);
      await refused(
        cluster.create(CONFIG_MAPS, { ...object, metadata: { ...object.metadata, name: 'b', resourceVersion: '5' } }),
        500,
        'Unknown',
        'resourceVersion should not be set on objects to be created',
      );
    },
  },
  {
    name: 'a missing object is not found, with the message of an API server',
    async run({ cluster, namespace }) {
      const error = await refused(
        cluster.get(CONFIG_MAPS, { namespace, name: 'none' }),
        404,
        'NotFound',
        'configmaps "none" not found',
      );
      assert.deepEqual(error.details, { name: 'none', kind: 'configmaps' });
      const grouped = await refused(
        cluster.get(DEPLOYMENTS, { namespace, name: 'none' }),
        404,
        'NotFound',
        'deployments.apps "none" not found',
      );
      assert.deepEqual(grouped.details, { name: 'none', group: 'apps', kind: 'deployments' });
    },
  },
  {
    name: 'a second object of the same name already exists',
    async run({ cluster, namespace }) {
      await cluster.create(CONFIG_MAPS, configMap(namespace, 'a'));
      await refused(
        cluster.create(CONFIG_MAPS, configMap(namespace, 'a')),
        409,
        'AlreadyExists',
        'configmaps "a" already exists',
      );
    },
  },
  {
    name: 'generateName creates different names',
    async run({ cluster, namespace }) {
      const template = { ...configMap(namespace, ''), metadata: { namespace, generateName: 'made-' } };
      const [one, two] = [await cluster.create(CONFIG_MAPS, template), await cluster.create(CONFIG_MAPS, template)];
      assert.match(one.metadata.name ?? '', /^made-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
      assert.notEqual(one.metadata.name, two.metadata.name);
    },
  },
  {
    name: 'an object needs a name',
    async run({ cluster, namespace }) {
      const nameless = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace } };
      const error = await refused(
        cluster.create(CONFIG_MAPS, nameless),
        422,
        'Invalid',
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
      );
      assert.deepEqual(error.details?.causes, [
        {
          reason: 'FieldValueRequired',
          message: 'Required value: name or generateName is required',
          field: 'metadata.name',
        },
      ]);
    },
  },
  {
    name: 'names and labels are validated',
    async run({ cluster, namespace }) {
      await refused(
        cluster.create(CONFIG_MAPS, configMap(namespace, 'No_Good')),
        422,
        'Invalid',
        /^ConfigMap "No_Good" is invalid: metadata\.name: Invalid value: "No_Good": a lowercase RFC 1123 subdomain must consist of/,
      );
      const labelled = { ...configMap(namespace, 'a'), metadata: { namespace, name: 'a', labels: { 'a b': 'c d' } } };
      const error = await refused(cluster.create(CONFIG_MAPS, labelled), 422, 'Invalid');
      assert.deepEqual(
        error.details?.causes?.map(({ field, reason }) => [field, reason]),
        [
          ['metadata.labels', 'FieldValueInvalid'],
          ['metadata.labels', 'FieldValueInvalid'],
        ],
      );
    },
  },
  {
    name: 'an object must be in the namespace of the request, which must exist',
    async run({ cluster, unique }) {
      const missing = unique('missing');
      await refused(
        cluster.create(CONFIG_MAPS, configMap(missing, 'a')),
        404,
        'NotFound',
        `namespaces "${missing}" not found`,
      );
    },
  },
  {
    name: 'replacing an old version is a conflict, and changes nothing',
    async run({ cluster, namespace }) {
      const first = await cluster.create(CONFIG_MAPS, configMap(namespace, 'a', { n: '1' }));
      const second = await cluster.update(CONFIG_MAPS, { ...first, data: { n: '2' } });
      assert.notEqual(second.metadata.resourceVersion, first.metadata.resourceVersion);
      await refused(
        cluster.update(CONFIG_MAPS, { ...first, data: { n: '3' } }),
        409,
        'Conflict',
        `Operation cannot be fulfilled on configmaps "a": ${MODIFIED}`,
      );
      assert.deepEqual((await cluster.get(CONFIG_MAPS, { namespace, name: 'a' })).data, { n: '2' });
    },
  },
  {
    name: 'replacing without a version replaces the newest',
    async run({ cluster, namespace }) {
      const first = await cluster.create(CONFIG_MAPS, configMap(namespace, 'a', { n: '1' }));
      const second = await cluster.update(CONFIG_MAPS, configMap(namespace, 'a', { n: '2' }));
      assert.equal(second.metadata.uid, first.metadata.uid);
      assert.equal(second.metadata.creationTimestamp, first.metadata.creationTimestamp);
      assert.deepEqual(second.data, { n: '2' });
    },
  },
  {
    name: 'replacing with the same content keeps the version',
    async run({ cluster, namespace }) {
      const first = await cluster.create(CONFIG_MAPS, configMap(namespace, 'a', { n: '1' }));
      const again = await cluster.update(CONFIG_MAPS, first);
      assert.equal(again.metadata.resourceVersion, first.metadata.resourceVersion);
    },
  },
  {
    name: 'an object with another uid is not replaced',
    async run({ cluster, namespace }) {
      const first = await cluster.create(CONFIG_MAPS, configMap(namespace, 'a'));
      const other = { ...first, metadata: { ...first.metadata, uid: '00000000-0000-4000-8000-000000000000' } };
      await refused(
        cluster.update(CONFIG_MAPS, other),
        409,
        'Conflict',
        new RegExp(
          `Precondition failed: UID in precondition: 00000000-0000-4000-8000-000000000000, UID in object meta: ${first.metadata.uid}`,
        ),
      );
    },
  },
  {
    name: 'a missing object is not replaced',
    async run({ cluster, namespace }) {
      await refused(
        cluster.update(CONFIG_MAPS, configMap(namespace, 'a')),
        404,
        'NotFound',
        'configmaps "a" not found',
      );
    },
  },
  {
    name: 'generation counts changes of the spec only',
    async run({ cluster, namespace }) {
      const key = { namespace, name: 'web' };
      const first = await cluster.create(DEPLOYMENTS, deployment(namespace, 'web'));
      assert.equal(first.metadata.generation, 1);
      const labelled = await cluster.patch(DEPLOYMENTS, key, {
        type: 'merge',
        body: { metadata: { labels: { a: 'b' } } },
      });
      assert.equal(labelled.metadata.generation, 1);
      const scaled = await cluster.patch(DEPLOYMENTS, key, { type: 'merge', body: { spec: { replicas: 3 } } });
      assert.equal(scaled.metadata.generation, 2);
      const status = { ...scaled, status: { replicas: 2 } };
      const reported = await cluster.update(DEPLOYMENTS, status, { subresource: 'status' });
      assert.equal(reported.metadata.generation, 2);
    },
  },
  {
    name: 'status and spec are written separately',
    async run({ cluster, namespace }) {
      const first = await cluster.create(DEPLOYMENTS, { ...deployment(namespace, 'web'), status: { replicas: 9 } });
      assert.equal(first.status?.['replicas'], undefined);
      const reported = await cluster.update(
        DEPLOYMENTS,
        { ...first, spec: { ...first.spec, replicas: 5 }, status: { replicas: 2 } },
        { subresource: 'status' },
      );
      assert.deepEqual([reported.spec['replicas'], reported.status?.['replicas']], [1, 2]);
      const updated = await cluster.update(DEPLOYMENTS, { ...reported, status: { replicas: 7 } });
      assert.equal(updated.status?.['replicas'], 2);
      const read = await cluster.get(DEPLOYMENTS, { namespace, name: 'web' }, { subresource: 'status' });
      assert.equal(read.status?.['replicas'], 2);
    },
  },
  {
    name: 'a dry run responds as usual, and stores nothing',
    async run({ cluster, namespace }) {
      const created = await cluster.create(CONFIG_MAPS, configMap(namespace, 'a', { n: '1' }), { dryRun: true });
      assert.match(created.metadata.uid ?? '', /./);
      await refused(cluster.get(CONFIG_MAPS, { namespace, name: 'a' }), 404, 'NotFound');
      const real = await cluster.create(CONFIG_MAPS, configMap(namespace, 'a', { n: '1' }));
      const changed = await cluster.update(CONFIG_MAPS, { ...real, data: { n: '2' } }, { dryRun: true });
      assert.deepEqual(changed.data, { n: '2' });
      await cluster.delete(CONFIG_MAPS, { namespace, name: 'a' }, { dryRun: true });
      const read = await cluster.get(CONFIG_MAPS, { namespace, name: 'a' });
      assert.deepEqual(read, real);
    },
  },
  {
    name: 'deleting removes an object, and a second time it is not found',
    async run({ cluster, namespace }) {
      await cluster.create(CONFIG_MAPS, configMap(namespace, 'a'));
      assert.equal(await cluster.delete(CONFIG_MAPS, { namespace, name: 'a' }), undefined);
      await refused(cluster.delete(CONFIG_MAPS, { namespace, name: 'a' }), 404, 'NotFound', 'configmaps "a" not found');
    },
  },
  {
    name: 'preconditions prevent a deletion',
    async run({ cluster, namespace }) {
      const first = await cluster.create(CONFIG_MAPS, configMap(namespace, 'a'));
      const key = { namespace, name: 'a' };
      await refused(
        cluster.delete(CONFIG_MAPS, key, { preconditions: { uid: 'another' } }),
        409,
        'Conflict',
        `Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (another) does not match the UID in record (${first.metadata.uid}). The object might have been deleted and then recreated`,
      );
      await cluster.update(CONFIG_MAPS, { ...first, data: { n: '1' } });
      await refused(
        cluster.delete(CONFIG_MAPS, key, {
          preconditions: { resourceVersion: first.metadata.resourceVersion ?? '' },
        }),
        409,
        'Conflict',
        /^Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition \(\d+\) does not match the ResourceVersion in record \(\d+\)\. The object might have been modified$/,
      );
      await cluster.get(CONFIG_MAPS, key);
    },
  },
  {
    name: 'finalizers keep an object until they are removed',
    async run({ cluster, namespace }) {
      const key = { namespace, name: 'a' };
      const object = configMap(namespace, 'a');
      const held = await cluster.create(CONFIG_MAPS, {
        ...object,
        metadata: { ...object.metadata, finalizers: ['example.com/hold'] },
      });
      const deleted = await cluster.delete(CONFIG_MAPS, key);
      assert.match(deleted?.metadata.deletionTimestamp ?? '', /^\d{4}-/);
      assert.equal(deleted?.metadata.deletionGracePeriodSeconds, 0);
      assert.equal(deleted?.metadata.uid, held.metadata.uid);
      const more = { metadata: { finalizers: ['example.com/hold', 'example.com/more'] } };
      await refused(
        cluster.patch(CONFIG_MAPS, key, { type: 'merge', body: more }),
        422,
        'Invalid',
        /no new finalizers can be added if the object is being deleted, found new finalizers \[\]string{"example\.com\/more"}/,
      );
      await cluster.patch(CONFIG_MAPS, key, { type: 'merge', body: { data: { still: 'writable' } } });
      await cluster.patch(CONFIG_MAPS, key, { type: 'merge', body: { metadata: { finalizers: null } } });
      await refused(cluster.get(CONFIG_MAPS, key), 404, 'NotFound');
    },
  },
  {
    name: 'pods wait for their node unless they have none',
    async run({ cluster, namespace }) {
      await cluster.create(PODS, pod(namespace, 'a'));
      await cluster.delete(PODS, { namespace, name: 'a' });
      await refused(cluster.get(PODS, { namespace, name: 'a' }), 404, 'NotFound', 'pods "a" not found');
    },
  },
  {
    name: 'deleteCollection deletes matching objects',
    async run({ cluster, namespace }) {
      for (const name of ['a', 'b', 'c']) {
        const object = configMap(namespace, name);
        const labels = { keep: name === 'b' ? 'yes' : 'no' };
        await cluster.create(CONFIG_MAPS, { ...object, metadata: { ...object.metadata, labels } });
      }
      await cluster.deleteCollection(CONFIG_MAPS, { namespace, labelSelector: 'keep=no' });
      const { items } = await cluster.list(CONFIG_MAPS, { namespace, labelSelector: 'keep' });
      assert.deepEqual(
        items.map((item) => item.metadata.name),
        ['b'],
      );
    },
  },
  {
    name: 'an object that is too large for the store is rejected',
    async run({ cluster, namespace }) {
      const big = configMap(namespace, 'big', { text: 'x'.repeat(1_100_000) });
      await refused(
        cluster.create(CONFIG_MAPS, big),
        422,
        'Invalid',
        /^ConfigMap "big" is invalid: \[?data?.*Too long: may not be more than 1048576 bytes|: Too long/,
      );
    },
  },
  {
    name: 'a namespace that is deleted or terminating accepts no objects',
    async run({ cluster, unique }) {
      const name = unique('ending');
      await cluster.create(NAMESPACES, {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name, finalizers: ['example.com/hold'] },
        spec: {},
      });
      await cluster.delete(NAMESPACES, { name });
      const error = await eventually(() =>
        refused(cluster.create(CONFIG_MAPS, configMap(name, 'a')), 403, 'Forbidden'),
      );
      assert.equal(
        error.message,
        `configmaps "a" is forbidden: unable to create new content in namespace ${name} because it is being terminated`,
      );
      assert.equal(error.details?.causes?.[0]?.reason, 'NamespaceTerminating');
      const { metadata, status } = await cluster.get(NAMESPACES, { name });
      assert.match(metadata.deletionTimestamp ?? '', /./);
      assert.equal(status?.['phase'], 'Terminating');
    },
  },
];
