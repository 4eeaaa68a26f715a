import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Registry } from 'prom-client';
import { EmbeddedCluster } from '../apiserver/index.ts';
import type { KubernetesObject, ResourceType } from '../resources/index.ts';
import { Controller } from './controller.ts';
import { RuntimeMetrics } from './metrics.ts';
import { SharedCaches } from './shared-caches.ts';
import { silentLog } from './testing/silent-log.ts';
import { until } from './testing/until.ts';
import { watch } from './watch.ts';

interface ConfigMap extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>;
}

const CONFIG_MAPS: ResourceType<ConfigMap> = {
  group: '',
  version: 'v1',
  resource: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};

const configMap = (
  name: string,
  data: Record<string, string> = {},
  labels: Record<string, string> = {},
): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace: 'default', name, labels },
  data,
});

/** An embedded cluster with running caches. */
async function world() {
  const cluster = await EmbeddedCluster.open();
  const registry = new Registry();
  const caches = new SharedCaches({ cluster: cluster.admin, log: silentLog(), metrics: new RuntimeMetrics(registry) });
  const stop = new AbortController();
  let run: Promise<void> | undefined;
  return {
    cluster: cluster.admin,
    caches,
    registry,
    signal: stop.signal,
    start: () => {
      run ??= caches.start(stop.signal);
      return caches.ready;
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await run;
      await cluster.close();
    },
  };
}

describe('SharedCaches', () => {
  it('shares one cache for a type and scope', async () => {
    await using test = await world();
    const { caches } = test;
    assert.equal(caches.cache(CONFIG_MAPS), caches.cache({ ...CONFIG_MAPS }));
    assert.notEqual(caches.cache(CONFIG_MAPS), caches.cache(CONFIG_MAPS, { namespace: 'default' }));
    assert.notEqual(
      caches.cache(CONFIG_MAPS, { labelSelector: 'a=b' }),
      caches.cache(CONFIG_MAPS, { fieldSelector: 'a=b' }),
    );
    assert.deepEqual(
      caches.stats().map(({ name }) => name),
      ['configmaps', 'configmaps default', 'configmaps a=b', 'configmaps a=b'],
    );
  });

  it('reads the cluster until it is synced, then follows it', async () => {
    await using test = await world();
    await test.cluster.create(CONFIG_MAPS, configMap('a', { key: '1' }));
    const cache = test.caches.cache(CONFIG_MAPS);
    const labelled = test.caches.cache(CONFIG_MAPS, { labelSelector: 'team=x' });
    assert.equal(cache.isSynced, false);
    await test.start();
    assert.equal(cache.isSynced, true);
    const key = { namespace: 'default', name: 'a' };
    assert.deepEqual(cache.get(key)?.data, { key: '1' });
    assert.equal(labelled.size, 0);
    await test.cluster.patch(CONFIG_MAPS, key, {
      type: 'merge',
      body: { data: { key: '2' }, metadata: { labels: { team: 'x' } } },
    });
    await until(() => cache.get(key)?.data?.key === '2' && labelled.size === 1);
    await test.cluster.delete(CONFIG_MAPS, key);
    await until(() => cache.get(key) === undefined && labelled.size === 0);
  });

  it('stores no managed fields', async () => {
    await using test = await world();
    await test.cluster.create(CONFIG_MAPS, configMap('a'));
    const cache = test.caches.cache(CONFIG_MAPS);
    await test.start();
    assert.equal(cache.get({ namespace: 'default', name: 'a' })?.metadata.managedFields, undefined);
  });

  it('starts a cache at once that is created after start', async () => {
    await using test = await world();
    await test.start();
    await test.cluster.create(CONFIG_MAPS, configMap('a'));
    const cache = test.caches.cache(CONFIG_MAPS);
    await cache.synced;
    assert.notEqual(cache.get({ namespace: 'default', name: 'a' }), undefined);
  });

  it('reports sizes and lags to metrics', async () => {
    await using test = await world();
    await test.cluster.create(CONFIG_MAPS, configMap('a'));
    test.caches.cache(CONFIG_MAPS, { namespace: 'default' });
    await test.start();
    const text = await test.registry.metrics();
    for (const line of [
      'portcullis_cache_objects{cache="configmaps default"} 1',
      'portcullis_cache_synced{cache="configmaps default"} 1',
      'portcullis_cache_lists_total{cache="configmaps default"} 1',
      'portcullis_cache_failures_total{cache="configmaps default"} 0',
    ]) {
      assert.ok(text.includes(`${line}\n`), `${line} is not in\n${text}`);
    }
    assert.match(text, /portcullis_cache_lag_seconds\{cache="configmaps default"\} 0\.\d+/);
  });

  it('feeds controllers until the cluster matches their objects', async () => {
    await using test = await world();
    const cache = test.caches.cache(CONFIG_MAPS);
    let calls = 0;
    const controller = new Controller({
      name: 'copier',
      log: silentLog(),
      watches: [watch(cache)],
      async reconcile(key) {
        calls += 1;
        const object = cache.get(key);
        if (object?.data === undefined || object.data.copy === object.data.text) {
          return;
        }
        // A cache that is behind causes a conflict, which is retried.
        await test.cluster.update(CONFIG_MAPS, { ...object, data: { ...object.data, copy: object.data.text ?? '' } });
      },
    });
    const run = controller.start(test.signal);
    await test.start();
    const key = { namespace: 'default', name: 'a' };
    await test.cluster.create(CONFIG_MAPS, configMap('a', { text: 'one' }));
    await until(() => cache.get(key)?.data?.copy === 'one');
    for (const text of ['two', 'three', 'four']) {
      await test.cluster.patch(CONFIG_MAPS, key, { type: 'merge', body: { data: { text } } });
    }
    await until(() => cache.get(key)?.data?.copy === 'four');
    const { resourceVersion } = cache.get(key)!.metadata;
    assert.ok(calls < 20, `${calls} reconciliations`);
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(cache.get(key)?.metadata.resourceVersion, resourceVersion);
    void run;
  });
});
