import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { WatchEvent } from '../../cluster/index.ts';
import type { KubernetesObject, ResourceType } from '../../resources/index.ts';
import { EmbeddedCluster } from './embedded-cluster.ts';
import { INITIAL_EVENTS_END } from './objects/object-watch.ts';

const CONFIG_MAPS: ResourceType = {
  group: '',
  version: 'v1',
  resource: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};
const SERVICES: ResourceType = { ...CONFIG_MAPS, resource: 'services', kind: 'Service' };
const PODS: ResourceType = { ...CONFIG_MAPS, resource: 'pods', kind: 'Pod' };
const EVENTS: ResourceType = { ...CONFIG_MAPS, resource: 'events', kind: 'Event' };
const NEW_EVENTS: ResourceType = { ...EVENTS, group: 'events.k8s.io' };

function configMap(name: string, data: Record<string, string> = {}): KubernetesObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'default', name }, data };
}

function service(name: string, spec: object): KubernetesObject {
  return { apiVersion: 'v1', kind: 'Service', metadata: { namespace: 'default', name }, spec };
}

const ofName = (name: string) => ({ namespace: 'default', name });

/** The next events of a watch, as `TYPE name`. */
async function next(events: AsyncIterator<WatchEvent>, count: number): Promise<string[]> {
  const texts: string[] = [];
  while (texts.length < count) {
    const { value, done } = await events.next();
    assert.ok(done !== true, `the watch ended after ${texts.join(', ')}`);
    texts.push(`${value.type} ${value.object.metadata.name ?? ''}`.trim());
  }
  return texts;
}

describe('a list in pages', () => {
  test('is a consistent snapshot, despite writes between its pages', async () => {
    await using cluster = await EmbeddedCluster.open();
    const { admin } = cluster;
    for (const name of ['a', 'b', 'c', 'd']) {
      await admin.create(CONFIG_MAPS, configMap(name, { was: 'first' }));
    }
    const first = await admin.list(CONFIG_MAPS, { namespace: 'default', limit: 2 });
    assert.equal(first.metadata.remainingItemCount, 2);
    await admin.delete(CONFIG_MAPS, ofName('c'));
    await admin.update(CONFIG_MAPS, configMap('d', { was: 'changed' }));
    await admin.create(CONFIG_MAPS, configMap('e'));
    const second = await admin.list(CONFIG_MAPS, {
      namespace: 'default',
      limit: 2,
      continue: first.metadata.continue ?? '',
    });
    assert.deepEqual(
      second.items.map(({ metadata, data }) => [metadata.name, (data as { was: string }).was]),
      [
        ['c', 'first'],
        ['d', 'first'],
      ],
    );
    assert.equal(second.metadata.resourceVersion, first.metadata.resourceVersion);
    assert.equal(second.metadata.continue, undefined);
  });

  test('whose continue token has expired is refused', async () => {
    await using cluster = await EmbeddedCluster.open({ historySize: 2 });
    const { admin } = cluster;
    await admin.create(CONFIG_MAPS, configMap('a'));
    await admin.create(CONFIG_MAPS, configMap('b'));
    const { metadata } = await admin.list(CONFIG_MAPS, { namespace: 'default', limit: 1 });
    for (let count = 0; count < 8; count++) {
      await admin.update(CONFIG_MAPS, configMap('a', { count: String(count) }));
    }
    const rest = admin.list(CONFIG_MAPS, { namespace: 'default', limit: 1, continue: metadata.continue ?? '' });
    await assert.rejects(rest, { code: 410, reason: 'Expired', message: /continue parameter is too old/ });
  });

  test('refuses an invalid continue token', async () => {
    await using cluster = await EmbeddedCluster.open();
    const token = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    for (const text of ['x', token({ v: 'meta.k8s.io/v1', rv: 0 }), 'bnVsbA']) {
      await assert.rejects(cluster.admin.list(CONFIG_MAPS, { continue: text }), { code: 400 });
    }
    const ahead = token({ v: 'meta.k8s.io/v1', rv: cluster.revision + 1, start: 'default/a' });
    await assert.rejects(cluster.admin.list(CONFIG_MAPS, { continue: ahead }), { code: 504 });
  });
});

describe('a watch', () => {
  test('ends with Expired, at once or when it falls behind', async () => {
    await using cluster = await EmbeddedCluster.open({ historySize: 2 });
    const { admin } = cluster;
    const resourceVersion = String(cluster.revision);
    const slow = admin.watch(CONFIG_MAPS, { resourceVersion })[Symbol.asyncIterator]();
    await admin.create(CONFIG_MAPS, configMap('a'));
    assert.deepEqual(await next(slow, 1), ['ADDED a']);
    for (let count = 0; count < 8; count++) {
      await admin.update(CONFIG_MAPS, configMap('a', { count: String(count) }));
    }
    const expired = { code: 410, reason: 'Expired', message: /^too old resource version: / };
    await assert.rejects(slow.next(), expired);
    await assert.rejects(admin.watch(CONFIG_MAPS, { resourceVersion })[Symbol.asyncIterator]().next(), expired);
  });

  test('sends bookmarks while nothing changes, if requested', async () => {
    await using cluster = await EmbeddedCluster.open({ bookmarkIntervalMs: 1 });
    const watch = cluster.admin.watch(CONFIG_MAPS, { allowBookmarks: true, resourceVersion: String(cluster.revision) });
    const events = watch[Symbol.asyncIterator]();
    await cluster.admin.create(SERVICES, service('elsewhere', { ports: [{ port: 80 }] }));
    const { value } = await events.next();
    assert.equal(value?.type, 'BOOKMARK');
    assert.equal(value?.object.metadata.resourceVersion, String(cluster.revision));
  });

  test('marks the end of initial events', async () => {
    await using cluster = await EmbeddedCluster.open();
    await cluster.admin.create(CONFIG_MAPS, configMap('a'));
    const events = cluster.admin.watch(CONFIG_MAPS, { sendInitialEvents: true })[Symbol.asyncIterator]();
    assert.deepEqual(await next(events, 1), ['ADDED a']);
    const { value } = await events.next();
    assert.deepEqual(value?.object.metadata.annotations, { [INITIAL_EVENTS_END]: 'true' });
    await cluster.admin.create(CONFIG_MAPS, configMap('b'));
    assert.deepEqual(await next(events, 1), ['ADDED b']);
  });

  test('ends with its time, with the cluster, and with its signal', async () => {
    const cluster = await EmbeddedCluster.open();
    const resourceVersion = String(cluster.revision);
    const timed = cluster.admin.watch(CONFIG_MAPS, { resourceVersion, timeoutSeconds: 0.001 });
    assert.equal((await timed[Symbol.asyncIterator]().next()).done, true);
    const controller = new AbortController();
    const abortable = cluster.admin.watch(CONFIG_MAPS, { resourceVersion, signal: controller.signal });
    const aborted = abortable[Symbol.asyncIterator]().next();
    const refused = assert.rejects(aborted, { name: 'AbortError' });
    const open = cluster.admin.watch(CONFIG_MAPS, { resourceVersion })[Symbol.asyncIterator]().next();
    await Promise.resolve();
    controller.abort();
    await refused;
    await cluster.close();
    assert.equal((await open).done, true);
    await assert.rejects(cluster.admin.list(CONFIG_MAPS), { code: 'unreachable' });
  });
});

describe('services', () => {
  test('get addresses and node ports that no other has, and keep them', async () => {
    await using cluster = await EmbeddedCluster.open();
    const { admin } = cluster;
    const made = await admin.create(SERVICES, service('a', { type: 'NodePort', ports: [{ port: 80 }] }));
    const { clusterIP, ports } = made['spec'] as { clusterIP: string; ports: { nodePort: number }[] };
    assert.match(clusterIP, /^10\.96\./u);
    const port = ports[0]?.nodePort ?? 0;
    assert.ok(port >= 30_000 && port <= 32_767);
    const again = await admin.update(SERVICES, service('a', { type: 'NodePort', ports: [{ port: 80 }] }));
    assert.deepEqual(again['spec'], made['spec']);
    await assert.rejects(admin.create(SERVICES, service('b', { clusterIP, ports: [{ port: 80 }] })), {
      code: 422,
      message: /provided IP is already allocated/,
    });
    const headless = await admin.create(SERVICES, service('c', { clusterIP: 'None', ports: [{ port: 80 }] }));
    assert.equal((headless['spec'] as { clusterIP: string }).clusterIP, 'None');
    const external = service('d', { type: 'ExternalName', externalName: 'example.com' });
    assert.equal(((await admin.create(SERVICES, external))['spec'] as { clusterIP?: string }).clusterIP, undefined);
  });
});

test('node ports are in their range, one for both protocols of a port, and go with the type', async () => {
  await using cluster = await EmbeddedCluster.open();
  const { admin } = cluster;
  const refused = (message: RegExp) => ({ code: 422, message });
  const at = (port: object): KubernetesObject => service('x', { type: 'NodePort', ports: [port] });
  await assert.rejects(
    admin.create(SERVICES, at({ port: 80, nodePort: 80 })),
    refused(
      /spec\.ports\[0\]\.nodePort: Invalid value: 80: provided port is not in the valid range\. The range of valid ports is 30000-32767$/,
    ),
  );
  const far = service('x', { clusterIP: '1.2.3.4', ports: [{ port: 80 }] });
  await assert.rejects(admin.create(SERVICES, far), refused(/the provided network does not match the current range$/));
  const both = [
    { name: 'a', port: 53, protocol: 'UDP' },
    { name: 'b', port: 53, protocol: 'TCP' },
  ];
  const made = await admin.create(SERVICES, service('dns', { type: 'NodePort', ports: both }));
  const { ports } = made['spec'] as { ports: { nodePort: number }[] };
  assert.equal(ports[0]?.nodePort, ports[1]?.nodePort);
  const taken = at({ port: 80, nodePort: ports[0]?.nodePort ?? 0 });
  await assert.rejects(admin.create(SERVICES, taken), refused(/provided port is already allocated$/));
  const changed = await admin.update(SERVICES, service('dns', { type: 'ClusterIP', ports }));
  assert.deepEqual(
    (changed['spec'] as { ports: object[] }).ports.map((port) => 'nodePort' in port),
    [false, false],
  );
  await admin.create(SERVICES, taken);
});

test('events are the same in both of their groups', async () => {
  await using cluster = await EmbeddedCluster.open();
  const { admin } = cluster;
  await admin.create(EVENTS, {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { namespace: 'default', name: 'e' },
    involvedObject: { kind: 'Pod', namespace: 'default', name: 'p' },
    message: 'hello',
  });
  const seen = await admin.get(NEW_EVENTS, ofName('e'));
  assert.equal(seen.apiVersion, 'events.k8s.io/v1');
  assert.equal(seen['note'], 'hello');
  const patch = { type: 'merge', body: { note: 'changed' } } as const;
  await admin.patch(NEW_EVENTS, ofName('e'), patch);
  assert.equal((await admin.get(EVENTS, ofName('e')))['message'], 'changed');
  const { items } = await admin.list(NEW_EVENTS, { fieldSelector: 'involvedObject.name=p' });
  assert.equal(items.length, 1);
});

test('an evicted pod is deleted', async () => {
  await using cluster = await EmbeddedCluster.open();
  const { admin } = cluster;
  await admin.create(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'default', name: 'p' },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  });
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: ofName('p') };
  const rehearse = (dryRun: unknown): Promise<unknown> =>
    admin.create(PODS, { ...eviction, deleteOptions: { dryRun } }, { subresource: 'eviction' });
  await rehearse(['All']);
  await assert.rejects(rehearse('All'), { code: 400 });
  await admin.get(PODS, ofName('p'));
  await admin.create(PODS, eviction, { subresource: 'eviction' });
  await assert.rejects(admin.get(PODS, ofName('p')), { code: 404 });
});

test('a change that conflicts with another one is retried, and neither is lost', async () => {
  await using cluster = await EmbeddedCluster.open();
  const { admin } = cluster;
  await admin.create(CONFIG_MAPS, configMap('a'));
  const keys = ['a', 'b', 'c', 'd'];
  await Promise.all(
    keys.map((key) => admin.patch(CONFIG_MAPS, ofName('a'), { type: 'merge', body: { data: { [key]: '1' } } })),
  );
  assert.deepEqual(Object.keys((await admin.get(CONFIG_MAPS, ofName('a')))['data'] as object).sort(), keys);
});

test('an object that nests without end is refused', async () => {
  await using cluster = await EmbeddedCluster.open();
  let deep: unknown = 'bottom';
  for (let depth = 0; depth < 100_000; depth++) {
    deep = { deep };
  }
  await assert.rejects(cluster.admin.create(CONFIG_MAPS, { ...configMap('a'), deep }), {
    code: 400,
    message: /nested deeper/,
  });
});

test('an object of more than 1.5 MiB is refused, with etcd’s message', async () => {
  await using cluster = await EmbeddedCluster.open();
  const pod = (size: number): KubernetesObject => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'default', name: 'p' },
    spec: { containers: [{ name: 'c', image: 'i', args: ['x'.repeat(size)] }] },
  });
  await assert.rejects(cluster.admin.create(PODS, pod(1_600_000)), {
    code: 500,
    message: 'etcdserver: request is too large',
  });
  await assert.rejects(cluster.admin.create(PODS, pod(3_200_000)), { code: 413 });
  await cluster.admin.create(PODS, pod(1_500_000));
});

test('on a full disk, growing writes fail without events, and objects can be read and deleted', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-embedded-'));
  try {
    await using cluster = await EmbeddedCluster.open({ file: join(folder, 'cluster.db'), maxPages: 200 });
    const { admin } = cluster;
    const events = admin.watch(CONFIG_MAPS, { resourceVersion: String(cluster.revision) })[Symbol.asyncIterator]();
    let count = 0;
    const fill = async (): Promise<void> => {
      for (; count < 100; count++) {
        await admin.create(CONFIG_MAPS, configMap(`object-${count}`, { text: 'x'.repeat(20_000) }));
      }
    };
    await assert.rejects(fill(), { code: 500, reason: 'InternalError', message: /the disk is full/ });
    const names = Array.from({ length: count }, (_, index) => `object-${index}`);
    const { items } = await admin.list(CONFIG_MAPS);
    assert.equal(items.length, count);
    for (const name of names) {
      await admin.delete(CONFIG_MAPS, ofName(name));
    }
    assert.deepEqual(await next(events, count * 2), [
      ...names.map((name) => `ADDED ${name}`),
      ...names.map((name) => `DELETED ${name}`),
    ]);
    await admin.create(CONFIG_MAPS, configMap('later', { text: 'x'.repeat(20_000) }));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a file keeps the identity of its cluster, its tokens and its versions', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-embedded-'));
  const file = join(folder, 'cluster.db');
  const accounts: ResourceType = { ...CONFIG_MAPS, resource: 'serviceaccounts', kind: 'ServiceAccount' };
  try {
    const first = await EmbeddedCluster.open({ file });
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: ofName('robot') };
    await first.admin.create(accounts, account);
    const request = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: ofName('robot'),
      spec: {},
    };
    const { status } = await first.admin.create(accounts, request, { subresource: 'token' });
    const { uid, revision } = first;
    await first.close();
    await using second = await EmbeddedCluster.open({ file });
    assert.equal(second.uid, uid);
    assert.equal(second.revision, revision);
    const { token } = status as { token: string };
    const user = second.authenticator.authenticate({ authorization: `Bearer ${token}` });
    assert.equal(user.username, 'system:serviceaccount:default:robot');
    const past = second.admin.watch(CONFIG_MAPS, { resourceVersion: String(revision - 1) })[Symbol.asyncIterator]();
    await assert.rejects(past.next(), { code: 410 }, 'what changed before the restart is not told again');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
