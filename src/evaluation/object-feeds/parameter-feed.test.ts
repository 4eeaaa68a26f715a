import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import type { LookupResult } from '../../engine/index.ts';
import { WatchedObjects } from '../watched-objects.ts';
import { kubernetesKind, MAX_PARAMETERS_LENGTH } from '../../resources/index.ts';
import type { ResourceType } from '../../resources/index.ts';
import { ParameterFeed } from './parameter-feed.ts';
import { type ObjectNeeds, objectNeeds } from './object-needs.ts';
import { CountedCluster } from '../testing/counted-cluster.ts';

const PROFILES: ResourceType = {
  group: 'example.com',
  version: 'v1',
  resource: 'toolprofiles',
  kind: 'ToolProfile',
  namespaced: true,
};
const DEFINITIONS = kubernetesKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition') as ResourceType;
const PROFILE = { apiVersion: 'example.com/v1', kind: 'ToolProfile' };

/** Of one spec. */
const needs = (spec: unknown): ObjectNeeds => objectNeeds([spec]);

function parameters(from: object, settingsExpression = "{'a': params.a}"): object {
  return { from, overridable: ['a'], settingsExpression };
}

const POLICY = needs({ parameters: parameters({ resource: { ...PROFILE, name: 'profile' } }) });

describe('the needs of parameters', () => {
  it('are those of the policy or of its members', () => {
    const resource = { ...PROFILE, name: 'profile' };
    assert.deepEqual(needs({ parameters: parameters({ resource }) }), {
      kinds: [resource],
      readsNamespaces: false,
      annotations: [],
    });
    const keys = { annotations: ['uid'], labels: ['tier'] };
    assert.deepEqual(needs({ policies: { a: { parameters: parameters({ namespace: keys }) }, b: {} } }), {
      kinds: [],
      readsNamespaces: true,
      annotations: ['uid'],
    });
    const expression = "{'a': namespaceObject.metadata.name}";
    assert.equal(needs({ parameters: parameters({ resource }, expression) }).readsNamespaces, true);
  });

  it('are none for anything else', () => {
    for (const spec of [undefined, null, [], {}, { parameters: 1 }, { parameters: {} }, { policies: [null] }]) {
      assert.deepEqual(needs(spec), { kinds: [], readsNamespaces: false, annotations: [] });
    }
  });
});

describe('the parameters that policies need', () => {
  let cluster: CountedCluster;
  let feed: ParameterFeed;
  /** The objects of a worker. */
  let worker: WatchedObjects;
  beforeEach(async () => {
    cluster = await CountedCluster.open();
    worker = new WatchedObjects();
    feed = new ParameterFeed({
      cluster: cluster.admin,
      publish: (change) => worker.apply(change),
      retryMs: 10,
      log: pino({ level: 'silent' }),
    });
  });
  afterEach(async () => {
    feed.stop();
    await cluster[Symbol.asyncDispose]();
  });

  async function define(scope: 'Namespaced' | 'Cluster' = 'Namespaced'): Promise<void> {
    const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
    await cluster.admin.create(DEFINITIONS, {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'toolprofiles.example.com' },
      spec: {
        group: 'example.com',
        scope,
        names: { plural: 'toolprofiles', singular: 'toolprofile', kind: 'ToolProfile', listKind: 'ToolProfileList' },
        versions: [{ name: 'v1', served: true, storage: true, schema }],
      },
    });
  }
  const create = (name: string, uid: unknown): Promise<unknown> =>
    cluster.admin.create(PROFILES, { ...PROFILE, metadata: { name, namespace: 'default' }, spec: { uid } });
  const found = (name = 'profile'): LookupResult => worker.find({ ...PROFILE, namespace: 'default', name });
  const uidOf = (result: LookupResult): unknown =>
    result.state === 'found' ? (result.object.spec as { uid: unknown }).uid : result.state;
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) {
      await sleep(5);
    }
  };
  const find = (name = 'profile') => feed.find({ ...PROFILE, namespace: 'default', name });

  it('are published while a policy needs them, each change of them too', async () => {
    await define();
    await create('profile', 1);
    feed.want(new Map([['p', POLICY]]), true);
    await until(() => uidOf(found()) === 1);
    const key = { namespace: 'default', name: 'profile' };
    await cluster.admin.patch(PROFILES, key, { type: 'merge', body: { spec: { uid: 2 } } });
    await until(() => uidOf(found()) === 2);
    feed.want(new Map([['p', undefined]]), false);
    assert.equal(found().state, 'unknown');
    feed.want(new Map([['p', POLICY]]), true);
    await until(() => uidOf(found()) === 2);
    feed.want(new Map(), true);
    assert.equal(found().state, 'unknown', 'there are no other policies');
  });

  it('are watched once, whatever the number of policies and objects', async () => {
    await define();
    feed.want(
      new Map([
        ['p', POLICY],
        ['q', POLICY],
      ]),
      true,
    );
    await create('profile', 1);
    await until(() => uidOf(found()) === 1);
    assert.equal((await find('other')).state, 'absent');
  });

  it('are only the objects of the names that policies use', async () => {
    await define();
    const other = needs({ parameters: parameters({ resource: { ...PROFILE, name: 'other' } }) });
    feed.want(
      new Map([
        ['p', POLICY],
        ['q', other],
      ]),
      true,
    );
    for (const name of ['profile', 'other', 'unrelated']) {
      await create(name, name);
    }
    await until(() => uidOf(found('profile')) === 'profile' && uidOf(found('other')) === 'other');
    assert.equal(found('unrelated').state, 'unknown');
  });

  it('that do not exist are known to be absent, until they are created', async () => {
    await define();
    feed.want(new Map([['p', POLICY]]), true);
    do {
      assert.deepEqual(await find(), { state: 'absent' });
    } while (found().state === 'unknown');
    assert.deepEqual(found(), { state: 'absent' });
    await create('profile', 3);
    await until(() => uidOf(found()) === 3);
  });

  it('that are too large are not published', async () => {
    await define();
    await create('profile', 'x'.repeat(MAX_PARAMETERS_LENGTH));
    feed.want(new Map([['p', POLICY]]), true);
    await until(() => found().state !== 'unknown');
    const result = found();
    assert.ok(result.state === 'unreadable');
    assert.match(result.reason, /too large: expected at most 32768 characters, got 32\d\d\d/);
  });

  it('of a kind that is not served cannot be read, and are watched once it is', async () => {
    feed.want(new Map([['p', POLICY]]), true);
    assert.deepEqual(await find(), {
      state: 'unreadable',
      reason: 'the cluster does not serve example.com/v1 ToolProfile',
    });
    await define();
    await create('profile', 4);
    await until(() => uidOf(found()) === 4);
  });

  it('of a kind that was removed cannot be read, and are not absent, until it is put back', async () => {
    await define();
    await create('profile', 1);
    feed.want(new Map([['p', POLICY]]), true);
    await until(() => uidOf(found()) === 1);
    await cluster.admin.delete(DEFINITIONS, { name: 'toolprofiles.example.com' });
    await until(() => found().state !== 'found');
    const result = await find();
    assert.deepEqual(result, { state: 'unreadable', reason: 'the cluster does not serve example.com/v1 ToolProfile' });
    assert.equal(found().state, 'unknown');
    await define();
    await create('profile', 2);
    await until(() => uidOf(found()) === 2);
  });

  it('of a cluster-scoped kind cannot be read', async () => {
    await define('Cluster');
    feed.want(new Map([['p', POLICY]]), true);
    const result = await find();
    assert.ok(result.state === 'unreadable');
    assert.match(result.reason, /expected a namespaced kind, got example.com\/v1 ToolProfile/);
  });

  it('of a kind that no policy needs cannot be read', async () => {
    assert.equal((await find()).state, 'unreadable');
  });
});
