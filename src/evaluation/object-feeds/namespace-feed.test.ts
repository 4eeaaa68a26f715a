import assert from 'node:assert/strict';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { pino } from 'pino';
import { ApiError, ClusterError } from '../../cluster/index.ts';
import { kubernetesKind, MAX_PARAMETERS_LENGTH, NAMESPACE_NAME_LABEL } from '../../resources/index.ts';
import type { MatchSelector, PolicyMatch, ResourceType } from '../../resources/index.ts';
import type { WatchedChange } from '../watched-objects.ts';
import { NamespaceFeed } from './namespace-feed.ts';
import { NamespaceRecord } from './namespace-record.ts';
import { type ObjectNeeds, objectNeeds } from './object-needs.ts';
import { CountedCluster } from '../testing/counted-cluster.ts';

const NAMESPACES = kubernetesKind('v1', 'Namespace') as ResourceType;

const selecting = (selector: MatchSelector): ObjectNeeds => objectNeeds([], [match(selector)]);

function match(namespaceSelector: MatchSelector): PolicyMatch {
  return {
    bucket: 'b',
    isMutating: false,
    failurePolicy: 'Fail',
    matchPolicy: 'Exact',
    rules: [],
    namespaceSelector,
    objectSelector: {},
    matchConditions: [],
    timeoutSeconds: 10,
  };
}

const byLabel = selecting({ matchLabels: { env: 'prod' } });
const byName = selecting({
  matchExpressions: [{ key: NAMESPACE_NAME_LABEL, operator: 'NotIn', values: ['portcullis'] }],
});

/** The fields of a namespace in its published text. */
function viewIn(text: string): { metadata: { labels: Readonly<Record<string, string>>; annotations?: object } } {
  return JSON.parse(text) as ReturnType<typeof viewIn>;
}

describe('the namespaces that policies need', () => {
  let cluster: CountedCluster;
  let feed: NamespaceFeed;
  let known: Map<string, Readonly<Record<string, string>>>;
  let published: WatchedChange[];
  let folder: Awaited<ReturnType<typeof mkdtempDisposable>>;
  beforeEach(async () => {
    cluster = await CountedCluster.open();
    folder = await mkdtempDisposable(join(tmpdir(), 'portcullis-namespaces-'));
    feed = open();
    await create('shop', { env: 'prod' });
  });
  afterEach(async () => {
    await feed.stop();
    await folder.remove();
    await cluster[Symbol.asyncDispose]();
  });

  /** A feed with recorded labels; nothing has been published. */
  function open(): NamespaceFeed {
    known = new Map();
    published = [];
    return new NamespaceFeed({
      cluster: cluster.cluster,
      publish: (change) => {
        published.push(change);
        known = new Map(change.isAll ? [] : known);
        for (const [{ name }, text] of change.objects) {
          if (text === undefined) {
            known.delete(name);
          } else {
            known.set(name, viewIn(text).metadata.labels);
          }
        }
      },
      record: new NamespaceRecord(folder.path, ({ message }) => assert.fail(message)),
      log: pino({ level: 'silent' }),
    });
  }

  /** Stops the feed when it has read the cluster, and opens another. */
  async function restart(): Promise<void> {
    await feed.stop();
    feed = open();
  }

  async function create(name: string, labels: Record<string, string>): Promise<void> {
    await cluster.admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
  }

  async function until(holds: () => boolean): Promise<void> {
    while (!holds()) {
      await sleep(5);
    }
  }

  it('are watched only while a policy selects them by labels', async () => {
    feed.want(new Map([['a', byName]]), true);
    assert.equal(feed.isWatched, false);
    feed.want(new Map([['b', byLabel]]), false);
    await until(() => known.get('shop')?.env === 'prod');
    assert.equal(published[0]?.isAll, true);
    feed.want(new Map([['b', undefined]]), false);
    assert.equal(feed.isWatched, false);
    assert.equal(known.size, 0);
  });

  it('are published only when they or their labels change', async () => {
    feed.want(new Map([['b', byLabel]]), true);
    await until(() => known.has('shop'));
    const changes = published.length;
    await cluster.admin.patch(
      NAMESPACES,
      { name: 'shop' },
      { type: 'merge', body: { metadata: { annotations: { a: 'b' } } } },
    );
    await cluster.admin.patch(
      NAMESPACES,
      { name: 'shop' },
      { type: 'merge', body: { metadata: { labels: { env: 'test' } } } },
    );
    await until(() => known.get('shop')?.env === 'test');
    assert.equal(published.length, changes + 1);
    await create('office', {});
    await until(() => known.has('office'));
    await cluster.admin.delete(NAMESPACES, { name: 'office' });
    await until(() => !known.has('office'));
  });

  it('are found one by one, or an error with the reason', async () => {
    const [first, second] = await Promise.all([feed.find('shop'), feed.find('shop')]);
    assert.deepEqual([first, second], [{ state: 'published' }, { state: 'published' }]);
    assert.equal(cluster.requests.filter((request) => request === 'get namespaces').length, 1, 'read once');
    assert.equal(known.get('shop')?.env, 'prod');
    assert.deepEqual(await feed.find('nowhere'), { state: 'absent' });
    cluster.isDown = true;
    assert.match(JSON.stringify(await feed.find('shop')), /unreadable.*the API server is down/);
  });

  describe('after a restart', () => {
    beforeEach(async () => {
      feed.want(new Map([['b', byLabel]]), true);
      await until(() => known.has('shop'));
      await restart();
    });

    it('are the recorded ones while the cluster is unavailable, and then those of the cluster', async () => {
      cluster.isDown = true;
      assert.deepEqual(published, [], 'the cluster is read first');
      assert.deepEqual(await feed.find('shop'), { state: 'published' });
      assert.deepEqual(known.get('shop'), { env: 'prod', [NAMESPACE_NAME_LABEL]: 'shop' });
      assert.match(JSON.stringify(await feed.find('nowhere')), /the API server is down/, 'it is in neither');
      await cluster.admin.delete(NAMESPACES, { name: 'shop' });
      await create('office', {});
      cluster.isDown = false;
      feed.want(new Map([['b', byLabel]]), true);
      await until(() => known.has('office') && !known.has('shop'));
      feed.failed(new ClusterError('unreachable', 'down'));
      assert.equal(known.has('shop'), false, 'what was before is forgotten');
      await restart();
      feed.failed(new ClusterError('unreachable', 'down'));
      assert.deepEqual([known.has('office'), known.has('shop')], [true, false]);
    });

    it('are the recorded ones when the watch fails, but not when the cluster refuses it', async () => {
      feed.failed(new ApiError(403, 'Forbidden', 'namespaces is forbidden'));
      assert.deepEqual(published, []);
      feed.failed(new ClusterError('unreachable', 'down'));
      feed.failed(new ClusterError('unreachable', 'still down'));
      assert.equal(published.length, 1);
      assert.equal(known.get('shop')?.env, 'prod');
    });

    it('are those that were read meanwhile rather than recorded ones', async () => {
      const env = 'test';
      await cluster.admin.patch(
        NAMESPACES,
        { name: 'shop' },
        { type: 'merge', body: { metadata: { labels: { env } } } },
      );
      await feed.find('shop');
      feed.failed(new ClusterError('unreachable', 'down'));
      assert.equal(known.get('shop')?.env, 'test');
    });

    it('are not published when no policy needs them', async () => {
      feed.want(new Map([['b', byName]]), true);
      await restart();
      feed.failed(new ClusterError('unreachable', 'down'));
      assert.deepEqual(published, []);
    });
  });

  it('have the annotations that are parameters, and null for those that they lack', async () => {
    const needing = (...annotations: readonly string[]): ObjectNeeds =>
      objectNeeds([{ parameters: { from: { namespace: { annotations } }, settingsExpression: '{}' } }]);
    const shop = (): string =>
      published.at(-1)?.objects.find(([{ name }]) => name === 'shop')?.[1] ?? '{"metadata":{}}';
    const metadata = { name: 'shop' };
    const body = { metadata: { annotations: { uid: '7', long: 'x'.repeat(MAX_PARAMETERS_LENGTH + 1), other: 'x' } } };
    await cluster.admin.patch(NAMESPACES, metadata, { type: 'merge', body });
    feed.want(new Map([['p', needing('uid')]]), true);
    const until = async (annotations: object): Promise<void> => {
      while (!isDeepStrictEqual(viewIn(shop()).metadata.annotations, annotations)) {
        await sleep(5);
      }
    };
    await until({ uid: '7' });
    feed.want(new Map([['q', needing('long', 'missing')]]), false);
    await until({ long: MAX_PARAMETERS_LENGTH + 1, missing: null, uid: '7' });
  });
});
