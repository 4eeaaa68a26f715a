import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import { ClusterError } from '../../cluster/index.ts';
import type { Cluster } from '../../cluster/index.ts';
import type { JsonObject } from '../../engine/index.ts';
import { kubernetesKind } from '../../resources/index.ts';
import type { ContextAwareResource, KubernetesObject, ResourceType } from '../../resources/index.ts';
import { ClusterReader } from './cluster-reader.ts';
import type { ClusterReaderOptions } from './cluster-reader.ts';
import { KindRevisions } from './kind-revisions.ts';

const NAMESPACE = { apiVersion: 'v1', kind: 'Namespace' };
const CONFIG_MAP = { apiVersion: 'v1', kind: 'ConfigMap' };
const SECRET = { apiVersion: 'v1', kind: 'Secret' };

function typeOf({ apiVersion, kind }: { apiVersion: string; kind: string }): ResourceType {
  const definition = kubernetesKind(apiVersion, kind);
  assert.ok(definition);
  return definition;
}

/** A reader of an embedded cluster, whose requests are counted and may be made to fail. */
async function reading(
  options: Pick<Partial<ClusterReaderOptions>, 'maxKinds' | 'maxObjects'> & { user?: string } = {},
) {
  const embedded = await EmbeddedCluster.open();
  const calls: string[] = [];
  const line = { intercept: undefined as ((verb: string) => Promise<never> | undefined) | undefined };
  const { user, ...rest } = options;
  const inner = user === undefined ? embedded.admin : embedded.as({ username: user, groups: ['system:authenticated'] });
  const cluster: Cluster = new Proxy(inner, {
    get(target, property: Exclude<keyof Cluster, 'discovery'> | 'discovery') {
      if (property === 'discovery') {
        return target.discovery;
      }
      return (...args: unknown[]): unknown => {
        calls.push(property);
        return line.intercept?.(property) ?? (target[property] as (...all: unknown[]) => unknown).apply(target, args);
      };
    },
  });
  const revisions = new KindRevisions();
  const reader = new ClusterReader({ cluster, revisions, log: pino({ level: 'silent' }), ...rest });
  return {
    reader,
    revisions,
    /** As workers see it; undefined when one of the kinds is not cached. */
    revisionOf(...kinds: readonly ContextAwareResource[]): string | undefined {
      const counters = kinds.map((kind) => reader.counterOf(kind)).filter((counter) => counter !== undefined);
      const values = counters.map((counter) => `${counter}:${revisions.of(counter)}`);
      return values.length < kinds.length ? undefined : [revisions.epoch, ...values].join(' ');
    },
    calls,
    line,
    admin: embedded.admin,
    create: (object: JsonObject & { apiVersion: string; kind: string; metadata: object }) =>
      embedded.admin.create(typeOf(object), object),
    async [Symbol.asyncDispose]() {
      reader.close();
      await embedded.close();
    },
  };
}

const get = (name: string, extra: object = {}) => ({ ...NAMESPACE, name, disableCache: false, ...extra });
const configMap = (name: string, labels: Record<string, string> = {}) => ({
  ...CONFIG_MAP,
  metadata: { namespace: 'default', name, labels },
});
const namesIn = (list: JsonObject): string[] =>
  (list.items as { metadata: { name: string } }[]).map(({ metadata }) => metadata.name).sort();
const limit = (ms: number): AbortSignal => AbortSignal.timeout(ms);

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) {
    await sleep(2);
  }
}

describe('ClusterReader', () => {
  it('answers from a cache of the kinds that are declared, as the cluster changes', async () => {
    await using test = await reading();
    test.reader.declare([NAMESPACE]);
    const found = await test.reader.get(get('default'), limit(5000));
    assert.equal(found?.kind, 'Namespace');
    assert.equal((found as KubernetesObject | undefined)?.metadata.managedFields, undefined);
    assert.equal(await test.reader.get(get('shop')), undefined);
    await test.create({ ...NAMESPACE, metadata: { name: 'shop' } });
    await until(async () => (await test.reader.get(get('shop'))) !== undefined);
    assert.deepEqual(new Set(test.calls), new Set(['list', 'watch']));
  });

  it('asks the cluster for other kinds, and when the policy wants no cache', async () => {
    await using test = await reading();
    assert.equal((await test.reader.get(get('default')))?.kind, 'Namespace');
    assert.equal(await test.reader.get(get('shop')), undefined);
    test.reader.declare([NAMESPACE]);
    await test.reader.get(get('default'), limit(5000));
    test.calls.length = 0;
    await test.reader.get(get('default', { disableCache: true }));
    assert.deepEqual(test.calls, ['get']);
  });

  it('stops following what is declared no more', async () => {
    await using test = await reading();
    test.reader.declare([NAMESPACE, CONFIG_MAP]);
    await test.reader.get(get('default'), limit(5000));
    const { epoch } = test.revisions;
    test.reader.declare([CONFIG_MAP]);
    test.calls.length = 0;
    await test.reader.get(get('default'));
    assert.deepEqual(
      test.calls.filter((verb) => verb === 'get'),
      ['get'],
    );
    assert.equal(test.revisionOf(NAMESPACE), undefined);
    assert.notEqual(test.revisions.epoch, epoch, 'workers forget what they kept');
  });

  it('lists by namespace, label and field', async () => {
    await using test = await reading();
    await test.create(configMap('a', { team: 'x' }));
    await test.create(configMap('b', { team: 'y' }));
    await test.create({ ...SECRET, metadata: { namespace: 'default', name: 's' }, type: 'example.com/one' });
    test.reader.declare([CONFIG_MAP, SECRET]);
    for (const source of ['cache', 'cluster']) {
      if (source === 'cluster') {
        test.reader.declare([]);
      }
      const list = async (where: object): Promise<string[]> =>
        namesIn(await test.reader.list({ ...CONFIG_MAP, namespace: 'default', ...where }, limit(5000)));
      assert.deepEqual(await list({}), ['a', 'b'], source);
      assert.deepEqual(await list({ labelSelector: 'team in (x, z)' }), ['a'], source);
      assert.deepEqual(await list({ fieldSelector: 'metadata.name!=a' }), ['b'], source);
      assert.deepEqual(await list({ namespace: 'kube-system', labelSelector: 'team' }), [], source);
      const secrets = await test.reader.list({ ...SECRET, fieldSelector: 'type=example.com/one' }, limit(5000));
      assert.deepEqual(namesIn(secrets), ['s'], source);
      assert.deepEqual([secrets.apiVersion, secrets.kind], ['v1', 'SecretList']);
      assert.match((secrets as { metadata: { resourceVersion: string } }).metadata.resourceVersion, /^\d+$/);
      await assert.rejects(list({ labelSelector: 'a===' }), source);
      await assert.rejects(test.reader.list({ ...CONFIG_MAP, fieldSelector: 'data.a=b' }), /data\.a/u, source);
    }
  });

  it('fails when a request does not fit the scope of its kind', async () => {
    await using test = await reading();
    for (const declared of [[NAMESPACE, CONFIG_MAP], []]) {
      test.reader.declare(declared);
      await assert.rejects(
        test.reader.get({ ...CONFIG_MAP, name: 'a', disableCache: false }, limit(5000)),
        /expected a namespace, got none/,
      );
      await assert.rejects(
        test.reader.list({ ...NAMESPACE, namespace: 'default' }, limit(5000)),
        /are in no namespace: list all of them/,
      );
    }
  });

  it('names a kind that the cluster does not have, and finds it once it does', async () => {
    await using test = await reading();
    const widget = { apiVersion: 'example.com/v1', kind: 'Widget' };
    test.reader.declare([widget]);
    const read = () =>
      test.reader.get({ ...widget, namespace: 'default', name: 'a', disableCache: false }, limit(5000));
    await assert.rejects(
      read(),
      /cannot read example\.com\/v1\/Widget: the cluster does not serve example\.com\/v1\/Widget; correct the name, or install/,
    );
    await assert.rejects(test.reader.pluralName('example.com/v1', 'Widget'), /does not serve/);
    await test.create({
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'widgets.example.com' },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { plural: 'widgets', kind: 'Widget' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
      },
    });
    await until(() => test.revisionOf(widget) !== undefined);
    assert.equal(await read(), undefined);
    assert.equal(await test.reader.pluralName('example.com/v1', 'Widget'), 'widgets');
  });

  it('says who may not read what, and what to allow, without waiting', async () => {
    await using test = await reading({ user: 'alice' });
    test.reader.declare([NAMESPACE]);
    const expected =
      /cannot read v1\/Namespace: namespaces .*is forbidden: User "alice" cannot list resource "namespaces".*; allow the policy server to get, list and watch namespaces/;
    await assert.rejects(test.reader.get(get('default'), limit(5000)), expected);
    await assert.rejects(
      test.reader.list({ ...SECRET }),
      /cannot read v1\/Secret: .*cannot list resource "secrets".*allow the policy server/,
    );
    await assert.rejects(
      test.reader.canI({ user: 'bob' }, false),
      /cannot review access: .*; allow the policy server to create subjectaccessreviews/,
    );
  });

  it('waits for objects that are not there yet as long as it may, and then says what is in the way', async () => {
    await using test = await reading();
    test.line.intercept = (verb) =>
      verb === 'list' ? Promise.reject(new ClusterError('unreachable', 'connection refused')) : undefined;
    test.reader.declare([NAMESPACE]);
    await assert.rejects(
      test.reader.get(get('default'), limit(30)),
      /cannot read v1\/Namespace: its objects are not known yet: connection refused/,
    );
    assert.equal(test.revisionOf(NAMESPACE), undefined);
    const waiting = test.reader.get(get('default'), limit(20_000));
    test.line.intercept = undefined;
    assert.notEqual(await waiting, undefined);
  });

  it('keeps no more kinds and objects than it may', async () => {
    await using test = await reading({ maxKinds: 1, maxObjects: 5 });
    for (let number = 0; number < 6; number++) {
      await test.create(configMap(`map-${number}`));
    }
    test.reader.declare([CONFIG_MAP, NAMESPACE]);
    const one = { ...CONFIG_MAP, namespace: 'default', name: 'map-1', disableCache: false };
    assert.notEqual(await test.reader.get(one, limit(5000)), undefined);
    assert.ok(test.calls.includes('get'), 'read from the cluster');
    await assert.rejects(
      test.reader.list(CONFIG_MAP, limit(5000)),
      /there are \d+ objects, expected at most 5; read fewer of them/,
    );
    test.calls.length = 0;
    await test.reader.get(get('default'));
    assert.deepEqual(test.calls, ['get']);
  });

  it('follows a kind no further that grows beyond what it may', async () => {
    await using test = await reading({ maxObjects: 10 });
    test.reader.declare([CONFIG_MAP]);
    await test.reader.list(CONFIG_MAP, limit(5000));
    const { epoch } = test.revisions;
    for (let number = 0; number < 12; number++) {
      await test.create(configMap(`map-${number}`));
    }
    const one = { ...CONFIG_MAP, namespace: 'default', name: 'map-11', disableCache: false };
    await until(async () => (await test.reader.get(one, limit(5000))) !== undefined);
    assert.ok(test.calls.includes('get'));
    assert.equal(test.revisionOf(CONFIG_MAP), undefined);
    assert.notEqual(test.revisions.epoch, epoch);
  });

  it('counts the changes of each kind', async () => {
    await using test = await reading();
    test.reader.declare([NAMESPACE, CONFIG_MAP]);
    await Promise.all([test.reader.list(NAMESPACE, limit(5000)), test.reader.list(CONFIG_MAP, limit(5000))]);
    const first = test.revisionOf(NAMESPACE, CONFIG_MAP);
    assert.equal(typeof first, 'string');
    assert.equal(test.revisionOf(NAMESPACE, CONFIG_MAP), first);
    const namespaces = test.revisionOf(NAMESPACE);
    await test.create(configMap('a'));
    await until(() => test.revisionOf(NAMESPACE, CONFIG_MAP) !== first);
    assert.equal(test.revisionOf(NAMESPACE), namespaces);
    assert.equal(test.revisionOf(NAMESPACE, SECRET), undefined);
    assert.equal(await test.reader.pluralName('v1', 'Namespace'), 'namespaces');
  });

  it('asks what somebody may do, and not again within seconds', async () => {
    await using test = await reading();
    const review = (user: string) => ({
      user,
      groups: [],
      resource_attributes: { verb: 'list', resource: 'pods', namespace: 'default' },
    });
    assert.equal((await test.reader.canI(review('alice'), false)).allowed, false);
    assert.equal((await test.reader.canI({ ...review('root'), groups: ['system:masters'] }, false)).allowed, true);
    test.calls.length = 0;
    await test.reader.canI(review('alice'), false);
    assert.deepEqual(test.calls, []);
    await test.reader.canI(review('alice'), true);
    assert.deepEqual(test.calls, ['create']);
    await assert.rejects(test.reader.canI({ name: 'alice' }, false), /subject_access_review\.name: unknown/);
  });
});
