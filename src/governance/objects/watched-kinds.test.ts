import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import { ApiError, type Cluster } from '../../cluster/index.ts';
import { keyText, type KubernetesObject, type ResourceType } from '../../resources/index.ts';
import { until } from '../testing/until.ts';
import { type ObjectReader, WatchedKinds } from './watched-kinds.ts';

const CONFIG_MAPS: ResourceType = {
  group: '',
  version: 'v1',
  resource: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};
const SECRETS: ResourceType = { ...CONFIG_MAPS, resource: 'secrets', kind: 'Secret' };
const { signal } = new AbortController();

const configMap = (name: string): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace: 'default', name },
});

/** A cluster whose reads are counted, and can be refused. */
class Scene implements AsyncDisposable {
  readonly admin: Cluster;
  readonly kinds: WatchedKinds;
  readonly enqueued: string[] = [];
  readonly reader: ObjectReader;
  requests = 0;
  refusal: ApiError | undefined;
  readonly #cluster: EmbeddedCluster;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  private constructor(cluster: EmbeddedCluster) {
    this.#cluster = cluster;
    this.admin = cluster.admin;
    const counted: Pick<Cluster, 'list' | 'watch'> = {
      list: (type, options) => {
        this.requests += 1;
        return this.refusal === undefined ? cluster.admin.list(type, options) : Promise.reject(this.refusal);
      },
      watch: (type, options) => {
        this.requests += 1;
        return cluster.admin.watch(type, options);
      },
    };
    this.kinds = new WatchedKinds({ cluster: counted, log: pino({ level: 'silent' }) });
    this.#running = this.kinds.start(this.#stop.signal);
    this.reader = this.kinds.reader((key) => this.enqueued.push(keyText(key)));
  }

  static async open(): Promise<Scene> {
    return new Scene(await EmbeddedCluster.open());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.#cluster.close();
  }
}

describe('WatchedKinds', () => {
  it('lists and watches a kind once, for all who read it', async () => {
    await using scene = await Scene.open();
    await scene.admin.create(CONFIG_MAPS, configMap('a'));
    const objects = await scene.reader.open(CONFIG_MAPS, signal);
    for (let index = 0; index < 100; index += 1) {
      scene.reader.use({ namespace: 'p', name: `policy-${index}` }, [{ type: CONFIG_MAPS, namespace: 'default' }]);
      assert.equal(await scene.reader.open({ ...CONFIG_MAPS }, signal), objects);
    }
    assert.ok(objects.get({ namespace: 'default', name: 'a' }));
    assert.deepEqual([scene.requests <= 2, scene.kinds.size], [true, 1]);
  });

  it('enqueues those who read the changed object, and no others', async () => {
    await using scene = await Scene.open();
    await scene.reader.open(CONFIG_MAPS, signal);
    const use = (name: string, selection: { namespace?: string; name?: string }): void =>
      scene.reader.use({ name }, [{ type: CONFIG_MAPS, ...selection }]);
    use('object', { namespace: 'default', name: 'a' });
    use('namespace', { namespace: 'default' });
    use('kind', {});
    use('other-object', { namespace: 'default', name: 'b' });
    use('other-namespace', { namespace: 'kube-system' });
    await scene.admin.create(CONFIG_MAPS, configMap('a'));
    await until(() => scene.enqueued.length >= 3);
    assert.deepEqual(scene.enqueued.toSorted(), ['kind', 'namespace', 'object']);
    scene.enqueued.length = 0;
    scene.reader.use({ name: 'kind' }, []);
    scene.reader.use({ name: 'object' }, [{ type: CONFIG_MAPS, namespace: 'default', name: 'b' }]);
    await scene.admin.delete(CONFIG_MAPS, { namespace: 'default', name: 'a' });
    await until(() => scene.enqueued.length >= 1);
    assert.deepEqual(scene.enqueued, ['namespace']);
  });

  it('says why a kind cannot be read, and enqueues its readers when it can', async () => {
    await using scene = await Scene.open();
    scene.refusal = new ApiError(403, 'Forbidden', 'secrets is forbidden');
    scene.reader.use({ name: 'p' }, [{ type: SECRETS }]);
    await assert.rejects(scene.reader.open(SECRETS, signal), /secrets is forbidden/);
    await until(() => scene.enqueued.length > 0);
    scene.enqueued.length = 0;
    scene.refusal = undefined;
    await until(() => scene.enqueued.includes('p'));
    assert.deepEqual((await scene.reader.open(SECRETS, signal)).list(), []);
  });
});
