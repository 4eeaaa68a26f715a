// A policy server that serves PolicyRevisions of a cluster, written like the controller's.
import assert from 'node:assert/strict';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { after, before, describe, it } from 'node:test';
import type { EmbeddedCluster } from '../../src/apiserver/index.ts';
import { digestOf } from '../../src/modules/index.ts';
import { DEFAULT_SOURCES } from '../../src/modules/sources/index.ts';
import type { SourcesConfig } from '../../src/modules/sources/index.ts';
import { kubernetesKind, POLICY_REVISIONS, POLICY_SERVER_REPLICAS } from '../../src/resources/index.ts';
import type { JsonObject, ResourceType } from '../../src/resources/index.ts';
import type { PrevalidationResult } from '../../src/control/index.ts';
import {
  example,
  guest,
  moduleBytes,
  ModuleSource,
  requiredLabel,
  review,
  TestFolder,
  type TestServer,
  until,
} from './harness.ts';
import {
  NAMESPACE,
  openCluster,
  pinned,
  requiresLabel,
  Revisions,
  startReplica,
  SwitchedCluster,
} from './replica-lab.ts';

const NAMESPACES = kubernetesKind('v1', 'Namespace') as ResourceType;
const CONFIG_MAPS = kubernetesKind('v1', 'ConfigMap') as ResourceType;
const idOf = (policy: string): string => Revisions.id(policy);
const OTHER_DIGEST = `sha256:${'0'.repeat(64)}`;

/** The label that several answers name, all the same. */
async function labelNow(server: TestServer, policy: string): Promise<string | undefined> {
  const answers = await Promise.all(Array.from({ length: 6 }, () => server.review(idOf(policy), review())));
  const labels = new Set(answers.map(requiredLabel));
  assert.equal(labels.size, 1, `all workers answer alike: ${[...labels].join()}`);
  return [...labels][0];
}

function isFile(module: string): boolean {
  return module.startsWith('file:///');
}

async function statusOf(server: TestServer, policy: string): Promise<number> {
  return (await server.post(`/validate/${idOf(policy)}`, JSON.stringify(review()))).status;
}

function withoutTls({ host }: ModuleSource): SourcesConfig {
  return { ...DEFAULT_SOURCES, insecureSources: [host] };
}

function prevalidate(server: TestServer, policy: string, spec: unknown): Promise<PrevalidationResult> {
  const metadata = { name: policy };
  return server.server.prevalidate({ kind: 'ClusterAdmissionPolicy', metadata, spec: spec as never });
}

async function whileRunning(
  start: () => Promise<TestServer>,
  work: (server: TestServer) => Promise<void>,
): Promise<void> {
  await using server = await start();
  await work(server);
}

describe('a replica', () => {
  let cluster: EmbeddedCluster;
  let revisions: Revisions;
  let server: TestServer;
  before(async () => {
    cluster = await openCluster();
    revisions = new Revisions(cluster.admin);
    server = await startReplica({ cluster: cluster.admin });
  });
  after(async () => {
    await server[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
  });

  /** Creates a validated revision. */
  async function stage(policy: string, revision: number, spec: Record<string, unknown>): Promise<void> {
    const modules = pinned(await prevalidate(server, policy, spec));
    await revisions.create(policy, revision, spec, { state: 'Validated', modules });
  }

  async function serve(policy: string, revision: number, order = revision): Promise<void> {
    await revisions.setStatus(policy, revision, { state: 'Serving', order });
  }

  async function serves(policy: string, revision: number): Promise<void> {
    await until(async () => {
      const answer = await server.get(`/policies/${idOf(policy)}`);
      return (answer.json as { serving?: { revision: number } | null }).serving?.revision === revision;
    });
    await server.reaches(idOf(policy), { phase: 'Active' });
  }

  it('stages a validated revision, and serves it when its state is Serving', async () => {
    await stage('first', 1, requiresLabel('v1'));
    await server.reaches(idOf('first'), { phase: 'Pending' });
    assert.equal(await statusOf(server, 'first'), 503);
    await serve('first', 1);
    await serves('first', 1);
    assert.equal(await labelNow(server, 'first'), 'v1');
    const { desired, serving } = await server.status(idOf('first'));
    assert.deepEqual([desired?.revision, serving?.revision], [1, 1]);

    await stage('first', 2, requiresLabel('v2'));
    const updating = await server.reaches(idOf('first'), { phase: 'Updating' });
    assert.deepEqual([updating.desired?.revision, updating.serving?.revision], [2, 1]);
    assert.equal(await labelNow(server, 'first'), 'v1');
    await serve('first', 2);
    await serves('first', 2);
    await revisions.setStatus('first', 1, { state: 'Retired' });
    assert.equal(await labelNow(server, 'first'), 'v2');
    assert.equal((await server.status(idOf('first'))).serving?.revision, 2);
  });

  it('serves the revision with the highest order, not number', async () => {
    await stage('order', 1, requiresLabel('v1'));
    await stage('order', 2, requiresLabel('v2'));
    await serve('order', 2, 1);
    await serves('order', 2);
    await serve('order', 1, 2);
    await serves('order', 1);
    assert.equal(await labelNow(server, 'order'), 'v1');
  });

  it('serves on beside a forged revision, and reports it', async () => {
    await stage('genuine', 1, requiresLabel('v1'));
    await serve('genuine', 1);
    await serves('genuine', 1);
    const key = { namespace: NAMESPACE, name: `${idOf('genuine')}-1` };
    const { metadata, spec } = await cluster.admin.get(POLICY_REVISIONS, key);
    const name = `${idOf('genuine')}-1-forged`;
    const { namespace = '', labels = {} } = metadata;
    const forged = { ...spec, snapshot: requiresLabel('forged') as JsonObject };
    const apiVersion = 'portcullis.dev/v1';
    const metadataOf = { name, namespace, labels };
    await cluster.admin.create(POLICY_REVISIONS, {
      apiVersion,
      kind: 'PolicyRevision',
      metadata: metadataOf,
      spec: forged,
    });
    const status = { type: 'merge', body: { status: { state: 'Serving', order: 1_000_000 } } } as const;
    await cluster.admin.patch(POLICY_REVISIONS, { namespace, name }, status, { subresource: 'status' });
    await until(async () => {
      const { status: report } = await cluster.admin.get(POLICY_SERVER_REPLICAS, { namespace, name: 'replica-0' });
      return report?.deviations?.some(({ reason }) => reason === 'RevisionMismatch') === true;
    });
    assert.equal(await labelNow(server, 'genuine'), 'v1');
    await cluster.admin.delete(POLICY_REVISIONS, { namespace, name });
    await until(async () => {
      const { status: report } = await cluster.admin.get(POLICY_SERVER_REPLICAS, { namespace, name: 'replica-0' });
      return report?.deviationCount === 0;
    });
  });

  it('fails no review and mixes no revisions in 25 swaps under load', async () => {
    let isOver = false;
    let newest = 0;
    let reviews = 0;
    await stage('flips', 1, requiresLabel('flip-1'));
    await serve('flips', 1);
    await serves('flips', 1);
    const client = async (): Promise<void> => {
      while (!isOver) {
        const known = newest;
        const label = requiredLabel(await server.review(idOf('flips'), review()));
        const answered = Number(/^flip-(\d+)$/.exec(label ?? '')?.[1]);
        assert.ok(answered >= known, `expected revision ${known} or newer, got ${label}`);
        newest = Math.max(newest, answered);
        reviews += 1;
      }
    };
    const clients = Array.from({ length: 3 }, client);
    try {
      for (let number = 2; number <= 25; number += 1) {
        await stage('flips', number, requiresLabel(`flip-${number}`));
        await serve('flips', number);
        await revisions.setStatus('flips', number - 1, { state: 'Retired' });
        await until(
          () => newest >= number,
          () => `revision ${number}, newest ${newest}`,
        );
      }
    } finally {
      isOver = true;
      await Promise.all(clients);
    }
    assert.ok(reviews > 25);
  });

  const bad: Readonly<Record<string, { spec: Record<string, unknown>; digest?: string; reason: string }>> = {
    'settings that the policy refuses': {
      spec: requiresLabel('x', { settings: { labels: 'none' } }),
      reason: 'InvalidSettings',
    },
    'a module of another digest': { spec: requiresLabel('x'), digest: OTHER_DIGEST, reason: 'DigestMismatch' },
    'a missing module': {
      spec: requiresLabel('x', { module: 'file:///none.wasm' }),
      digest: OTHER_DIGEST,
      reason: 'FetchFailed',
    },
    'a module for a newer server': {
      spec: requiresLabel('x', { module: guest('minimum-version-99') }),
      reason: 'UnsupportedVersion',
    },
    'a module that may only be relative': {
      spec: requiresLabel('x', { module: 'file://./here.wasm' }),
      digest: OTHER_DIGEST,
      reason: 'InvalidDefinition',
    },
    'a snapshot that is no spec': { spec: { module: 7, policies: null }, reason: 'InvalidDefinition' },
  };
  for (const [what, { spec, digest, reason }] of Object.entries(bad)) {
    it(`keeps the serving revision when the next one has ${what}`, async () => {
      const policy = what.replaceAll(' ', '-');
      await stage(policy, 1, requiresLabel('good'));
      await serve(policy, 1);
      await serves(policy, 1);
      const module = String(spec['module']);
      const known = digest ?? (isFile(module) ? digestOf(await moduleBytes(module)) : OTHER_DIGEST);
      const modules = [{ name: policy, module, digest: known }];
      await revisions.create(policy, 2, spec, { state: 'Serving', order: 2, modules });
      const status = await server.reaches(idOf(policy), { phase: 'Degraded' });
      assert.equal(status.reason, reason, status.message);
      assert.deepEqual([status.desired?.revision, status.serving?.revision], [2, 1]);
      assert.equal(await labelNow(server, policy), 'good');
      await stage(policy, 3, requiresLabel('better'));
      await serve(policy, 3);
      await serves(policy, 3);
      assert.equal(await labelNow(server, policy), 'better');
    });
  }

  it('follows the failurePolicy of the newest failed revision until another one serves', async () => {
    const status = { state: 'Failed', reason: 'InvalidSettings', message: 'labels: expected a list' } as const;
    await revisions.create('strict', 1, requiresLabel('x'), status);
    await revisions.create('lenient', 1, requiresLabel('x', { failurePolicy: 'Ignore' }), status);
    await revisions.create('waiting', 1, requiresLabel('x'), { ...status, state: 'Candidate' });
    const failed = await server.reaches(idOf('strict'), { phase: 'Error' });
    assert.deepEqual([failed.reason, failed.message], ['RevisionFailed', 'labels: expected a list']);
    await server.reaches(idOf('lenient'), { phase: 'Error' });
    await server.reaches(idOf('waiting'), { phase: 'Error' });
    const rejected = await server.review(idOf('strict'), review());
    assert.deepEqual([rejected.allowed, rejected.status?.code], [false, 500]);
    assert.equal((await server.review(idOf('waiting'), review())).allowed, false);
    const admitted = await server.review(idOf('lenient'), review());
    assert.equal(admitted.allowed, true);
    assert.match(admitted.warnings?.join() ?? '', /expected a list/);
    await stage('strict', 2, requiresLabel('fixed'));
    await serve('strict', 2);
    await serves('strict', 2);
    assert.equal(await labelNow(server, 'strict'), 'fixed');
  });

  describe('with a policy that has parameters', () => {
    const TENANTS = 1_000;
    const tenants = Array.from({ length: TENANTS }, (_, index) => `tool-${index}`);
    const inNamespace = (namespace: string) => review({ namespace });
    /** The label that a WebAssembly policy requires in a namespace; the message when it was not evaluated. */
    const labelIn = async (namespace: string): Promise<string | undefined> => {
      const answer = await server.review(idOf('tenants'), inNamespace(namespace));
      return requiredLabel(answer) ?? (answer.allowed ? 'allowed' : answer.status?.message);
    };
    const setLabel = async (namespace: string, label: unknown): Promise<void> => {
      const body = { data: { label } } as JsonObject;
      await cluster.admin.patch(CONFIG_MAPS, { namespace, name: 'profile' }, { type: 'merge', body });
    };
    before(async () => {
      for (const name of [...tenants, 'without-profile']) {
        await cluster.admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
      }
      for (const namespace of tenants) {
        const metadata = { namespace, name: 'profile' };
        await cluster.admin.create(CONFIG_MAPS, {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata,
          data: { label: 'a' },
        });
      }
      const parameters = {
        from: { resource: { apiVersion: 'v1', kind: 'ConfigMap', name: 'profile' } },
        overridable: ['labels'],
        settingsExpression: "{'labels': [params.data.label + '-' + params.metadata.namespace]}",
      };
      await stage('tenants', 1, requiresLabel('base', { parameters }));
      await serve('tenants', 1);
      await serves('tenants', 1);
    });

    it('evaluates each namespace with its own', async () => {
      assert.deepEqual(await Promise.all(tenants.slice(0, 3).map(labelIn)), ['a-tool-0', 'a-tool-1', 'a-tool-2']);
    });

    it('uses a change for the next request', async () => {
      await setLabel('tool-0', 'b');
      await until(async () => (await labelIn('tool-0')) === 'b-tool-0');
      await setLabel('tool-0', 'a');
      await until(async () => (await labelIn('tool-0')) === 'a-tool-0');
    });

    it('denies a namespace without them until it has some', async () => {
      const namespace = 'without-profile';
      const missing = 'there are no parameters: ConfigMap without-profile/profile does not exist';
      assert.equal(await labelIn(namespace), missing);
      const metadata = { namespace, name: 'profile' };
      await cluster.admin.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { label: 'c' } });
      await until(async () => (await labelIn(namespace)) === 'c-without-profile');
      await cluster.admin.delete(CONFIG_MAPS, metadata);
      await until(async () => (await labelIn(namespace)) === missing);
    });

    it('denies a namespace whose parameters the policy refuses', async () => {
      await cluster.admin.patch(
        CONFIG_MAPS,
        { namespace: 'tool-1', name: 'profile' },
        { type: 'merge', body: { data: { label: null } } },
      );
      await until(
        async () =>
          (await labelIn('tool-1'))?.startsWith('the parameters of ConfigMap tool-1/profile are invalid: ') === true,
      );
      assert.equal(await labelIn('tool-2'), 'a-tool-2');
      await setLabel('tool-1', 'a');
      await until(async () => (await labelIn('tool-1')) === 'a-tool-1');
    });

    it('has new revisions tried with them', async () => {
      const from = { resource: { apiVersion: 'v1', kind: 'ConfigMap', name: 'profile' } };
      const settingsExpression = "{'labels': params.metadata.namespace in ['tool-7', 'tool-8'] ? [] : ['a']}";
      const parameters = { from, overridable: ['labels'], settingsExpression };
      const refused = await prevalidate(server, 'tenants', requiresLabel('base', { parameters }));
      assert.ok(!refused.ok);
      assert.equal(refused.reason, 'InvalidParameters');
      assert.match(
        refused.message,
        /^2 of 1000 namespaces would be refused for their parameters: tool-7, tool-8 \(the parameters of ConfigMap tool-7\/profile are invalid: /,
      );
      const warned = await prevalidate(
        server,
        'tenants',
        requiresLabel('base', { parameters: { ...parameters, onRollout: 'Warn' } }),
      );
      assert.ok(warned.ok);
      assert.match(warned.warnings?.[0] ?? '', /^2 of 1000 namespaces/);
    });

    it('fails no request while those of all namespaces change', async () => {
      let isChanging = true;
      const wrong: string[] = [];
      const requests = async (): Promise<void> => {
        for (let index = 0; isChanging; index = (index + 7) % TENANTS) {
          const label = (await labelIn(`tool-${index}`)) ?? '';
          if (label !== `a-tool-${index}` && label !== `b-tool-${index}`) {
            wrong.push(label);
          }
        }
      };
      const inFlight = Promise.all(Array.from({ length: 8 }, requests));
      await Promise.all(tenants.map((namespace) => setLabel(namespace, 'b')));
      isChanging = false;
      await inFlight;
      assert.deepEqual(wrong, []);
      for (const index of [0, 500, 999]) {
        await until(async () => (await labelIn(`tool-${index}`)) === `b-tool-${index}`);
      }
    });
  });

  it('removes a policy with its last revision', async () => {
    await stage('short-lived', 1, requiresLabel('x'));
    await serve('short-lived', 1);
    await serves('short-lived', 1);
    await revisions.delete('short-lived', 1);
    await until(async () => (await statusOf(server, 'short-lived')) === 404);
    assert.equal((await server.get(`/policies/${idOf('short-lived')}`)).status, 404);
  });

  it('loads 500 revisions at once, and serves all of them', async () => {
    const spec = {
      module: 'builtin:cel',
      settings: { validations: [{ expression: 'false' }] },
      mutating: false,
      rules: [],
    };
    const policies = Array.from({ length: 500 }, (_, index) => `many-${index}`);
    await Promise.all(policies.map((policy) => revisions.create(policy, 1, spec, { state: 'Serving', order: 1 })));
    await until(async () => {
      const { policies: all } = server.server.policies();
      return all.filter(({ id, phase }) => id.startsWith(idOf('many-')) && phase === 'Active').length === 500;
    });
    for (const policy of ['many-0', 'many-250', 'many-499']) {
      assert.equal((await server.review(idOf(policy), review())).allowed, false);
    }
    await Promise.all(policies.map((policy) => revisions.delete(policy, 1)));
    await until(() => server.server.policy(idOf('many-499')) === undefined);
  });

  it('pre-validates a policy without serving it', async () => {
    const module = example('required-labels');
    const modules = pinned(await prevalidate(server, 'tried', requiresLabel('x')));
    assert.deepEqual(
      modules.map(({ name, module: reference, digest }) => [name, reference, digest.slice(0, 7)]),
      [['tried', module, 'sha256:']],
    );
    const refused = await prevalidate(server, 'tried', requiresLabel('x', { settings: { labels: 'none' } }));
    assert.ok(!refused.ok);
    assert.deepEqual([refused.reason, refused.isTransient], ['InvalidSettings', false]);
    assert.match(refused.message, /expected a list/);
    const group = {
      expression: 'a() || b()',
      message: 'no',
      policies: {
        a: { module, settings: { labels: ['a'] } },
        b: { module: 'builtin:cel', settings: { validations: [{ expression: 'true' }] } },
      },
      rules: [],
    };
    assert.deepEqual(
      pinned(await prevalidate(server, 'grouped', group)).map(({ name, digest }) => [name, digest.split(':')[0]]),
      [
        ['a', 'sha256'],
        ['b', 'builtin'],
      ],
    );
    const relative = await prevalidate(server, 'tried', requiresLabel('x', { module: 'file://./x.wasm' }));
    assert.ok(!relative.ok);
    assert.equal(relative.reason, 'InvalidDefinition');
    assert.equal(await statusOf(server, 'tried'), 404);
    assert.equal(server.server.policy(idOf('tried')), undefined);
  });

  it('pre-validates a policy with the current module of its source', async () => {
    await using source = await ModuleSource.start({ kind: 'serve', bytes: await moduleBytes(guest('accept')) });
    const spec = requiresLabel('x', { module: source.url, settings: {} });
    await using other = await startReplica({ cluster: cluster.admin, name: 'other', sources: withoutTls(source) });
    const before = pinned(await prevalidate(other, 'tagged', spec));
    source.behaviour = { kind: 'down' };
    const unreachable = await prevalidate(other, 'tagged', spec);
    assert.ok(!unreachable.ok, 'the cache does not stand in for what the source may have by now');
    assert.deepEqual([unreachable.reason, unreachable.isTransient], ['FetchFailed', true]);
    source.behaviour = { kind: 'serve', bytes: await moduleBytes(example('pod-privileged')) };
    const after = pinned(await prevalidate(other, 'tagged', spec));
    assert.notEqual(before[0]?.digest, after[0]?.digest);
  });
});

describe('a replica that restarts', () => {
  it('serves recorded policies while the cluster and the sources are down, and then those of the cluster', async () => {
    await using folder = await TestFolder.create();
    await using embedded = await openCluster();
    const cluster = new SwitchedCluster(embedded.admin);
    const revisions = new Revisions(embedded.admin);
    await using source = await ModuleSource.start({
      kind: 'serve',
      bytes: await moduleBytes(example('required-labels')),
    });
    const options = { cluster: cluster.view, folder, sources: withoutTls(source) };
    const spec = requiresLabel('kept', { module: source.url });
    const start = (): Promise<TestServer> => startReplica({ ...options, readyWaitMs: 5_000 });

    const record = { serving: undefined as unknown };

    await whileRunning(start, async (server) => {
      const modules = pinned(await prevalidate(server, 'p', spec));
      const serving = { state: 'Serving', order: 1, modules } as const;
      await revisions.create('p', 1, spec, serving);
      await revisions.create('q', 1, requiresLabel('q', { module: source.url }), serving);
      record.serving = (await server.reaches(idOf('p'), { phase: 'Active' })).serving;
      await server.reaches(idOf('q'), { phase: 'Active' });
    });

    cluster.isDown = true;
    source.behaviour = { kind: 'down' };
    await whileRunning(start, async (server) => {
      assert.equal((await server.get('/readyz')).status, 200);
      const restored = await server.reaches(idOf('p'), { phase: 'Updating', reason: 'ServingFromRecord' });
      assert.deepEqual(restored.serving, record.serving);
      assert.equal(await labelNow(server, 'p'), 'kept');
      assert.match((await server.source()).error ?? '', /switched off/);
      // Then the policies of the cluster.
      await revisions.delete('q', 1);
      cluster.isDown = false;
      await server.reaches(idOf('p'), { phase: 'Active' });
      await until(async () => (await statusOf(server, 'q')) === 404);
      assert.equal((await server.source()).error, null);
    });

    // Without the cache nothing can serve, and the server is live and answers.
    cluster.isDown = true;
    await rm(join(folder.dataDir, 'modules'), { recursive: true });
    await whileRunning(start, async (server) => {
      assert.equal((await server.get('/readyz')).status, 200);
      const failed = await server.reaches(idOf('p'), { phase: 'Error', reason: 'FetchFailed' });
      assert.ok(failed.nextRetry !== null);
      assert.equal((await server.review(idOf('p'), review())).status?.code, 500);
      cluster.isDown = false;
      await until(async () => (await server.source()).loadedAt !== null);
      assert.equal((await server.status(idOf('p'))).phase, 'Error');
      source.behaviour = { kind: 'serve', bytes: await moduleBytes(example('pod-privileged')) };
      await server.server.reload();
      assert.equal((await server.status(idOf('p'))).reason, 'DigestMismatch', 'no other module than the pinned one');
      source.behaviour = { kind: 'serve', bytes: await moduleBytes(example('required-labels')) };
      await server.server.reload();
      await server.reaches(idOf('p'), { phase: 'Active' });
      assert.equal(await labelNow(server, 'p'), 'kept');
    });
  });

  it('keeps the last valid parameters with KeepLast, which a replica with another data folder does not have', async () => {
    await using folder = await TestFolder.create();
    await using embedded = await openCluster();
    const { admin } = embedded;
    const object = { namespace: 'tool-a', name: 'profile' };
    await admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: object.namespace } });
    await admin.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: object, data: { label: 'a' } });
    const spec = requiresLabel('base', {
      parameters: {
        from: { resource: { apiVersion: 'v1', kind: 'ConfigMap', name: 'profile' } },
        onInvalid: 'KeepLast',
        overridable: ['labels'],
        settingsExpression: "{'labels': [params.data.label]}",
      },
    });
    const write = (data: JsonObject): Promise<unknown> =>
      admin.patch(CONFIG_MAPS, object, { type: 'merge', body: { data } });
    const labelIn = async (server: TestServer): Promise<string | undefined> => {
      const answer = await server.review(idOf('p'), review({ namespace: object.namespace }));
      return requiredLabel(answer) ?? answer.status?.message;
    };
    const start = (): Promise<TestServer> => startReplica({ cluster: admin, folder });

    await whileRunning(start, async (server) => {
      const modules = pinned(await prevalidate(server, 'p', spec));
      await new Revisions(admin).create('p', 1, spec, { state: 'Serving', order: 1, modules });
      await server.reaches(idOf('p'), { phase: 'Active' });
      assert.equal(await labelIn(server), 'a');
      await write({ label: null });
      const record = join(folder.dataDir, 'last-valid-parameters.json');
      await until(async () => (await readFile(record, 'utf8').catch(() => '')).includes('tool-a'));
      await write({ other: 'b' });
      assert.equal(await labelIn(server), 'a');
    });
    await whileRunning(start, async (server) => {
      await server.reaches(idOf('p'), { phase: 'Active' });
      assert.equal(await labelIn(server), 'a');
    });
    await using other = await TestFolder.create();
    await whileRunning(
      () => startReplica({ cluster: admin, folder: other }),
      async (server) => {
        await server.reaches(idOf('p'), { phase: 'Active' });
        assert.match(
          (await labelIn(server)) ?? '',
          /^the parameters of ConfigMap tool-a\/profile are invalid: .*no such key: label/,
        );
      },
    );
  });

  it('is ready as soon as it has read the cluster', async () => {
    await using folder = await TestFolder.create();
    await using embedded = await openCluster();
    const cluster = new SwitchedCluster(embedded.admin);
    cluster.isDown = true;
    await using server = await startReplica({ cluster: cluster.view, folder, readyWaitMs: 50 });
    const answer = await server.get('/readyz');
    assert.equal(answer.status, 503);
    assert.match(answer.text, /revisions of the cluster are not known/);
    assert.equal(await statusOf(server, 'p'), 503, 'who knows whether there is such a policy');
    cluster.isDown = false;
    await until(async () => (await server.get('/readyz')).status === 200);
    assert.equal(await statusOf(server, 'p'), 404);
  });

  it('can be stopped at any moment of its start, and leaves nothing behind', async () => {
    await using embedded = await openCluster();
    await using folder = await TestFolder.create();
    for (const requestTimeoutMs of [0, 50, 150, 300, 500]) {
      const server = await startReplica({ cluster: embedded.admin, folder, isLoading: true });
      await sleep(requestTimeoutMs);
      await server.stop();
      await server.started.catch(() => undefined);
      const { items } = await embedded.admin.list(POLICY_SERVER_REPLICAS, { namespace: NAMESPACE });
      assert.deepEqual(items, [], `after ${requestTimeoutMs} ms`);
    }
  });
});
