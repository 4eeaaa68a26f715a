import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Condition, KubernetesObject, ObjectKey, OwnerReference, ResourceType } from '../../../resources/index.ts';
import { EmbeddedCluster } from '../embedded-cluster.ts';
import type { EmbeddedClusterOptions } from '../embedded-cluster.ts';
import { EVENT_TTL_MS } from './event-expiry.ts';

const CONFIG_MAPS = type('', 'v1', 'configmaps', 'ConfigMap', true);
const NAMESPACES = type('', 'v1', 'namespaces', 'Namespace', false);
const CLUSTER_ROLES = type('rbac.authorization.k8s.io', 'v1', 'clusterroles', 'ClusterRole', false);
const EVENTS = type('', 'v1', 'events', 'Event', true);
const DEFINITIONS = type('apiextensions.k8s.io', 'v1', 'customresourcedefinitions', 'CustomResourceDefinition', false);
const WIDGETS = type('example.com', 'v1', 'widgets', 'Widget', true);

function type(group: string, version: string, resource: string, kind: string, namespaced: boolean): ResourceType {
  return { group, version, resource, kind, namespaced };
}

/** Fails the test when a controller reports an error. */
async function open(options: EmbeddedClusterOptions = {}): Promise<EmbeddedCluster> {
  return EmbeddedCluster.open({ ...options, onControllerError: (error) => assert.fail(String(error)) });
}

function owner(object: KubernetesObject, blockOwnerDeletion = false): OwnerReference {
  const { apiVersion, kind, metadata } = object;
  return { apiVersion, kind, name: metadata.name ?? '', uid: metadata.uid ?? '', blockOwnerDeletion };
}

async function make(
  cluster: EmbeddedCluster,
  name: string,
  metadata: { ownerReferences?: readonly OwnerReference[]; finalizers?: readonly string[]; namespace?: string } = {},
): Promise<KubernetesObject> {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'default', name, ...metadata } };
  return cluster.admin.create(CONFIG_MAPS, object);
}

const key = (name: string): ObjectKey => ({ namespace: 'default', name });

function find(cluster: EmbeddedCluster, name: string): KubernetesObject | undefined {
  return cluster.state.get(CONFIG_MAPS, 'default', name);
}

/** Removes the finalizers of an object. */
async function release(cluster: EmbeddedCluster, name: string): Promise<void> {
  await cluster.admin.patch(CONFIG_MAPS, key(name), { type: 'merge', body: { metadata: { finalizers: null } } });
  await cluster.idle();
}

describe('what belongs to an object', () => {
  test('goes after it, down to the last', async () => {
    await using cluster = await open();
    const parent = await make(cluster, 'parent');
    const child = await make(cluster, 'child', { ownerReferences: [owner(parent)] });
    await make(cluster, 'grandchild', { ownerReferences: [owner(child)] });
    await cluster.idle();
    assert.ok(find(cluster, 'grandchild'));
    assert.equal(await cluster.admin.delete(CONFIG_MAPS, key('parent')), undefined);
    await cluster.idle();
    assert.equal(find(cluster, 'child'), undefined);
    assert.equal(find(cluster, 'grandchild'), undefined);
  });

  test('stays with another owner, without the reference to the deleted one', async () => {
    await using cluster = await open();
    const [a, b] = [await make(cluster, 'a'), await make(cluster, 'b')];
    await make(cluster, 'child', { ownerReferences: [owner(a), owner(b)] });
    await cluster.admin.delete(CONFIG_MAPS, key('a'));
    await cluster.idle();
    assert.deepEqual(
      find(cluster, 'child')?.metadata.ownerReferences?.map(({ name }) => name),
      ['b'],
    );
    await cluster.admin.delete(CONFIG_MAPS, key('b'));
    await cluster.idle();
    assert.equal(find(cluster, 'child'), undefined);
  });

  test('goes before it when the deletion is in the foreground', async () => {
    await using cluster = await open();
    const parent = await make(cluster, 'parent');
    await make(cluster, 'child', { ownerReferences: [owner(parent, true)], finalizers: ['example.com/hold'] });
    const marked = await cluster.admin.delete(CONFIG_MAPS, key('parent'), { propagationPolicy: 'Foreground' });
    assert.deepEqual(marked?.metadata.finalizers, ['foregroundDeletion']);
    await cluster.idle();
    assert.ok(find(cluster, 'parent'), 'it waits for the child');
    assert.ok(find(cluster, 'child')?.metadata.deletionTimestamp);
    await release(cluster, 'child');
    assert.equal(find(cluster, 'child'), undefined);
    assert.equal(find(cluster, 'parent'), undefined);
  });

  test('goes with its owner where each of them owns the other, in the foreground as well', async () => {
    await using cluster = await open();
    for (const propagationPolicy of ['Background', 'Foreground'] as const) {
      const a = await make(cluster, 'a');
      const b = await make(cluster, 'b', { ownerReferences: [owner(a, true)] });
      const body = { metadata: { ownerReferences: [{ ...owner(b, true) }] } };
      await cluster.admin.patch(CONFIG_MAPS, key('a'), { type: 'merge', body });
      await cluster.idle();
      await cluster.admin.delete(CONFIG_MAPS, key('a'), { propagationPolicy });
      await cluster.idle();
      assert.equal(find(cluster, 'a'), undefined);
      assert.equal(find(cluster, 'b'), undefined);
    }
  });

  test('goes in many pieces, and others have their turn meanwhile', async () => {
    await using cluster = await open();
    const parent = await make(cluster, 'parent');
    const children = Array.from({ length: 3_000 }, (_, index) => `child-${index}`);
    for (const name of children) {
      await make(cluster, name, { ownerReferences: [owner(parent)] });
    }
    await cluster.idle();
    await cluster.admin.delete(CONFIG_MAPS, key('parent'));
    const left: number[] = [];
    const look = (): void => {
      left.push(children.filter((name) => find(cluster, name) !== undefined).length);
      if (left.at(-1) !== 0) {
        setImmediate(look);
      }
    };
    look();
    await cluster.idle();
    assert.ok(
      left.some((count) => count > 0 && count < children.length),
      'somebody else has seen some of them gone',
    );
  });

  test('is set free when it shall be orphaned', async () => {
    await using cluster = await open();
    const parent = await make(cluster, 'parent');
    await make(cluster, 'child', { ownerReferences: [owner(parent)] });
    await cluster.admin.delete(CONFIG_MAPS, key('parent'), { propagationPolicy: 'Orphan' });
    await cluster.idle();
    assert.equal(find(cluster, 'parent'), undefined);
    assert.equal(find(cluster, 'child')?.metadata.ownerReferences, undefined);
  });

  test('goes when its owner never was, is another of that name, or is in another namespace', async () => {
    await using cluster = await open();
    const parent = await make(cluster, 'parent');
    const elsewhere = await make(cluster, 'elsewhere', { namespace: 'kube-public' });
    await make(cluster, 'absent', { ownerReferences: [{ ...owner(parent), name: 'nobody' }] });
    await make(cluster, 'namesake', { ownerReferences: [{ ...owner(parent), uid: 'another' }] });
    await make(cluster, 'foreign', { ownerReferences: [owner(elsewhere)] });
    await make(cluster, 'own', { ownerReferences: [owner(parent)] });
    await cluster.idle();
    assert.deepEqual(
      ['absent', 'namesake', 'foreign', 'own'].filter((name) => find(cluster, name) !== undefined),
      ['own'],
    );
  });

  test('stays when the owner cannot be checked: its kind is unknown, or it is namespaced and the object is cluster-scoped', async () => {
    await using cluster = await open();
    const parent = await make(cluster, 'parent');
    const unknown = { apiVersion: 'example.com/v1', kind: 'Unknown', name: 'x', uid: 'x' };
    await make(cluster, 'child', { ownerReferences: [unknown] });
    await cluster.admin.create(CLUSTER_ROLES, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'wide', ownerReferences: [owner(parent)] },
      rules: [],
    });
    await cluster.admin.delete(CONFIG_MAPS, key('parent'));
    await cluster.idle();
    assert.ok(find(cluster, 'child'));
    assert.ok(cluster.state.get(CLUSTER_ROLES, undefined, 'wide'));
  });
});

describe('a namespace', () => {
  test('is deleted with its content, and reports what it waits for', async () => {
    await using cluster = await open();
    await cluster.admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    await make(cluster, 'free', { namespace: 'shop' });
    await make(cluster, 'held', { namespace: 'shop', finalizers: ['example.com/hold'] });
    await cluster.admin.delete(NAMESPACES, { name: 'shop' });
    await cluster.idle();
    const namespace = cluster.state.get(NAMESPACES, undefined, 'shop');
    assert.ok(namespace);
    const { phase, conditions } = namespace['status'] as { phase: string; conditions: readonly Condition[] };
    assert.equal(phase, 'Terminating');
    assert.deepEqual(
      conditions.filter(({ status }) => status === 'True').map(({ type, message }) => [type, message]),
      [
        ['NamespaceContentRemaining', 'Some resources are remaining: configmaps. has 1 resource instances'],
        [
          'NamespaceFinalizersRemaining',
          'Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances',
        ],
      ],
    );
    assert.equal(cluster.state.get(CONFIG_MAPS, 'shop', 'free'), undefined);
    await cluster.admin.patch(
      CONFIG_MAPS,
      { namespace: 'shop', name: 'held' },
      { type: 'merge', body: { metadata: { finalizers: null } } },
    );
    await cluster.idle();
    assert.equal(cluster.state.get(NAMESPACES, undefined, 'shop'), undefined);
  });

  test('that every cluster has cannot be deleted', async () => {
    await using cluster = await open();
    await assert.rejects(cluster.admin.delete(NAMESPACES, { name: 'default' }), {
      code: 403,
      message: 'namespaces "default" is forbidden: this namespace may not be deleted',
    });
  });

  test('goes on being emptied after a restart', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-restart-'));
    const file = join(folder, 'cluster.db');
    try {
      const first = await open({ file });
      await first.admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
      await make(first, 'left', { namespace: 'shop' });
      await first.admin.delete(NAMESPACES, { name: 'shop' });
      // Closed before the controllers have deleted anything.
      await first.close();
      await using second = await open({ file });
      await second.idle();
      assert.equal(second.state.get(NAMESPACES, undefined, 'shop'), undefined);
      assert.equal(second.state.get(CONFIG_MAPS, 'shop', 'left'), undefined);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('a kind', () => {
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'widgets', kind: 'Widget' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  };
  const widget = (name: string, finalizers: readonly string[] = []): KubernetesObject => ({
    apiVersion: 'example.com/v1',
    kind: 'Widget',
    metadata: { namespace: 'default', name, finalizers },
  });

  test('that is removed takes its objects with it, and ends its watches', async () => {
    await using cluster = await open();
    const { admin } = cluster;
    const before = cluster.definitions();
    await admin.create(DEFINITIONS, definition);
    assert.notEqual(cluster.definitions(), before);
    await admin.create(WIDGETS, widget('free'));
    await admin.create(WIDGETS, widget('held', ['example.com/hold']));
    const watched: string[] = [];
    const watching = (async () => {
      for await (const { type: change, object } of admin.watch(WIDGETS)) {
        watched.push(`${change} ${object.metadata.name}`);
      }
    })();
    await admin.delete(DEFINITIONS, { name: 'widgets.example.com' });
    await cluster.idle();
    assert.equal(cluster.state.get(WIDGETS, 'default', 'free'), undefined);
    await assert.rejects(admin.create(WIDGETS, widget('late')), {
      code: 403,
      message: /create not allowed while custom resource definition is terminating/,
    });
    const patch = { type: 'merge', body: { metadata: { finalizers: null } } } as const;
    await admin.patch(WIDGETS, { namespace: 'default', name: 'held' }, patch);
    await cluster.idle();
    assert.equal(cluster.state.get(DEFINITIONS, undefined, 'widgets.example.com'), undefined);
    await assert.rejects(admin.list(WIDGETS), { code: 404 });
    await watching;
    assert.deepEqual(watched, ['ADDED free', 'ADDED held', 'DELETED free', 'MODIFIED held', 'DELETED held']);
  });

  test('gets the names that another gives up', async () => {
    await using cluster = await open();
    const { admin } = cluster;
    await admin.create(DEFINITIONS, definition);
    const other = structuredClone(definition);
    other.metadata.name = 'gadgets.example.com';
    other.spec.names.plural = 'gadgets';
    const refused = await admin.create(DEFINITIONS, other);
    const accepted = (object: KubernetesObject | undefined): (string | undefined)[] | undefined =>
      (object?.['status'] as { conditions: readonly Condition[] } | undefined)?.conditions.map(
        ({ type, status }) => `${type} ${status}`,
      );
    assert.deepEqual(accepted(refused), ['NamesAccepted False', 'Established False']);
    await admin.delete(DEFINITIONS, { name: 'widgets.example.com' });
    await cluster.idle();
    assert.deepEqual(accepted(cluster.state.get(DEFINITIONS, undefined, 'gadgets.example.com')), [
      'NamesAccepted True',
      'Established True',
    ]);
  });

  test('that is removed takes with it what its objects own', async () => {
    await using cluster = await open();
    await cluster.admin.create(DEFINITIONS, definition);
    const parent = await cluster.admin.create(WIDGETS, widget('parent'));
    await make(cluster, 'child', { ownerReferences: [owner(parent)] });
    await cluster.idle();
    await cluster.admin.delete(DEFINITIONS, { name: 'widgets.example.com' });
    await cluster.idle();
    assert.equal(cluster.state.get(DEFINITIONS, undefined, 'widgets.example.com'), undefined);
    assert.equal(find(cluster, 'child'), undefined);
  });

  test('decides about those that name an owner of it once it is there', async () => {
    await using cluster = await open();
    await make(cluster, 'child', {
      ownerReferences: [{ apiVersion: 'example.com/v1', kind: 'Widget', name: 'nobody', uid: 'x' }],
    });
    await cluster.idle();
    assert.ok(find(cluster, 'child'));
    await cluster.admin.create(DEFINITIONS, definition);
    await cluster.idle();
    assert.equal(find(cluster, 'child'), undefined);
  });

  test('shows its objects with the fields and defaults that it has now', async () => {
    await using cluster = await open();
    const { admin } = cluster;
    const shaped = (properties: object): KubernetesObject => {
      const copy = structuredClone(definition) as typeof definition & { spec: { versions: { schema: object }[] } };
      const spec = { type: 'object', properties };
      copy.spec.versions = [
        { ...copy.spec.versions[0], schema: { openAPIV3Schema: { type: 'object', properties: { spec } } } },
      ] as never;
      return copy;
    };
    await admin.create(DEFINITIONS, shaped({ old: { type: 'string' }, kept: { type: 'string' } }));
    await admin.create(WIDGETS, { ...widget('w'), spec: { old: '1', kept: '2' } });
    const { metadata } = await admin.get(DEFINITIONS, { name: 'widgets.example.com' });
    const next = shaped({ kept: { type: 'string' }, new: { type: 'string', default: '3' } });
    await admin.update(DEFINITIONS, { ...next, metadata });
    const { items } = await admin.list(WIDGETS);
    assert.deepEqual(
      items.map(({ spec }) => spec),
      [{ kept: '2', new: '3' }],
    );
  });

  test('is served again after a restart, with its objects', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-restart-'));
    const file = join(folder, 'cluster.db');
    try {
      const first = await open({ file });
      await first.admin.create(DEFINITIONS, definition);
      await first.admin.create(WIDGETS, widget('kept'));
      await first.close();
      await using second = await open({ file });
      const { items } = await second.admin.list(WIDGETS);
      assert.deepEqual(
        items.map(({ metadata }) => metadata.name),
        ['kept'],
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

test('events are forgotten an hour after they last changed', async () => {
  let now = Date.parse('2026-11-21T10:00:00Z');
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-events-'));
  const options = { file: join(folder, 'cluster.db'), now: () => now };
  try {
    const first = await open(options);
    const event = (name: string): KubernetesObject => ({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { namespace: 'default', name },
      involvedObject: { namespace: 'default' },
    });
    await first.admin.create(EVENTS, event('old'));
    await first.admin.create(EVENTS, event('repeated'));
    await first.admin.create(EVENTS, { ...event('boastful'), lastTimestamp: '9999-01-01T00:00:00Z' });
    now += EVENT_TTL_MS;
    await first.admin.patch(EVENTS, { namespace: 'default', name: 'repeated' }, { type: 'merge', body: { count: 2 } });
    now += 1;
    await first.close();
    await using second = await open(options);
    assert.equal(second.state.get(EVENTS, 'default', 'old'), undefined);
    assert.equal(second.state.get(EVENTS, 'default', 'boastful'), undefined, 'what it says of itself does not count');
    assert.ok(second.state.get(EVENTS, 'default', 'repeated'));
  } finally {
    rmSync(folder, { recursive: true });
  }
});
