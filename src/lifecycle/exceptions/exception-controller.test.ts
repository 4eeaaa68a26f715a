import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import type { Cluster } from '../../cluster/index.ts';
import type { ExceptionUse } from '../../control/index.ts';
import {
  customResourceDefinition,
  knownKind,
  type KubernetesObject,
  OWN_KINDS,
  POLICY_EXCEPTIONS,
  POLICY_KINDS,
  type PolicyException,
} from '../../resources/index.ts';
import { SharedCaches } from '../../runtime/index.ts';
import { ExceptionReports } from '../replicas/exception-reports.ts';
import type { KnownReplica } from '../replicas/replica-directory.ts';
import { ExceptionController } from './exception-controller.ts';

const log = pino({ level: 'silent' });
const KEY = { namespace: 'shop', name: 'importer' };
const [CLUSTER_POLICIES = assert.fail()] = POLICY_KINDS;
const RULES = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }] as const;
const DAY_MS = 86_400_000;
const at = (ms: number): string => new Date(Date.UTC(2026, 0, 1) + ms).toISOString();
const use = (uid: string, count: number, since = 0): ExceptionUse => ({
  uid,
  since: at(since),
  count,
  last: at(count),
});

describe('ExceptionController', () => {
  let cluster: EmbeddedCluster;
  let replicas: {
    readonly exceptions: ExceptionReports;
    readonly mayReport: (replica: string) => boolean;
    readonly replicas: () => readonly KnownReplica[] | undefined;
  };
  let known: readonly KnownReplica[] | undefined;
  let gone: string | undefined;
  let now = 0;
  /** Writes of statuses. */
  let writes = 0;
  const stops: (() => Promise<unknown>)[] = [];

  beforeEach(async () => {
    cluster = await EmbeddedCluster.open();
    replicas = { exceptions: new ExceptionReports(), mayReport: (name) => name !== gone, replicas: () => known };
    [known, gone] = [[], undefined];
    now = Date.now();
    writes = 0;
    const crds = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
    for (const kind of OWN_KINDS) {
      await cluster.admin.create(crds, customResourceDefinition(kind));
    }
    await cluster.admin.create(knownKind('v1', 'Namespace'), {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: KEY.namespace },
    });
    const policy: KubernetesObject & { readonly spec: object } = {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: CLUSTER_POLICIES.kind,
      metadata: { name: 'pinned' },
      spec: { module: 'builtin:cel', settings: {}, mutating: false, rules: RULES },
    };
    await cluster.admin.create<KubernetesObject & { readonly spec: object }>(CLUSTER_POLICIES, policy);
  });

  afterEach(async () => {
    await Promise.all(stops.splice(0).map((stop) => stop()));
    await cluster[Symbol.asyncDispose]();
  });

  async function lead(usesIntervalMs = 0): Promise<() => Promise<unknown>> {
    const ending = new AbortController();
    const client: Pick<Cluster, 'get' | 'patch'> = {
      get: (...parameters) => cluster.admin.get(...parameters),
      patch: (...parameters) => {
        writes += 1;
        return cluster.admin.patch(...parameters);
      },
    };
    const [caches, policies] = [0, 1].map(() => new SharedCaches({ cluster: cluster.admin, log }));
    assert.ok(caches && policies);
    const controller = new ExceptionController({
      cluster: client,
      caches,
      policies,
      replicas,
      usesIntervalMs,
      now: () => now,
      isGuarded: false,
      events: { event: () => undefined },
      registry: new Registry(),
      log,
    });
    const running = [caches, policies, controller].map((one) => one.start(ending.signal));
    const stop = (): Promise<unknown> => {
      ending.abort();
      return Promise.all(running);
    };
    stops.push(stop);
    return stop;
  }

  async function create(): Promise<string> {
    const exception: PolicyException = {
      apiVersion: 'portcullis.dev/v1',
      kind: 'PolicyException',
      metadata: KEY,
      spec: {
        policies: [{ kind: 'ClusterAdmissionPolicy', name: 'pinned' }],
        objects: { kinds: [{ apiGroup: '', kind: 'Pod' }], names: ['importer'] },
        reason: 'a test',
        expiresAt: `${new Date(Date.now() + 300 * DAY_MS).toISOString().slice(0, -5)}Z`,
      },
    };
    const { metadata } = await cluster.admin.create(POLICY_EXCEPTIONS, exception);
    await until(({ state }) => state === 'Active');
    return metadata.uid ?? assert.fail();
  }

  type Status = NonNullable<PolicyException['status']>;

  async function until(holds: (status: Status) => boolean): Promise<Status> {
    for (;;) {
      const { status } = await cluster.admin.get(POLICY_EXCEPTIONS, KEY);
      if (status !== undefined && holds(status)) {
        return status;
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  it('writes how often an exception was used, and goes on after a change of leaders and of replicas', async () => {
    const stop = await lead();
    const uid = await create();
    replicas.exceptions.receive('a', [use(uid, 3)]);
    const { lastUsed, state } = await until(({ used }) => used === 3);
    assert.deepEqual([lastUsed, state], ['2026-01-01T00:00:00Z', 'Active']);
    await stop();
    await lead();
    // A replica reports everything again to a new leader.
    replicas.exceptions.receive('a', [use(uid, 3)]);
    replicas.exceptions.receive('a', [use(uid, 1, 7)]);
    replicas.exceptions.receive('b', [use(uid, 2)]);
    const { usedBy } = await until(({ used }) => used === 6);
    assert.deepEqual(usedBy?.map(({ name, count }) => `${name} ${count}`).toSorted(), ['a 1', 'a 3', 'b 2']);
    while (replicas.exceptions.of(uid).length > 0) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  });

  it('says that an exception is unused once all replicas that may know a use have said that they know none', async () => {
    const stopped = await lead();
    await create();
    await stopped();
    now += 40 * DAY_MS;
    const replica = { name: 'a', policyServer: 'default', state: 'connected', reports: () => [] } as const;
    known = [replica];
    const stop = await lead();
    const isUse = (reason: string) => (status: Status) =>
      status.conditions?.some((one) => one.reason === reason) === true;
    assert.equal((await until(isUse('ReplicasNotConnected'))).state, 'Active');
    await stop();
    known = [{ ...replica, reportsUses: true }];
    await lead();
    assert.equal((await until(isUse('Unused'))).state, 'Unused');
  });

  it('writes nothing for a report that the status contains, and drops those about no exception', async () => {
    await lead();
    const uid = await create();
    replicas.exceptions.receive('a', [use(uid, 3), use('another', 1)]);
    await until(({ used }) => used === 3);
    const before = writes;
    replicas.exceptions.receive('a', [use(uid, 3)]);
    while (replicas.exceptions.waiting > 0) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert.equal(writes, before);
  });

  it('writes the last uses of a replica that is gone at once', async () => {
    await lead(3_600_000);
    const uid = await create();
    replicas.exceptions.receive('a', [use(uid, 1)]);
    await until(({ used }) => used === 1);
    replicas.exceptions.receive('a', [use(uid, 5)]);
    gone = 'a';
    replicas.exceptions.gone('a');
    assert.deepEqual((await until(({ used }) => used === 5)).usedBy, [{ name: 'a', since: at(0), count: 5 }]);
  });

  it('writes the uses of an exception once in an interval, or with another change', async () => {
    await lead(3_600_000);
    const uid = await create();
    replicas.exceptions.receive('a', [use(uid, 1)]);
    await until(({ used }) => used === 1);
    const before = writes;
    replicas.exceptions.receive('a', [use(uid, 2)]);
    // Has it reconciled for another reason.
    await cluster.admin.patch(POLICY_EXCEPTIONS, KEY, { type: 'merge', body: { metadata: { labels: { a: 'b' } } } });
    for (let count = 3; count < 20; count += 1) {
      replicas.exceptions.receive('a', [use(uid, count)]);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert.equal(writes, before);
    await cluster.admin.delete(CLUSTER_POLICIES, { name: 'pinned' });
    const { used } = await until(({ state }) => state === 'Orphaned');
    assert.equal(used, 19);
  });
});
