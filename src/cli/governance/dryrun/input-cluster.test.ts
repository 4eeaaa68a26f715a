import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../../cluster/index.ts';
import { type KubernetesObject, knownKind } from '../../../resources/index.ts';
import { InputCluster } from './input-cluster.ts';
import { readOnly } from './read-only-cluster.ts';

const PODS = knownKind('v1', 'Pod');
const WIDGET = { apiVersion: 'example.com/v1', kind: 'Widget' };

const pod = (name: string, metadata: object = {}): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, ...metadata },
});

describe('a cluster of manifests', () => {
  it('has the objects as they are written, without fields of a server', async () => {
    const cluster = new InputCluster(
      [pod('a', { uid: '1', resourceVersion: '2', labels: { b: 'c' } }), pod('a', { labels: {} })],
      [],
    );
    const { items } = await cluster.list(PODS, { namespace: 'default' });
    assert.deepEqual(items, [
      { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', labels: { b: 'c' }, namespace: 'default' } },
    ]);
  });

  it('has a namespace default', () => {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'web' } };
    assert.deepEqual(new InputCluster([namespace], []).namespaces, ['web', 'default']);
  });

  it('knows kinds by definitions and mappings, and guesses others', async () => {
    const definition = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'widgetz.example.com' },
      spec: {
        group: 'example.com',
        scope: 'Cluster',
        names: { kind: 'Widget', plural: 'widgetz' },
        versions: [{ name: 'v1' }],
      },
    };
    const widget = { ...WIDGET, metadata: { name: 'a', namespace: 'x' } };
    const known = new InputCluster([widget, definition], []);
    assert.deepEqual(known.discovery.guessed, []);
    assert.equal((await known.discovery.find('example.com/v1', 'Widget'))?.resource, 'widgetz');
    const guesses = ['Widget', 'Policy', 'Bus'].map((kind) => ({ ...widget, kind }));
    const { guessed } = new InputCluster(guesses, []).discovery;
    assert.deepEqual(
      guessed.map(({ resource, namespaced }) => [resource, namespaced]),
      [
        ['widgets', true],
        ['policies', true],
        ['buses', true],
      ],
    );
    assert.equal(await known.discovery.find('example.com/v2', 'Widget'), undefined);
  });

  it('keeps what is created, and tells watches of it, also of what they missed', async () => {
    const cluster = new InputCluster([pod('a')], []);
    const { metadata } = await cluster.list(PODS);
    const stop = new AbortController();
    await cluster.create(PODS, pod('b', { namespace: 'default' }));
    const seen: string[] = [];
    for await (const { type, object } of cluster.watch(PODS, {
      resourceVersion: metadata.resourceVersion,
      signal: stop.signal,
    })) {
      seen.push(`${type} ${object.metadata.name ?? ''}`);
      if (seen.length === 1) {
        await cluster.delete(PODS, { namespace: 'default', name: 'a' });
      } else {
        stop.abort();
      }
    }
    assert.deepEqual(seen, ['ADDED b', 'DELETED a']);
    await assert.rejects(cluster.get(PODS, { namespace: 'default', name: 'a' }), { code: 404 });
  });

  it('stores nothing in a dry run', async () => {
    const cluster = new InputCluster([], []);
    const answer = await cluster.update(PODS, pod('a', { namespace: 'default' }), { dryRun: true });
    assert.equal(answer.metadata.name, 'a');
    assert.deepEqual((await cluster.list(PODS)).items, []);
  });
});

describe('a cluster that is only read', () => {
  it('refuses all writes but those that store nothing', async () => {
    const inputs = new InputCluster([pod('a')], []);
    const cluster = readOnly(inputs);
    const key = { namespace: 'default', name: 'a' };
    const refused = (error: unknown): boolean => error instanceof ApiError && error.code === 405;
    await assert.rejects(cluster.create(PODS, pod('b')), refused);
    await assert.rejects(cluster.update(PODS, pod('a')), refused);
    await assert.rejects(cluster.patch(PODS, key, { type: 'merge', body: {} }), refused);
    await assert.rejects(cluster.delete(PODS, key), refused);
    await assert.rejects(cluster.deleteCollection(PODS), refused);
    await cluster.update(PODS, pod('a', { namespace: 'default', labels: { new: 'yes' } }), { dryRun: true });
    assert.deepEqual((await inputs.get(PODS, key)).metadata.labels, undefined);
  });

  it('has no definitions for a user who may not list them', async () => {
    const definitions = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
    const forbidden = new ApiError(403, 'Forbidden', 'no');
    const inputs = new InputCluster([], []);
    const cluster = readOnly(
      new Proxy(inputs, {
        get: (target, name) => (name === 'list' ? () => Promise.reject(forbidden) : Reflect.get(target, name)),
      }),
    );
    const { items, metadata } = await cluster.list(definitions);
    assert.deepEqual(items, []);
    await assert.rejects(cluster.list(PODS), forbidden);
    const events = cluster.watch(definitions, {
      resourceVersion: metadata.resourceVersion,
      signal: AbortSignal.abort(),
    });
    for await (const event of events) {
      assert.fail(event.type);
    }
  });
});
