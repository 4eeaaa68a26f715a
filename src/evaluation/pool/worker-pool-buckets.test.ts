import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ObjectReference, parsePolicies } from '../../engine/index.ts';
import type { PolicyMatch } from '../../resources/index.ts';
import type { CompiledPolicyModule } from '../compiled-module.ts';
import type { TableEntry } from '../evaluation-protocol.ts';
import type { PoolAnswer } from './review-job.ts';
import type { FindResult, WatchedChange } from '../watched-objects.ts';
import { connectCapabilities } from '../capabilities/capability-connection.ts';
import { moduleOf, silentCapabilities, tableChange, tableEntry } from '../testing/worker-tables.ts';
import { type RestartReason, WATCHDOG_INTERVAL_MS, WorkerPool } from './worker-pool.ts';

/** Short, so that what is cut off is cut off soon. */
const TIMEOUT_SECONDS = 0.1;
/** Of guests that answer: a busy machine may not start and run them within the limit of the others. */
const PATIENT = '  timeoutEvalSeconds: 10\n';
/** Each turn of a busy main thread: more than two intervals of the watchdog. */
const BUSY_MS = 3 * WATCHDOG_INTERVAL_MS;
const BUCKET = 'validating.fail.equivalent.cluster.v1';
const TENANTS = 'validating.ignore.equivalent.namespaced.v1';

const accept = moduleOf('accept');
/** Asks the host, which never answers here: only the watchdog ends it. */
const asksHost = moduleOf('wasi-host-call', 'wasi');
function match(resource: string, rest: Partial<PolicyMatch> = {}): PolicyMatch {
  return {
    bucket: BUCKET,
    isMutating: false,
    failurePolicy: 'Fail',
    matchPolicy: 'Equivalent',
    rules: [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: [resource], scope: '*' }],
    namespaceSelector: {},
    objectSelector: {},
    matchConditions: [],
    timeoutSeconds: 10,
    ...rest,
  };
}

function entry(name: string, module: CompiledPolicyModule, matches: PolicyMatch, rest = PATIENT): TableEntry {
  return { ...tableEntry(`kw.cap.${name}`, module, rest), match: matches };
}

/** Ended by the watchdog: the host's silence becomes an error only after more than a second. */
const waits = (name: string, matches: PolicyMatch, seconds?: 1): TableEntry =>
  entry(
    name,
    asksHost,
    matches,
    `  hostCapabilities: ["*"]\n${seconds === undefined ? '' : `  timeoutEvalSeconds: ${seconds}\n`}`,
  );
/** Asks a registry, which may take as long as the policy. */
const ASKS_REGISTRY = { binding: 'kubewarden', ns: 'oci', op: 'v1/manifest_digest', payload: 'example.com/app:1' };
/** Rejects everything at once. */
const rejects = (name: string, matches: PolicyMatch): TableEntry => ({
  id: `kw.cap.${name}`,
  failed: { message: `rejected by ${name}`, failurePolicy: 'Fail' },
  match: matches,
});

function bodyOf(resource: string, namespace = 'shop', rest: object = {}): Uint8Array {
  const kind = { group: '', version: 'v1', kind: 'Thing' };
  const request = {
    uid: 'u',
    kind,
    resource: { group: '', version: 'v1', resource },
    name: 'a',
    namespace,
    operation: 'CREATE',
    userInfo: {},
    object: { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'a', namespace }, ...rest },
  };
  const review = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request };
  return new Uint8Array(Buffer.from(JSON.stringify(review)));
}

interface Response {
  readonly allowed: boolean;
  readonly status?: { readonly message: string };
}

const responseOf = ({ result }: PoolAnswer): Response => {
  assert.ok(result.kind === 'response', result.kind);
  return JSON.parse(result.response) as Response;
};

const NAMESPACE = { apiVersion: 'v1', kind: 'Namespace' };

function namespaces(labels: Readonly<Record<string, Readonly<Record<string, string>>>>, isAll = false): WatchedChange {
  const objects = Object.entries(labels).map(
    ([name, own]) => [{ name }, JSON.stringify({ metadata: { labels: own } })] as const,
  );
  return { ...NAMESPACE, isAll, objects };
}

/** The policies and outcomes that an answer observed. */
const outcomes = ({ observed }: PoolAnswer): string[] =>
  observed.map(({ observation: { policy, outcome } }) => `${policy.slice('kw.cap.'.length)} ${outcome}`);

describe('a bucket in the worker pool', () => {
  let pool: WorkerPool;
  let timeouts: string[];
  let restarts: RestartReason[];
  let read: ObjectReference[];
  let find: (object: ObjectReference) => Promise<FindResult>;
  const published = new Set<string>();
  before(async () => {
    pool = new WorkerPool({
      size: 2,
      start: { defaultTimeoutSeconds: TIMEOUT_SECONDS, hasBuckets: true },
      connectCapabilities: silentCapabilities,
      log: () => undefined,
      onTimeout: (policy) => timeouts.push(policy),
      onRestart: (reason) => restarts.push(reason),
      find: (object) => {
        read.push(object);
        return find(object);
      },
    });
    await pool.start();
    await pool.publish(tableChange([], { modules: [accept, asksHost] }));
  });
  beforeEach(() => {
    [timeouts, restarts, read] = [[], [], []];
    find = () => Promise.resolve({ state: 'absent' });
  });
  afterEach(async () => {
    pool.publishWatched(namespaces({}, true));
    await pool.publish(tableChange([], { removals: [...published] }));
    published.clear();
  });
  after(() => pool.stop());

  async function publish(...entries: readonly TableEntry[]): Promise<void> {
    for (const { id } of entries) {
      published.add(id);
    }
    await pool.publish(tableChange(entries));
  }

  const admit = (
    resource: string,
    requestTimeoutMs = 10_000,
    namespace = 'shop',
    bucket = BUCKET,
  ): Promise<PoolAnswer> =>
    new Promise((resolve) => pool.submit('admit', bucket, bodyOf(resource, namespace), requestTimeoutMs, resolve));

  it('reports what was observed of each policy, and how long it took', async () => {
    await publish(entry('a', accept, match('pods')), entry('b', accept, match('pods')));
    const answer = await admit('pods');
    assert.deepEqual(outcomes(answer), ['a verdict', 'b verdict']);
    assert.ok(answer.observed.every(({ evaluationMs }) => evaluationMs > 0 && evaluationMs <= answer.evaluationMs));
    assert.deepEqual(outcomes(await admit('services')), []);
  });

  it('loses only the policies that do not end, one after the other', async () => {
    await publish(
      entry('a', accept, match('pods')),
      waits('b', match('pods')),
      rejects('c', match('pods')),
      waits('d', match('pods')),
    );
    const answer = await admit('pods');
    assert.deepEqual(outcomes(answer), ['a verdict', 'b timeout', 'c not-initialized', 'd timeout']);
    const { allowed, status } = responseOf(answer);
    assert.equal(allowed, false);
    assert.match(status?.message ?? '', /rejected by c/);
    assert.deepEqual(timeouts, ['kw.cap.b', 'kw.cap.d'], 'each is told once');
    assert.deepEqual(restarts, ['timeout', 'timeout']);
    assert.equal(pool.held, 0);
  });

  it('cuts off only the member of a group that does not end', async () => {
    const [definition] = parsePolicies(
      `
kw.cap.group:
  expression: waits() || good()
  message: neither
  policies:
    waits: {module: "file:///w.wasm", hostCapabilities: ["*"]}
    good: {module: "file:///m.wasm", timeoutEvalSeconds: 10}
`,
      'policies.yml',
    ).policies;
    assert.ok(definition);
    const digests = { 'file:///m.wasm': accept.digest, 'file:///w.wasm': asksHost.digest };
    await publish({ id: 'kw.cap.group', definition, digests, match: match('pods') });
    assert.equal(responseOf(await admit('pods')).allowed, true);
    assert.deepEqual([timeouts, restarts], [['kw.cap.group'], ['timeout']]);
  });

  it('does not wait for its slow policies where a request is not for them', async () => {
    await publish(waits('slow', match('pods')), entry('a', accept, match('services')));
    // A first one makes it known.
    await admit('pods', 700);
    assert.deepEqual(timeouts, ['kw.cap.slow']);
    const held = Array.from({ length: 4 }, () => admit('pods', 3_000));
    const order: string[] = [];
    void Promise.all(held.map((one) => one.then(() => order.push('slow'))));
    for (let round = 0; round < 20; round += 1) {
      assert.deepEqual(outcomes(await admit('services')), ['a verdict']);
    }
    assert.ok(order.length < held.length, 'they wait in a lane of their own');
    for (const answer of await Promise.all(held)) {
      assert.deepEqual(outcomes(answer), ['slow timeout']);
    }
    assert.deepEqual([pool.held, pool.waiting], [0, 0]);
    assert.equal(timeouts.length, 5);
  });

  it('frees a worker when policies hold all of them, and others wait', async () => {
    await publish(waits('slow', match('pods'), 1), entry('a', accept, match('services')));
    const held = [admit('pods', 1_500), admit('pods', 1_500)];
    assert.deepEqual(outcomes(await admit('services')), ['a verdict']);
    assert.equal(restarts[0], 'held');
    await Promise.all(held);
  });

  it('frees a worker also while the main thread has much else to do', async () => {
    await publish(waits('slow', match('pods'), 1), entry('a', accept, match('services')));
    const held = [admit('pods', 1_500), admit('pods', 1_500)];
    const other = admit('services');
    const isBusy = setInterval(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_MS), 1);
    assert.deepEqual(outcomes(await other), ['a verdict']);
    clearInterval(isBusy);
    assert.equal(restarts[0], 'held');
    await Promise.all(held);
  });

  it('never gives all workers to a namespace whose policies nobody has tried yet', async () => {
    const numbers = JSON.stringify(Array.from({ length: 50 }, (_, index) => index));
    const expression = `${numbers}.all(a, ${numbers}.all(b, ${numbers}.all(c, c >= 0)))`;
    const matchConditions = [{ name: 'c', expression }];
    const ofTenant = match('pods', { bucket: TENANTS, namespace: 'shop', failurePolicy: 'Ignore', matchConditions });
    const many = Array.from({ length: 300 }, (_, index) => entry(`p${index}`, accept, ofTenant));
    await publish(...many, entry('a', accept, match('services')));
    let ended = 0;
    const held = [1, 2].map(() => admit('pods', 60_000, 'shop', TENANTS).finally(() => (ended += 1)));
    // Until one of them, or both, are evaluated.
    await sleep(300);
    await admit('services', 60_000);
    assert.deepEqual([ended, restarts, timeouts], [0, [], []], 'no worker had to end a review, or to be freed');
    await Promise.all(held);
  });

  it('is answered in time, by failurePolicies, when nobody gets to evaluate it', async () => {
    await publish(
      entry('a', accept, match('services')),
      rejects('b', match('services')),
      waits('slow', match('pods'), 1),
      waits('other', match('pods'), 1),
    );
    const answer = await admit('services', 0);
    assert.deepEqual(outcomes(answer), ['a timeout', 'b not-initialized']);
    assert.equal(responseOf(answer).allowed, false);
  });

  it('reads an object that workers do not have, and evaluates the review then', async () => {
    const namespaceSelector = { matchLabels: { env: 'prod' } };
    await publish(rejects('a', match('pods', { namespaceSelector })));
    find = ({ name }) => {
      pool.publishWatched(namespaces({ [name]: { env: name === 'shop' ? 'prod' : 'test' } }));
      return Promise.resolve({ state: 'published' });
    };
    assert.equal(responseOf(await admit('pods')).allowed, false);
    assert.equal(responseOf(await admit('pods', 10_000, 'office')).allowed, true);
    assert.deepEqual(
      read,
      ['shop', 'office'].map((name) => ({ ...NAMESPACE, name })),
    );
    await Promise.all(Array.from({ length: 20 }, () => admit('pods')));
    assert.equal(read.length, 2, 'every worker has it');
    pool.renew();
    await Promise.all(Array.from({ length: 20 }, () => admit('pods')));
    assert.equal(read.length, 2, 'and those that came later');
    pool.publishWatched(namespaces({ shop: {} }, true));
    assert.equal(responseOf(await admit('pods')).allowed, true);
  });

  it('is answered by failurePolicies where a namespace is not known in time', async () => {
    const namespaceSelector = { matchLabels: { env: 'prod' } };
    await publish(
      rejects('a', match('pods', { namespaceSelector })),
      entry('b', accept, match('pods', { namespaceSelector, failurePolicy: 'Ignore' })),
    );
    assert.match(responseOf(await admit('pods')).status?.message ?? '', /Cannot find v1\/Namespace named "shop"/);
    find = () => Promise.reject(new Error('connection refused'));
    assert.match(responseOf(await admit('pods')).status?.message ?? '', /not known: connection refused/);
    find = () => Promise.resolve({ state: 'published' });
    assert.match(responseOf(await admit('pods')).status?.message ?? '', /Cannot find/, 'it is gone again');
    find = () => new Promise(() => undefined);
    const { allowed, status } = responseOf(await admit('pods', 400));
    assert.equal(allowed, false);
    assert.match(status?.message ?? '', /in time/);
  });
});

describe('a bucket with a slow policy', () => {
  it('gives the verdicts of the others to a review for which it finds no room in time', async () => {
    const asksRegistry = moduleOf('echo-host-call');
    let asked = Promise.withResolvers<void>();
    const answered = Promise.withResolvers<string>();
    const pool = new WorkerPool({
      size: 2,
      start: { defaultTimeoutSeconds: 60, hasBuckets: true },
      connectCapabilities: () =>
        connectCapabilities(() => {
          asked.resolve();
          return answered.promise;
        }),
      log: () => undefined,
      // All but a moment of the time that reviews have here.
      lastCallMs: 59_900,
    });
    const admit = (requestTimeoutMs = 60_000): Promise<PoolAnswer> => {
      const { promise, resolve } = Promise.withResolvers<PoolAnswer>();
      pool.submit('admit', BUCKET, bodyOf('pods', 'shop', ASKS_REGISTRY), requestTimeoutMs, resolve);
      return promise;
    };
    try {
      await pool.start();
      const slow = entry('slow', asksRegistry, match('pods'), '  hostCapabilities: ["*"]\n');
      const policies = [entry('a', accept, match('pods'), ''), slow];
      await pool.publish(tableChange(policies, { modules: [accept, asksRegistry] }));
      // Until the watchdog has ended it once, which makes it known.
      while (pool.slowOwners === 0) {
        await admit(700);
      }
      asked = Promise.withResolvers();
      // It finds room, whenever both workers run again.
      const holder = admit(600_000);
      await asked.promise;
      const others = await Promise.all([admit(), admit()]);
      assert.equal(pool.held, 1, 'they do not wait for who holds the room');
      assert.deepEqual(others.map(outcomes), [
        ['a verdict', 'slow timeout'],
        ['a verdict', 'slow timeout'],
      ]);
      answered.resolve('{}');
      assert.deepEqual(outcomes(await holder), ['a verdict', 'slow verdict']);
    } finally {
      await pool.stop();
    }
  });
});
