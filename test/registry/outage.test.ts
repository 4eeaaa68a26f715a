// A registry that is down, or does not answer, costs no verdict: while policies change, servers restart, a rollout runs, and new
// replicas start. Reviews go on all the time; each has to get a verdict of its policy.
import assert from 'node:assert/strict';
import { copyFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { digestOf } from '../../src/modules/index.ts';
import type { SourcesConfig } from '../../src/modules/sources/index.ts';
import { ANNOTATIONS, keyOf, type KubernetesObject, policyId } from '../../src/resources/index.ts';
import { skipWithoutRegistry } from '../cluster/binaries.ts';
import { kind, type Policy, PolicyLab } from '../lifecycle/policy-lab.ts';
import {
  example,
  moduleBytes,
  moduleVariant,
  requiredLabel,
  review,
  startServer,
  TestFolder,
  type TestServer,
  until,
} from '../server/harness.ts';
import { startReplica } from '../server/replica-lab.ts';
import { FaultProxy } from './fault-proxy.ts';
import { Registry } from './registry-lab.ts';

const module = await moduleBytes(example('required-labels'));
/** Reviews at the same time. */
const CLIENTS = 4;
/** Interval of the reviews of a client, which would use a whole core otherwise. Milliseconds. */
const PAUSE_MS = 5;

/** A module that behaves alike and has other bytes. */
function variant(name: string): Buffer {
  return moduleVariant(module, name);
}

/** Reviews without end, of policies on servers that may change. A verdict is the label that the policy requires. */
class Load implements AsyncDisposable {
  /** Those that get reviews now. */
  servers: readonly TestServer[];
  readonly failures: string[] = [];
  verdicts = 0;
  readonly #labels: ReadonlyMap<string, ReadonlySet<string>>;
  readonly #clients: Promise<void>[];
  #isOver = false;

  /** @param labels by policy, those that its revisions may require */
  constructor(servers: readonly TestServer[], labels: Readonly<Record<string, readonly string[]>>) {
    this.servers = servers;
    this.#labels = new Map(Object.entries(labels).map(([id, names]) => [id, new Set(names)]));
    this.#clients = Array.from({ length: CLIENTS }, (_, index) => this.#send(index));
  }

  /** Waits until reviews that began after this call have got verdicts. */
  async goesOn(): Promise<void> {
    const goal = this.verdicts + 10 * CLIENTS;
    await until(() => this.verdicts >= goal || this.failures.length > 0);
    assert.deepEqual(this.failures, []);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#clients);
  }

  async end(): Promise<void> {
    await this[Symbol.asyncDispose]();
    assert.deepEqual(this.failures, []);
    assert.ok(this.verdicts > 0);
  }

  async #send(first: number): Promise<void> {
    const ids = [...this.#labels.keys()];
    for (let turn = first; !this.#isOver; turn += 1) {
      const id = ids[turn % ids.length] ?? '';
      const server = this.servers[turn % this.servers.length];
      try {
        const response = (await server?.review(id, review()))!;
        const label = requiredLabel(response);
        if (label === undefined || this.#labels.get(id)?.has(label) !== true) {
          this.failures.push(`${id}: ${label ?? `no verdict: ${response.status?.message}`}`);
        }
        this.verdicts += 1;
      } catch (error) {
        this.failures.push(`${id}: ${String(error)}`);
      }
      await sleep(PAUSE_MS);
    }
  }
}

/** A folder with the certificates of another one: replicas of a PolicyServer have the same CA. */
async function folderLike(other: TestFolder): Promise<TestFolder> {
  const folder = await TestFolder.create();
  const [from, to] = [other, folder].map(({ certificates }) => Object.values(certificates) as string[]);
  await Promise.all(from!.map((file, index) => copyFile(file, to![index]!)));
  return folder;
}

describe('while a registry', { skip: skipWithoutRegistry(), timeout: 400_000 }, () => {
  let registry: Registry;
  let proxy: FaultProxy;
  let sources: SourcesConfig;

  before(async () => {
    registry = await Registry.start();
    proxy = await FaultProxy.start(registry);
    sources = await registry.sources(registry, proxy);
  });
  after(async () => {
    await proxy?.[Symbol.asyncDispose]();
    await registry?.[Symbol.asyncDispose]();
  });

  for (const [what, hostOf, begin, end] of [
    ['is down', () => registry.host, () => registry.stop(), () => registry.resume()],
    [
      'does not answer',
      () => proxy.host,
      async () => {
        proxy.faults.set('/', () => undefined);
        proxy.anonymousFaults.set('/', () => undefined);
      },
      async () => {
        proxy.faults.clear();
        proxy.anonymousFaults.clear();
      },
    ],
  ] as const) {
    it(`${what}, policies change and the server restarts without a failed review`, async () => {
      const host = hostOf();
      for (const name of ['one', 'two', 'three', 'new']) {
        await registry.push(`outage/${name}`, 'v1', variant(name));
      }
      const policy = (name: string, label: string): object => ({
        module: `registry://${host}/outage/${name}:v1`,
        settings: { labels: [label] },
      });
      const policies = { a: policy('one', 'a'), b: policy('two', 'b'), c: policy('three', 'c') };
      await using folder = await TestFolder.create();
      const options = { folder, sources, fetchTimeoutMs: 3_000, policyTimeoutSeconds: 10 };
      {
        await using warm = await startServer({ ...options, policies });
        await Promise.all(Object.keys(policies).map((id) => warm.reaches(id, { phase: 'Active' })));
      }
      await begin();
      try {
        let server = await startServer({ ...options, policies });
        await using servers = new AsyncDisposableStack();
        servers.use(server);
        await using load = new Load([server], { a: ['a', 'changed'], b: ['b'], c: ['c'] });
        await load.goesOn();

        // A change of settings, a new policy of a module that is in the cache, and one of a module that is not.
        const changed = { ...policies, a: policy('one', 'changed'), d: policy('two', 'd'), e: policy('new', 'e') };
        await server.write(changed);
        await until(async () => requiredLabel(await server.review('a', review())) === 'changed');
        assert.equal((await server.reaches('d', { phase: 'Active' })).reason, 'ServingFromCache');
        assert.equal((await server.reaches('e', { phase: 'Error' })).reason, 'FetchFailed');
        await load.goesOn();

        // A restart: the new process serves before the old one ends, and shares its folder.
        for (let restart = 0; restart < 2; restart += 1) {
          const next = servers.use(await startServer({ ...options, policies: changed }));
          load.servers = [next];
          // Reviews that it has got are answered.
          await server.server.stop();
          server = next;
          await load.goesOn();
        }
        await load.end();
        assert.equal(requiredLabel(await server.review('a', review())), 'changed');
      } finally {
        await end();
      }
    });
  }

  it('is down, a corrupt module is healed by the registry, or by nobody with a message that says so', async () => {
    await registry.push('outage/corrupt', 'v1', variant('corrupt'));
    const policies = {
      p: { module: `registry://${registry.host}/outage/corrupt:v1`, settings: { labels: ['p'] } },
    };
    await using folder = await TestFolder.create();
    const entry = join(folder.dataDir, 'modules', 'sha256', `${digestOf(variant('corrupt')).slice(7)}.wasm`);
    {
      await using warm = await startServer({ policies, folder, sources });
      await warm.reaches('p', { phase: 'Active' });
    }
    await writeFile(entry, 'other bytes');
    {
      await using healed = await startServer({ policies, folder, sources });
      await healed.reaches('p', { phase: 'Active' });
      assert.deepEqual(await readdir(join(folder.dataDir, 'modules', 'corrupt')), [entry.split('/').at(-1)]);
    }
    await writeFile(entry, 'other bytes');
    await registry.stop();
    try {
      await using server = await startServer({ policies, folder, sources });
      const { message } = await server.reaches('p', { phase: 'Error' });
      assert.match(message, /ECONNREFUSED.*the copy in the cache was corrupt and is set aside/);
    } finally {
      await registry.resume();
    }
  });

  it('is down, a rollout, a rollback, and restarted, corrupt and new replicas fail no review', async () => {
    const manifest = await registry.push('outage/rollout', 'v1', variant('rollout'));
    const [tagged, pinned] = ['', `@${manifest}`].map(
      (version) => `registry://${registry.host}/outage/rollout:v1${version}`,
    );
    await using lab = await PolicyLab.start({ sources });
    await using folders = new AsyncDisposableStack();
    const [secondFolder, thirdFolder] = await Promise.all(
      [0, 1].map(async () => folders.use(await folderLike(lab.server.folder))),
    );
    const replica = async (name: string, folder: TestFolder | undefined): Promise<TestServer> =>
      await startReplica({ cluster: lab.cluster.admin, workers: 1, sources, name, ...(folder && { folder }) });
    let second = folders.use(await replica('replica-1', secondFolder));
    const policy = (name: string, reference: string | undefined): KubernetesObject => ({
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name },
      spec: {
        module: reference,
        settings: { labels: [name] },
        mutating: false,
        rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
      },
    });
    const [a, b] = [policy('a', pinned), policy('b', tagged)];
    const ids = [policyId(a), policyId(b)] as const;
    const change = (object: KubernetesObject, body: object): Promise<void> =>
      lab.merge(kind<Policy>(object.apiVersion, object.kind), keyOf(object), body as Record<string, unknown>);
    const serve = async (servers: readonly TestServer[], id: string, label: string): Promise<void> => {
      for (const server of servers) {
        await until(async () => requiredLabel(await server.review(id, review())) === label);
      }
    };
    await Promise.all([a, b].map(async (object) => lab.create(object)));
    await Promise.all([a, b].map((object) => lab.reaches(object, 'Active')));
    await serve([lab.server, second], ids[0], 'a');

    await registry.stop();
    try {
      await using load = new Load([lab.server, second], { [ids[0]]: ['a', 'changed'], [ids[1]]: ['b'] });
      // A pinned module needs no registry; a tag cannot be resolved, so that revision waits.
      await change(a, { spec: { settings: { labels: ['changed'] } } });
      await change(b, { spec: { settings: { labels: ['not yet'] } } });
      await lab.reaches(a, 'Active');
      await serve([lab.server, second], ids[0], 'changed');
      assert.equal((await lab.reaches(b, 'Degraded')).status?.reason, 'FetchFailed');
      await load.goesOn();

      await change(a, { metadata: { annotations: { [ANNOTATIONS.rollbackTo]: 'previous' } } });
      await serve([lab.server, second], ids[0], 'a');
      await load.goesOn();

      // A replica restarts, once as it is, once with a corrupt cache, once without.
      const cache = join(second.folder.dataDir, 'modules', 'sha256');
      for (const spoil of [
        async () => undefined,
        async () => writeFile(join(cache, `${digestOf(variant('rollout')).slice(7)}.wasm`), 'other bytes'),
        async () => rm(second.folder.dataDir, { recursive: true }),
      ]) {
        load.servers = [lab.server];
        await load.goesOn();
        await second.server.stop();
        await spoil();
        second = folders.use(await replica('replica-1', secondFolder));
        await Promise.all(ids.map((id) => second.reaches(id, { phase: 'Active' })));
        load.servers = [lab.server, second];
        await load.goesOn();
      }

      // The controllers restart, and a replica is added.
      await lab.stopControllers();
      const third = folders.use(await replica('replica-2', thirdFolder));
      await Promise.all(ids.map((id) => third.reaches(id, { phase: 'Active' })));
      load.servers = [third];
      await load.goesOn();
      load.servers = [lab.server, second, third];
      await lab.startControllers();
      await change(a, { spec: { settings: { labels: ['changed'] } } });
      await serve(load.servers, ids[0], 'changed');
      await load.goesOn();
      await load.end();
    } finally {
      await registry.resume();
    }
  });
});
