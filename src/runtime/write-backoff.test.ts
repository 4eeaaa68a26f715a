import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EmbeddedCluster } from '../apiserver/index.ts';
import type { Cluster } from '../cluster/index.ts';
import { type JsonObject, kubernetesKind, type KubernetesObject, type ResourceType } from '../resources/index.ts';
import { Waiting } from './reconcile-outcome.ts';
import { withWriteBackoff, WriteBackoff } from './write-backoff.ts';
import { ManualClock } from './testing/manual-clock.ts';
import { silentLog } from './testing/silent-log.ts';

interface ConfigMap extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>;
}

const CONFIG_MAPS = kubernetesKind('v1', 'ConfigMap') as ResourceType<ConfigMap>;
const KEY = { namespace: 'default', name: 'contested' };

/** A cluster on which some write with backoff, and others without. */
async function scene() {
  const embedded = await EmbeddedCluster.open();
  const clock = new ManualClock();
  const join = (): Cluster => withWriteBackoff(embedded.admin, { log: silentLog(), clock });
  return { cluster: embedded.admin, clock, join, [Symbol.asyncDispose]: () => embedded.close() };
}

const configMap = (value: string, metadata: object = {}): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { ...KEY, ...metadata },
  data: { value },
});

/** The verbs with which controllers write an object. */
const WRITES: Readonly<Record<string, (cluster: Cluster, value: string) => Promise<unknown>>> = {
  update: async (cluster, value) => {
    const { metadata } = await cluster.get(CONFIG_MAPS, KEY);
    return await cluster.update(CONFIG_MAPS, configMap(value, metadata));
  },
  'merge patch': async (cluster, value) => {
    const { resourceVersion = '' } = (await cluster.get(CONFIG_MAPS, KEY)).metadata;
    const body = { metadata: { resourceVersion }, data: { value } };
    return await cluster.patch(CONFIG_MAPS, KEY, { type: 'merge', body });
  },
  apply: (cluster, value) =>
    cluster.patch(
      CONFIG_MAPS,
      KEY,
      { type: 'apply', body: configMap(value) as JsonObject, force: true },
      { fieldManager: 'test' },
    ),
};

describe('a cluster with write backoff', () => {
  for (const [way, write] of Object.entries(WRITES)) {
    it(`delays equal writes of two disagreeing writers more and more (${way})`, async () => {
      await using test = await scene();
      await test.cluster.create(CONFIG_MAPS, configMap('nothing'));
      const [one, other] = [test.join(), test.join()];
      const wroteAt: number[] = [];
      for (let second = 0; second <= 600; second += 1) {
        for (const [cluster, value] of [[one, 'one'] as const, [other, 'other'] as const]) {
          try {
            await write(cluster, value);
            if (cluster === one) {
              wroteAt.push(second);
            }
          } catch (error) {
            assert.ok(error instanceof Waiting && error.reason === 'Contested', String(error));
          }
        }
        test.clock.advance(1_000);
      }
      assert.deepEqual(wroteAt.slice(0, 9), [0, 1, 2, 3, 4, 6, 10, 18, 34]);
      const gaps = wroteAt.slice(9).map((at, index) => at - (wroteAt[index + 8] ?? 0));
      assert.deepEqual(new Set(gaps.slice(1)), new Set([60]));
    });
  }

  it('reports when to retry, and the possible cause', async () => {
    await using test = await scene();
    const cluster = test.join();
    const apply = WRITES['apply'] ?? (() => Promise.reject(new Error('no such way')));
    for (let count = 0; count < 4; count += 1) {
      await apply(cluster, 'one');
    }
    test.clock.advance(400);
    await assert.rejects(apply(cluster, 'one'), (error) => {
      assert.ok(error instanceof Waiting);
      assert.equal(error.afterMs, 600);
      assert.match(error.message, /^ConfigMap contested is changed by another writer again and again/);
      return true;
    });
    test.clock.advance(600);
    await apply(cluster, 'one');
  });

  it('never delays a different write, a dry run, or a write to another object', async () => {
    await using test = await scene();
    await test.cluster.create(CONFIG_MAPS, configMap('nothing'));
    const cluster = test.join();
    for (let count = 0; count < 20; count += 1) {
      for (const value of ['one', 'other']) {
        await WRITES['update']?.(cluster, value);
      }
      await cluster.update(CONFIG_MAPS, configMap('one'), { dryRun: true });
      await cluster.create(CONFIG_MAPS, configMap('one', { name: `contested-${count}` }));
    }
  });

  it('treats a new object with the name of a deleted one as another object', async () => {
    await using test = await scene();
    const cluster = test.join();
    for (let count = 0; count < 20; count += 1) {
      // Another writer does.
      await test.cluster.create(CONFIG_MAPS, configMap('nothing'));
      await WRITES['merge patch']?.(cluster, 'one');
      await test.cluster.delete(CONFIG_MAPS, KEY);
    }
    for (let count = 0; count < 20; count += 1) {
      await WRITES['apply']?.(cluster, 'one');
      await cluster.delete(CONFIG_MAPS, KEY);
    }
  });

  it('creates an object again at once, however often another writer deletes it', async () => {
    await using test = await scene();
    const cluster = test.join();
    for (let count = 0; count < 20; count += 1) {
      await cluster.create(CONFIG_MAPS, configMap('one'));
      await test.cluster.delete(CONFIG_MAPS, KEY);
    }
  });

  it('does not delay writes that are minutes apart', async () => {
    await using test = await scene();
    await test.cluster.create(CONFIG_MAPS, configMap('nothing'));
    const cluster = test.join();
    for (let count = 0; count < 20; count += 1) {
      await WRITES['apply']?.(cluster, 'one');
      test.clock.advance(150_000);
    }
    await WRITES['apply']?.(cluster, 'one');
    await WRITES['apply']?.(cluster, 'one');
  });

  it('forgets contested objects', async () => {
    await using test = await scene();
    await test.cluster.create(CONFIG_MAPS, configMap('nothing'));
    const cluster = test.join();
    for (let round = 0; round < 3; round += 1) {
      for (let count = 0; count < 4; count += 1) {
        await WRITES['update']?.(cluster, 'one');
      }
      await assert.rejects(async () => WRITES['update']?.(cluster, 'one'), Waiting);
      test.clock.advance(10 * 60_000);
    }
  });

  it('forgets objects that are not written any more, also those that others delete', async () => {
    const clock = new ManualClock();
    const backoff = new WriteBackoff({ log: silentLog(), clock });
    const write = (namespace: string): Promise<KubernetesObject> => {
      const key = { namespace, name: 'settings' };
      const content = { data: {} };
      return backoff.write({ type: CONFIG_MAPS, key, content, mayCreate: false, options: undefined }, async () =>
        configMap('', { namespace }),
      );
    };
    for (let tenant = 0; tenant < 100; tenant += 1) {
      await write(`tenant-${tenant}`);
    }
    assert.equal(backoff.size, 100);
    clock.advance(120_000);
    await write('last');
    assert.equal(backoff.size, 1);
  });
});
