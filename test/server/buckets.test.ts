// Reviews for all policies of a bucket: /admit/{bucket} of a replica.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { after, before, describe, it } from 'node:test';
import type { EmbeddedCluster } from '../../src/apiserver/index.ts';
import { DEFAULT_SOURCES } from '../../src/modules/sources/index.ts';
import type { SourcesConfig } from '../../src/modules/sources/index.ts';
import { kubernetesKind, type ResourceType } from '../../src/resources/index.ts';
import {
  guest,
  moduleBytes,
  ModuleSource,
  review,
  type ReviewResponse,
  startServer,
  TestFolder,
  type TestServer,
  until,
} from './harness.ts';
import {
  type LabReplicaOptions,
  openCluster,
  pinned,
  requiresLabel,
  Revisions,
  startReplica,
  SwitchedCluster,
} from './replica-lab.ts';
import { Threads } from './threads.ts';

const VALIDATING = 'validating.fail.equivalent.cluster.v1';
const MUTATING = 'mutating.fail.equivalent.cluster.v1';
const IGNORING = 'validating.ignore.equivalent.cluster.v1';
const NAMESPACES = kubernetesKind('v1', 'Namespace') as ResourceType;
const PODS = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE', 'UPDATE'] }];
const SERVICES = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['services'], operations: ['CREATE'] }];
const TIMEOUT_TEXT = /exceeded the allowed execution time/;

/** A review of a pod without labels. */
const podReview = (request: object = {}): unknown => review({ ...request });
/** The same for a service, which other policies match. */
function serviceReview(): unknown {
  const kind = { group: '', version: 'v1', kind: 'Service' };
  const resource = { group: '', version: 'v1', resource: 'services' };
  return review({ kind, requestKind: kind, resource, requestResource: resource });
}

/** A replica with revisions that serve at once. */
class Lab implements AsyncDisposable {
  readonly cluster: EmbeddedCluster;
  readonly revisions: Revisions;
  readonly server: TestServer;

  private constructor(cluster: EmbeddedCluster, server: TestServer) {
    this.cluster = cluster;
    this.revisions = new Revisions(cluster.admin);
    this.server = server;
  }

  static async open(options: Omit<LabReplicaOptions, 'cluster'> = {}): Promise<Lab> {
    const cluster = await openCluster();
    return new Lab(cluster, await startReplica({ cluster: cluster.admin, ...options }));
  }

  /** Creates a validated revision. */
  async stage(policy: string, spec: Record<string, unknown>, revision = 1): Promise<void> {
    const metadata = { name: policy };
    const result = await this.server.server.prevalidate({
      kind: 'ClusterAdmissionPolicy',
      metadata,
      spec: spec as never,
    });
    await this.revisions.create(policy, revision, spec, { state: 'Validated', modules: pinned(result) });
  }

  async serve(policy: string, spec: Record<string, unknown>, revision = 1): Promise<void> {
    await this.stage(policy, spec, revision);
    await this.revisions.setStatus(policy, revision, { state: 'Serving', order: revision });
    await until(async () => {
      const answer = await this.server.get(`/policies/${Revisions.id(policy)}`);
      return (answer.json as { serving?: { revision: number } | null }).serving?.revision === revision;
    });
    await this.server.reaches(Revisions.id(policy), { phase: 'Active' });
  }

  admit(bucket: string, one: unknown, query = ''): Promise<ReviewResponse> {
    return this.server.review(`${bucket}${query}`, one, { route: 'admit' });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
    await this.cluster[Symbol.asyncDispose]();
  }
}

describe('a bucket of policies', () => {
  let lab: Lab;
  before(async () => {
    lab = await Lab.open();
    await lab.serve('first', requiresLabel('one', { rules: PODS }));
    await lab.serve('second', requiresLabel('two', { rules: PODS }));
    await lab.serve('of-services', requiresLabel('three', { rules: SERVICES }));
  });
  after(() => lab[Symbol.asyncDispose]());

  it('evaluates all matching policies, and names each that denies', async () => {
    const { allowed, status } = await lab.admit(VALIDATING, podReview());
    assert.equal(allowed, false);
    assert.match(status?.message ?? '', /cap\/first: .*"one".*cap\/second: .*"two"/s);
    assert.ok(!status?.message?.includes('three'));
    const other = await lab.admit(VALIDATING, serviceReview());
    assert.match(other.status?.message ?? '', /"three"/);
    assert.ok(!other.status?.message?.includes('"one"'));
  });

  it('has metrics of every policy, and of the whole review', async () => {
    const evaluations = (policy: string): Promise<number> =>
      lab.server.metric('kubewarden_policy_evaluations_total', { policy_name: Revisions.id(policy) });
    const before = await Promise.all([evaluations('first'), evaluations('second'), evaluations('of-services')]);
    const reviews = await lab.server.metric('portcullis_review_duration_seconds_count', { route: 'admit' });
    const policies = await lab.server.metric('portcullis_review_policies_sum');
    await lab.admit(VALIDATING, podReview());
    await lab.admit(VALIDATING, podReview({ operation: 'DELETE', object: null }));
    const now = await Promise.all([evaluations('first'), evaluations('second'), evaluations('of-services')]);
    assert.deepEqual(
      now.map((count, index) => count - (before[index] ?? 0)),
      [1, 1, 0],
    );
    assert.equal(await lab.server.metric('portcullis_review_duration_seconds_count', { route: 'admit' }), reviews + 2);
    assert.equal(await lab.server.metric('portcullis_review_policies_sum'), policies + 2);
    const latency = { policy_name: Revisions.id('first'), policy_mode: 'protect' };
    assert.ok((await lab.server.metric('kubewarden_policy_evaluation_latency_milliseconds_count', latency)) > 0);
  });

  it('without policies allows', async () => {
    assert.equal((await lab.admit('mutating.ignore.exact.cluster', podReview())).allowed, true);
  });

  it('needs a valid name, and POST', async () => {
    const body = JSON.stringify(podReview());
    for (const name of ['', '%2e%2e%2fx', 'Bucket', 'x'.repeat(600), 'a/b']) {
      assert.equal((await lab.server.post(`/admit/${name}`, body)).status, 400, name);
    }
    assert.equal((await lab.server.post(`/admit/${VALIDATING}`, 'not JSON')).status, 400);
    assert.equal((await lab.server.post(`/admit/${VALIDATING}`, body, { method: 'GET' })).status, 405);
  });

  it('does not exist with a policies file', async () => {
    await using server = await startServer({ policies: {} });
    assert.equal((await server.post(`/admit/${VALIDATING}`, JSON.stringify(podReview()))).status, 404);
  });

  it('may be a policy’s own bucket, whatever shared bucket the policy is in', async () => {
    const id = Revisions.id('first');
    for (const own of [`validating.${id}`, `mutating.${id}`]) {
      const { status } = await lab.admit(own, podReview());
      assert.match(status?.message ?? '', /"one"/);
      assert.ok(!status?.message?.includes('"two"'));
    }
    const unknown = await lab.server.post('/admit/validating.kw.cap.gone', JSON.stringify(podReview()));
    assert.equal(unknown.status, 404);
  });

  it('includes policies of revisions that may serve on other replicas', async () => {
    const other = { rules: [{ ...PODS[0], resources: ['configmaps'] }], failurePolicy: 'Ignore' };
    await lab.serve('moves', requiresLabel('from', { rules: PODS }));
    await lab.stage('moves', requiresLabel('to', other), 2);
    await lab.server.reaches(Revisions.id('moves'), { phase: 'Updating' });
    assert.match((await lab.admit(VALIDATING, podReview())).status?.message ?? '', /"from"/);
    assert.match((await lab.admit(IGNORING, podReview())).status?.message ?? '', /"from"/);
    await lab.revisions.setStatus('moves', 1, { state: 'Retired' });
    await lab.revisions.delete('moves', 2);
    await lab.revisions.delete('moves', 1);
    await until(async () => (await lab.admit(IGNORING, podReview())).allowed);
  });
});

describe('a policy that moves to another bucket', () => {
  it('is evaluated once in either bucket on any replica', async () => {
    await using lab = await Lab.open();
    await using other = await startReplica({ cluster: lab.cluster.admin, name: 'replica-1' });
    await lab.serve('moves', requiresLabel('old', { rules: PODS }));
    await lab.stage('moves', requiresLabel('new', { rules: PODS, failurePolicy: 'Ignore' }), 2);
    const id = Revisions.id('moves');
    await Promise.all([lab.server, other].map((server) => server.reaches(id, { phase: 'Updating' })));
    let isOver = false;
    let requests = 0;
    const client = async (): Promise<void> => {
      while (!isOver) {
        for (const [one, two] of [
          [lab.server, other],
          [other, lab.server],
        ] as const) {
          const answers = await Promise.all([
            one.review(VALIDATING, podReview(), { route: 'admit' }),
            two.review(IGNORING, podReview(), { route: 'admit' }),
          ]);
          assert.ok(answers.some(({ allowed }) => !allowed));
          requests += 1;
        }
      }
    };
    const clients = [client(), client()];
    try {
      for (let order = 2; order < 8; order += 1) {
        const before = requests;
        await lab.revisions.setStatus('moves', order % 2 === 0 ? 2 : 1, { state: 'Serving', order });
        await until(() => requests > before + 10);
      }
    } finally {
      isOver = true;
    }
    await Promise.all(clients);
  });
});

describe('a bucket of mutating policies', () => {
  it('applies all changes in order, with one patch', async () => {
    await using lab = await Lab.open();
    const add = (key: string, value: string): Record<string, unknown> => ({
      module: 'builtin:cel',
      mutating: true,
      rules: PODS,
      settings: {
        mutations: [
          {
            patchType: 'ApplyConfiguration',
            applyConfiguration: { expression: `Object{metadata: Object.metadata{labels: {"${key}": ${value}}}}` },
          },
        ],
      },
    });
    await lab.serve('a', add('first', '"1"'));
    await lab.serve('b', add('second', 'object.metadata.labels["first"] + "2"'));
    const sent = podReview() as { request: { object: { metadata: object } } };
    const { allowed, patch } = await lab.admit(MUTATING, sent);
    assert.equal(allowed, true);
    const operations = JSON.parse(Buffer.from(patch ?? '', 'base64').toString()) as object[];
    const text = JSON.stringify(operations);
    assert.match(text, /"12"/);
    assert.match(text, /"1"/);
  });
});

describe('a policy of a bucket that never returns', () => {
  const stuck = (rest: object = {}): Record<string, unknown> => ({
    module: guest('loop-in-validate'),
    mutating: false,
    settings: {},
    rules: PODS,
    timeoutEvalSeconds: 1,
    ...rest,
  });

  /** Not cut off because the machine is busy. */
  const patient = { timeoutEvalSeconds: 10 };

  it('times out and is named; the others give verdicts, and other requests do not wait', async () => {
    await using lab = await Lab.open();
    await lab.serve('first', requiresLabel('one', { rules: PODS, ...patient }));
    await lab.serve('loops', stuck());
    await lab.serve('zebra', requiresLabel('two', { rules: PODS, ...patient }));
    await lab.serve('of-services', requiresLabel('three', { rules: SERVICES, ...patient }));
    const cut = await lab.admit(VALIDATING, podReview(), '?timeout=30s');
    assert.equal(cut.allowed, false);
    assert.match(cut.status?.message ?? '', /cap\/first: .*"one".*cap\/loops: .*cap\/zebra: .*"two"/s);
    assert.match(cut.status?.message ?? '', TIMEOUT_TEXT);
    const timeouts = { policy_name: Revisions.id('loops') };
    assert.equal(await lab.server.metric('portcullis_policy_timeouts_total', timeouts), 1);
    // Now it is slow: reviews that match it wait in the slow lane.
    const slow = Array.from({ length: 4 }, () => lab.admit(VALIDATING, podReview(), '?timeout=30s'));
    let answered = 0;
    let between = 0;
    void Promise.allSettled(slow.map((one) => one.finally(() => (answered += 1))));
    while (answered < slow.length) {
      const before = answered;
      const { status } = await lab.admit(VALIDATING, serviceReview(), '?timeout=30s');
      assert.match(status?.message ?? '', /"three"/);
      between += answered === before ? 1 : 0;
    }
    assert.ok(between > 0, 'each of them waited for the end of a slow one');
    for (const { status } of await Promise.all(slow)) {
      assert.match(status?.message ?? '', /"one".*"two"/s);
      assert.match(status?.message ?? '', TIMEOUT_TEXT);
    }
    assert.equal(await lab.server.metric('portcullis_policy_timeouts_total', timeouts), 5);
    assert.equal(await lab.server.metric('portcullis_reviews_held'), 0);
  });

  it('times out with its API server, long before its own timeout, and follows its failurePolicy', async () => {
    await using lab = await Lab.open();
    await lab.serve('loops', stuck({ failurePolicy: 'Ignore', timeoutEvalSeconds: 30 }));
    await lab.serve('other', requiresLabel('one', { rules: PODS, failurePolicy: 'Ignore', ...patient }));
    const ownTimeout = sleep(30_000, undefined, { ref: false });
    const answer = await Promise.race([lab.admit(IGNORING, podReview(), '?timeout=6s'), ownTimeout]);
    assert.ok(answer, 'it was not ended before its own timeout');
    const { allowed, status, warnings } = answer;
    assert.equal(allowed, false);
    assert.match(status?.message ?? '', /"one"/);
    assert.match((warnings ?? []).join(), TIMEOUT_TEXT);
  });
});

describe('a worker that ends in the review of a bucket', () => {
  it('times out the policy that it evaluated the second time, and no other', async () => {
    using threads = new Threads();
    await using lab = await Lab.open();
    await lab.serve('endless', {
      module: guest('loop-in-validate'),
      mutating: false,
      settings: {},
      rules: PODS,
      timeoutEvalSeconds: 25,
      timeoutSeconds: 30,
    });
    await lab.serve('good', requiresLabel('one', { rules: PODS, timeoutSeconds: 30 }));
    const crashes = (): Promise<number> => lab.server.metric('portcullis_worker_restarts_total', { reason: 'crash' });
    const doomed = lab.admit(VALIDATING, podReview(), '?timeout=30s');
    await (await threads.stuck()).terminate();
    await until(async () => (await crashes()) === 1);
    await (await threads.stuck()).terminate();
    const { status } = await doomed;
    assert.match(status?.message ?? '', /cap\/endless: .*cap\/good: .*"one"/s);
    assert.match(status?.message ?? '', TIMEOUT_TEXT);
    assert.equal(await crashes(), 2);
    assert.equal(await lab.server.metric('portcullis_reviews_held'), 0);
  });
});

describe('a policy of a bucket that is not loaded', () => {
  it('fails until it is loaded, and gets 503 in a request by id', async () => {
    const bytes = await moduleBytes(guest('accept'));
    await using source = await ModuleSource.start({ kind: 'serve', bytes });
    const sources: SourcesConfig = { ...DEFAULT_SOURCES, insecureSources: [source.host] };
    await using lab = await Lab.open({ sources, fetchTimeoutMs: 30_000 });
    const spec = { module: source.url, mutating: false, settings: {}, rules: PODS };
    const result = await lab.server.server.prevalidate({
      kind: 'ClusterAdmissionPolicy',
      metadata: { name: 'late' },
      spec: spec as never,
    });
    await using other = await startReplica({
      cluster: lab.cluster.admin,
      name: 'replica-1',
      sources,
    });
    source.behaviour = { kind: 'hang' };
    await lab.revisions.create('late', 1, spec, { state: 'Serving', order: 1, modules: pinned(result) });
    const admit = (): Promise<ReviewResponse> => other.review(VALIDATING, podReview(), { route: 'admit' });
    await until(async () => (await other.get(`/policies/${Revisions.id('late')}`)).status === 200);
    const denied = await admit();
    assert.equal(denied.allowed, false);
    assert.match(denied.status?.message ?? '', /being loaded/);
    assert.equal((await other.post(`/validate/${Revisions.id('late')}`, JSON.stringify(podReview()))).status, 503);
  });

  it('reports the failure of the newest revision, and admits with failurePolicy Ignore', async () => {
    await using lab = await Lab.open();
    const failed = { state: 'Failed', reason: 'InvalidSettings', message: 'no such label' } as const;
    await lab.revisions.create('broken', 1, requiresLabel('x', { rules: PODS }), failed);
    await lab.revisions.create('ignored', 1, requiresLabel('x', { rules: SERVICES, failurePolicy: 'Ignore' }), failed);
    await lab.server.reaches(Revisions.id('broken'), { phase: 'Error' });
    await lab.server.reaches(Revisions.id('ignored'), { phase: 'Error' });
    const { allowed, status } = await lab.admit(VALIDATING, podReview());
    assert.equal(allowed, false);
    assert.match(status?.message ?? '', /no such label/);
    const passed = await lab.admit(IGNORING, serviceReview());
    assert.equal(passed.allowed, true);
    assert.match((passed.warnings ?? []).join(), /no such label/);
    assert.equal((await lab.admit(IGNORING, podReview())).warnings ?? null, null, 'which is not for this request');
  });
});

describe('a policy that selects namespaces by their labels', () => {
  let lab: Lab;
  before(async () => {
    lab = await Lab.open();
  });
  after(() => lab[Symbol.asyncDispose]());
  const namespace = async (name: string, labels: Record<string, string>): Promise<void> => {
    await lab.cluster.admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
  };
  const isEvaluated = async (name: string): Promise<boolean> =>
    !(await lab.admit(VALIDATING, podReview({ namespace: name }))).allowed;

  it('watches namespaces, and looks up new ones', async () => {
    await namespace('shop', { env: 'prod' });
    const namespaceSelector = { matchLabels: { env: 'prod' } };
    await lab.serve('prod', requiresLabel('one', { rules: PODS, namespaceSelector }));
    assert.equal(await isEvaluated('shop'), true);
    await namespace('office', {});
    assert.equal(await isEvaluated('office'), false);
    await namespace('market', { env: 'prod' });
    assert.equal(await isEvaluated('market'), true);
    const relabel = (env: string): Promise<unknown> =>
      lab.cluster.admin.patch(NAMESPACES, { name: 'shop' }, { type: 'merge', body: { metadata: { labels: { env } } } });
    await relabel('test');
    await until(async () => !(await isEvaluated('shop')));
    await relabel('prod');
    await until(() => isEvaluated('shop'));
  });

  it('follows its failurePolicy when labels are unknown', async () => {
    const { allowed, status } = await lab.admit(VALIDATING, podReview({ namespace: 'nowhere' }));
    assert.equal(allowed, false);
    assert.match(status?.message ?? '', /nowhere/);
  });
});

describe('a replica that restarts while the cluster is unavailable', () => {
  it('serves recorded policies and namespace labels, and then those of the cluster', async () => {
    await using folder = await TestFolder.create();
    await using lab = await Lab.open({ folder });
    const { admin } = lab.cluster;
    for (const name of ['shop', 'office']) {
      const env = name === 'shop' ? 'prod' : 'test';
      await admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { env } } });
    }
    const namespaceSelector = { matchLabels: { env: 'prod' } };
    await lab.serve('prod', requiresLabel('one', { rules: PODS, namespaceSelector }));
    await until(() => existsSync(join(folder.dataDir, 'namespaces.json')));
    await lab.server.stop();

    const cluster = new SwitchedCluster(admin);
    cluster.isDown = true;
    await using server = await startReplica({ cluster: cluster.view, folder, readyWaitMs: 5_000 });
    const admit = (namespace: string): Promise<ReviewResponse> =>
      server.review(VALIDATING, podReview({ namespace }), { route: 'admit' });
    assert.match((await admit('shop')).status?.message ?? '', /"one"/);
    assert.equal((await admit('office')).allowed, true);
    assert.match((await admit('new')).status?.message ?? '', /labels of the namespace "new" are not known/);
    const env = 'test';
    await admin.patch(NAMESPACES, { name: 'shop' }, { type: 'merge', body: { metadata: { labels: { env } } } });
    cluster.isDown = false;
    await until(async () => (await admit('shop')).allowed);
  });
});

describe('a replica that has not read revisions', () => {
  it('refuses buckets, so that API servers apply the failurePolicy', async () => {
    await using cluster = await openCluster();
    const switched = new SwitchedCluster(cluster.admin);
    switched.isDown = true;
    await using server = await startReplica({ cluster: switched.view, readyWaitMs: 50 });
    const post = async (): Promise<number> =>
      (await server.post(`/admit/${VALIDATING}`, JSON.stringify(podReview()))).status;
    assert.equal(await post(), 503);
    switched.isDown = false;
    await until(async () => (await post()) === 200);
  });
});

describe('a stopping replica', () => {
  it('is not ready, and continues to answer for a while, closing connections', async () => {
    await using lab = await Lab.open({ shutdownDelayMs: 1_500 });
    await lab.serve('first', requiresLabel('one', { rules: PODS }));
    const stopped = lab.server.server.stop();
    assert.equal((await lab.server.get('/readyz')).status, 503);
    const body = JSON.stringify(podReview());
    for (let round = 0; round < 5; round += 1) {
      const fresh = new Agent({ ca: readFileSync(lab.server.folder.certificates.caFile), keepAlive: true });
      const answer = await lab.server.post(`/admit/${VALIDATING}`, body, { agent: fresh });
      assert.deepEqual([answer.status, answer.headers.connection], [200, 'close']);
      fresh.destroy();
    }
    await stopped;
    await assert.rejects(lab.server.post(`/admit/${VALIDATING}`, body), /ECONNREFUSED/);
  });

  it('drops no request before its clients have noticed', async () => {
    await using lab = await Lab.open({ shutdownDelayMs: 1_000 });
    await lab.serve('first', requiresLabel('one', { rules: PODS }));
    const agent = new Agent({ ca: readFileSync(lab.server.folder.certificates.caFile), keepAlive: true });
    const body = JSON.stringify(podReview());
    let isSending = true;
    let answers = 0;
    const client = async (): Promise<void> => {
      while (isSending) {
        const { status } = await lab.server.post(`/admit/${VALIDATING}`, body, { agent });
        assert.equal(status, 200);
        answers += 1;
      }
    };
    const clients = Array.from({ length: 4 }, client);
    await until(() => answers > 20);
    const stopped = lab.server.server.stop();
    const before = answers;
    await until(() => answers > before + 20);
    isSending = false;
    await Promise.all(clients);
    await stopped;
    agent.destroy();
  });
});
