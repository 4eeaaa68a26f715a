import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import type { WatchedChange } from '../watched-objects.ts';
import { kubernetesKind } from '../../resources/index.ts';
import type { KubernetesObject, ResourceType } from '../../resources/index.ts';
import { CountedCluster } from '../testing/counted-cluster.ts';
import { KindFeed } from './kind-feed.ts';

const CONFIG_MAPS = kubernetesKind('v1', 'ConfigMap') as ResourceType;
const CONFIG_MAP = { apiVersion: 'v1', kind: 'ConfigMap' };

describe('a watched kind in namespaces', () => {
  let cluster: CountedCluster;
  let kind: KindFeed;
  let changes: WatchedChange[];
  /** The values in the published objects, by name. */
  let pods: Map<string, unknown>;
  let failures: unknown[];
  beforeEach(async () => {
    cluster = await CountedCluster.open();
    [changes, failures, pods] = [[], [], new Map()];
    kind = new KindFeed({
      cluster: cluster.admin,
      type: CONFIG_MAPS,
      transform: (object) => object,
      textOf: ({ data }) => JSON.stringify({ data }),
      publish: (change) => {
        changes.push(change);
        pods = new Map(change.isAll ? [] : pods);
        for (const [{ name }, text] of change.objects) {
          pods.set(name, text === undefined ? undefined : (JSON.parse(text) as { data: { pods: string } }).data.pods);
        }
      },
      changed: () => undefined,
      failed: (error) => failures.push(error),
      log: pino({ level: 'silent' }),
    });
    await cluster.admin.create(CONFIG_MAPS, configMap('limits', '1'));
  });
  afterEach(async () => {
    kind.stop();
    await cluster[Symbol.asyncDispose]();
  });

  const configMap = (name: string, limit: string): KubernetesObject => ({
    ...CONFIG_MAP,
    metadata: { name, namespace: 'default' },
    data: { pods: limit },
  });
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) {
      await sleep(5);
    }
  };

  it('is published as a list, then change by change where the text of an object changes', async () => {
    kind.watch();
    await until(() => pods.get('limits') === '1');
    assert.deepEqual([changes.length, changes[0]?.isAll], [1, true]);
    await cluster.admin.patch(
      CONFIG_MAPS,
      { namespace: 'default', name: 'limits' },
      { type: 'merge', body: { metadata: { labels: { seen: 'no' } } } },
    );
    await cluster.admin.create(CONFIG_MAPS, configMap('other', '2'));
    await until(() => pods.get('other') === '2');
    assert.equal(changes.length, 2, 'a label is not part of the text');
    assert.deepEqual(changes[1]?.objects, [[{ namespace: 'default', name: 'other' }, '{"data":{"pods":"2"}}']]);
    kind.unwatch();
    assert.equal(pods.size, 0);
  });

  it('has its objects read one by one while it is not watched', async () => {
    assert.deepEqual(await kind.find({ namespace: 'default', name: 'limits' }), { state: 'published' });
    assert.equal(pods.get('limits'), '1');
    assert.deepEqual(await kind.find({ namespace: 'default', name: 'none' }), { state: 'absent' });
    assert.deepEqual(failures, []);
  });
});
