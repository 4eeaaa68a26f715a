// Lists, pages, selectors and watches.
import assert from 'node:assert/strict';
import type { Cluster } from '../../src/cluster/index.ts';
import type { PortCase } from './cases.ts';
import { eventually, refused, summary, watched } from './expectations.ts';
import { CONFIG_MAPS, configMap, PODS, pod } from './resource-types.ts';

async function make(cluster: Cluster, namespace: string, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const object = configMap(namespace, name);
    await cluster.create(CONFIG_MAPS, { ...object, metadata: { ...object.metadata, labels: { name, set: 'x' } } });
  }
}

export const LIST_CASES: readonly PortCase[] = [
  {
    name: 'a list is ordered by name, with its version, and kinds of its items',
    async run({ cluster, namespace }) {
      await make(cluster, namespace, ['b', 'c', 'a']);
      const { items, metadata } = await cluster.list(CONFIG_MAPS, { namespace });
      assert.deepEqual(
        items.map(({ apiVersion, kind, metadata: { name } }) => [apiVersion, kind, name]),
        ['a', 'b', 'c'].map((name) => ['v1', 'ConfigMap', name]),
      );
      assert.match(metadata.resourceVersion, /^[1-9]\d*$/);
      assert.equal(metadata.continue, undefined);
    },
  },
  {
    name: 'pages follow each other, all of one version',
    async run({ cluster, namespace }) {
      await make(cluster, namespace, ['a', 'b', 'c', 'd', 'e']);
      const first = await cluster.list(CONFIG_MAPS, { namespace, limit: 2 });
      assert.equal(first.items.length, 2);
      assert.equal(first.metadata.remainingItemCount, 3);
      await make(cluster, namespace, ['bb']);
      const names = first.items.map((item) => item.metadata.name);
      let page = first;
      while (page.metadata.continue !== undefined) {
        page = await cluster.list(CONFIG_MAPS, { namespace, limit: 2, continue: page.metadata.continue });
        assert.equal(page.metadata.resourceVersion, first.metadata.resourceVersion);
        names.push(...page.items.map((item) => item.metadata.name));
      }
      assert.deepEqual(names, ['a', 'b', 'c', 'd', 'e']);
    },
  },
  {
    name: 'an invalid continue token is rejected',
    async run({ cluster, namespace }) {
      await refused(
        cluster.list(CONFIG_MAPS, { namespace, limit: 2, continue: 'nonsense' }),
        400,
        'BadRequest',
        /continue key is not valid/,
      );
    },
  },
  {
    name: 'label selectors filter',
    async run({ cluster, namespace }) {
      await make(cluster, namespace, ['a', 'b', 'c']);
      const chosen = async (labelSelector: string): Promise<(string | undefined)[]> =>
        (await cluster.list(CONFIG_MAPS, { namespace, labelSelector })).items.map((item) => item.metadata.name);
      assert.deepEqual(await chosen('name=a'), ['a']);
      assert.deepEqual(await chosen('set=x,name!=a'), ['b', 'c']);
      assert.deepEqual(await chosen('name in (a, c)'), ['a', 'c']);
      assert.deepEqual(await chosen('name notin (a, c),set'), ['b']);
      assert.deepEqual(await chosen('!name,set'), []);
      assert.deepEqual(await chosen('other!=x,set'), ['a', 'b', 'c']);
    },
  },
  {
    name: 'a malformed label selector is rejected',
    async run({ cluster, namespace }) {
      await refused(
        cluster.list(CONFIG_MAPS, { namespace, labelSelector: 'a in' }),
        400,
        'BadRequest',
        "unable to parse requirement: found '' expected: '('",
      );
    },
  },
  {
    name: 'field selectors filter by name, and by the selectable fields of a kind',
    async run({ cluster, namespace }) {
      await make(cluster, namespace, ['a', 'b']);
      const { items } = await cluster.list(CONFIG_MAPS, { namespace, fieldSelector: 'metadata.name=b' });
      assert.deepEqual(
        items.map((item) => item.metadata.name),
        ['b'],
      );
      await cluster.create(PODS, pod(namespace, 'p'));
      const pending = await cluster.list(PODS, { namespace, fieldSelector: 'status.phase=Pending,spec.nodeName=' });
      assert.equal(pending.items.length, 1);
      const running = await cluster.list(PODS, { namespace, fieldSelector: 'status.phase!=Pending' });
      assert.equal(running.items.length, 0);
      await refused(
        cluster.list(CONFIG_MAPS, { namespace, fieldSelector: 'data.key=x' }),
        400,
        'BadRequest',
        /field label not supported: data\.key|"data\.key" is not a known field selector/,
      );
    },
  },
  {
    name: 'a list over all namespaces contains all objects',
    async run({ cluster, namespace }) {
      await make(cluster, namespace, ['a']);
      const { items } = await cluster.list(CONFIG_MAPS, { labelSelector: 'name=a' });
      assert.ok(items.some((item) => item.metadata.namespace === namespace));
    },
  },
  {
    name: 'a watch reports changes after a version',
    async run({ cluster, namespace }) {
      await make(cluster, namespace, ['before']);
      const { metadata } = await cluster.list(CONFIG_MAPS, { namespace });
      const first = await cluster.create(CONFIG_MAPS, configMap(namespace, 'a', { n: '1' }));
      await cluster.update(CONFIG_MAPS, { ...first, data: { n: '2' } });
      await cluster.delete(CONFIG_MAPS, { namespace, name: 'a' });
      const events = await watched(
        cluster,
        CONFIG_MAPS,
        { namespace, resourceVersion: metadata.resourceVersion },
        (seen) => seen.length === 3,
      );
      assert.deepEqual(summary(events), ['ADDED a', 'MODIFIED a', 'DELETED a']);
      assert.deepEqual(
        events.map(({ object }) => object.data?.['n']),
        ['1', '2', '2'],
      );
      const versions = events.map(({ object }) => Number(object.metadata.resourceVersion));
      assert.ok(versions.every((version, index) => index === 0 || version > (versions[index - 1] ?? 0)));
      assert.equal(events[0]?.object.kind, 'ConfigMap');
    },
  },
  {
    name: 'a watch without a version starts with existing objects',
    async run({ cluster, namespace }) {
      await make(cluster, namespace, ['a', 'b']);
      const events = await watched(cluster, CONFIG_MAPS, { namespace }, (seen) => seen.length === 2);
      assert.deepEqual(summary(events).toSorted(), ['ADDED a', 'ADDED b']);
    },
  },
  {
    name: 'a watch can start with existing objects, and mark their end',
    notOn: { kubernetes: 'etcd 3.4 does not report the progress of watches, which this needs' },
    async run({ cluster, namespace }) {
      await make(cluster, namespace, ['a', 'b']);
      const events = await watched(
        cluster,
        CONFIG_MAPS,
        { namespace, sendInitialEvents: true, allowBookmarks: true },
        (seen) => seen.some(({ type }) => type === 'BOOKMARK'),
      );
      assert.deepEqual(summary(events).toSorted(), ['ADDED a', 'ADDED b', 'BOOKMARK']);
      const bookmark = events.at(-1)?.object;
      assert.equal(bookmark?.metadata.annotations?.['k8s.io/initial-events-end'], 'true');
      assert.match(bookmark?.metadata.resourceVersion ?? '', /^[1-9]\d*$/);
    },
  },
  {
    name: 'objects enter and leave a watch with a selector as their labels change',
    async run({ cluster, namespace }) {
      await make(cluster, namespace, ['a', 'b']);
      const { metadata } = await cluster.list(CONFIG_MAPS, { namespace });
      const label = (name: string, value: string | null): Promise<unknown> =>
        cluster.patch(
          CONFIG_MAPS,
          { namespace, name },
          { type: 'merge', body: { metadata: { labels: { pick: value } } } },
        );
      await label('a', 'yes');
      await label('b', 'no');
      await label('a', null);
      await label('b', 'yes');
      const events = await watched(
        cluster,
        CONFIG_MAPS,
        { namespace, labelSelector: 'pick=yes', resourceVersion: metadata.resourceVersion },
        (seen) => seen.length === 3,
      );
      assert.deepEqual(summary(events), ['ADDED a', 'DELETED a', 'ADDED b']);
    },
  },
  {
    name: 'a watch of one object reports only that object',
    async run({ cluster, namespace }) {
      const { metadata } = await cluster.list(CONFIG_MAPS, { namespace });
      await make(cluster, namespace, ['a', 'b', 'c']);
      const events = await watched(
        cluster,
        CONFIG_MAPS,
        { namespace, fieldSelector: 'metadata.name=c', resourceVersion: metadata.resourceVersion },
        (seen) => seen.length === 1,
      );
      assert.deepEqual(summary(events), ['ADDED c']);
    },
  },
  {
    name: 'a watch ends after the requested time',
    async run({ cluster, namespace }) {
      const events: unknown[] = [];
      const { resourceVersion } = (await cluster.list(CONFIG_MAPS, { namespace })).metadata;
      for await (const event of cluster.watch(CONFIG_MAPS, { namespace, resourceVersion, timeoutSeconds: 1 })) {
        events.push(event);
      }
      assert.deepEqual(events, []);
    },
  },
  {
    name: 'an aborted watch ends at once',
    async run({ cluster, namespace }) {
      const end = new AbortController();
      const { metadata } = await cluster.list(CONFIG_MAPS, { namespace });
      const reading = (async (): Promise<void> => {
        for await (const event of cluster.watch(CONFIG_MAPS, {
          namespace,
          resourceVersion: metadata.resourceVersion,
          signal: end.signal,
        })) {
          assert.ok(event);
        }
      })().catch(() => undefined);
      await make(cluster, namespace, ['a']);
      end.abort();
      await reading;
    },
  },
  {
    name: 'several watchers see the same events',
    async run({ cluster, namespace }) {
      const { metadata } = await cluster.list(CONFIG_MAPS, { namespace });
      const options = { namespace, resourceVersion: metadata.resourceVersion };
      const watchers = [1, 2, 3].map(() => watched(cluster, CONFIG_MAPS, options, (seen) => seen.length === 4));
      await make(cluster, namespace, ['a', 'b', 'c', 'd']);
      const [one, ...others] = await Promise.all(watchers);
      for (const other of others) {
        assert.deepEqual(other, one);
      }
    },
  },
  {
    name: 'bookmarks advance without changes of the watched type',
    notOn: { kubernetes: 'API servers send them once a minute' },
    async run({ cluster, namespace, unique }) {
      const { metadata } = await cluster.list(CONFIG_MAPS, { namespace });
      const name = unique('quiet');
      const seen = watched(
        cluster,
        CONFIG_MAPS,
        {
          namespace,
          fieldSelector: `metadata.name=${name}`,
          resourceVersion: metadata.resourceVersion,
          allowBookmarks: true,
          // An API server sends one shortly before the end.
          timeoutSeconds: 3,
        },
        (events) => events.some(({ type }) => type === 'BOOKMARK'),
      );
      await make(cluster, namespace, ['a']);
      await eventually(async () => {
        const bookmark = (await seen).find(({ type }) => type === 'BOOKMARK');
        assert.ok(
          Number(bookmark?.object.metadata.resourceVersion) >= Number(metadata.resourceVersion),
          JSON.stringify(bookmark),
        );
      });
    },
  },
];
