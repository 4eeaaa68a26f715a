import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { MAX_DEVIATIONS, POLICY_SERVER_LABEL, POLICY_SERVER_REPLICAS } from '../../resources/index.ts';
import type { PolicyServerReplica } from '../../resources/index.ts';
import { LEASES, ObjectCache } from '../../runtime/index.ts';
import { createLog } from '../../log/index.ts';
import { REPLICA_RULES } from '../../control/access-rules/index.ts';
import { ReplicaReporter } from './replica-report.ts';
import type { ReplicaReporterOptions } from './replica-report.ts';
import { MAX_DEVIATION_MESSAGE, replicaStatus, setHash } from './replica-status.ts';
import { NAMESPACE, ReplicaCluster } from './testing/replica-cluster.ts';
import { reportOf } from '../../control/testing/index.ts';
import { TestReplicaState } from './testing/test-replica-state.ts';

const log = createLog({ level: 'silent' });
const served = (policy: string, revision = 1) => ({ policy, revision, digest: `${policy}-${revision}` });

describe('the report of a replica', () => {
  let scene: ReplicaCluster;
  let state: TestReplicaState;
  let stopAll: AbortController;
  let running: Promise<unknown>[];

  beforeEach(async () => {
    scene = await ReplicaCluster.open();
    state = new TestReplicaState();
    stopAll = new AbortController();
    running = [];
  });
  afterEach(async () => {
    stopAll.abort();
    await Promise.all(running);
    await scene[Symbol.asyncDispose]();
  });

  /** Starts a replica's report; returns the function that stops it. */
  function start(options: Partial<ReplicaReporterOptions> = {}): () => Promise<void> {
    const { cluster } = scene;
    const replicas = new ObjectCache<PolicyServerReplica>({
      cluster,
      type: POLICY_SERVER_REPLICAS,
      namespace: NAMESPACE,
      log,
    });
    const reporter = new ReplicaReporter({
      cluster,
      namespace: NAMESPACE,
      policyServer: 'default',
      name: 'a',
      controlAddress: '10.0.0.1:8444',
      version: '1.2.3',
      state,
      replicas,
      reportIntervalMs: 60,
      leaseRenewMs: 40,
      log,
      ...options,
    });
    const stopping = new AbortController();
    const following = replicas.start(stopAll.signal);
    const reporting = reporter.start(AbortSignal.any([stopping.signal, stopAll.signal]));
    running.push(following, reporting);
    return async () => {
      stopping.abort();
      await reporting;
    };
  }

  it('contains identity and serving revisions, and is owned by its pod', async () => {
    state.servedRevisions = [served('p'), served('q', 2)];
    state.set(reportOf('p'), reportOf('q'), reportOf('r', { state: 'Staged' }), reportOf('s', { state: 'Failed' }));
    state.deviating = [{ policy: 's', revision: 1, state: 'Failed', reason: 'FetchFailed', message: 'no route' }];
    const stop = start({ pod: { name: 'pod-a', uid: 'uid-of-pod' } });
    const { metadata, spec, status } = await scene.until('a', (replica) => replica.status !== undefined);
    assert.deepEqual(spec, {
      policyServer: 'default',
      podName: 'pod-a',
      controlAddress: '10.0.0.1:8444',
      version: '1.2.3',
    });
    assert.deepEqual(metadata.labels, { [POLICY_SERVER_LABEL]: 'default' });
    assert.deepEqual(metadata.ownerReferences, [{ apiVersion: 'v1', kind: 'Pod', name: 'pod-a', uid: 'uid-of-pod' }]);
    const { startedAt, lastReported, conditions, ...rest } = status ?? {};
    assert.deepEqual(rest, {
      setHash: setHash(state.servedRevisions),
      servingRevisions: 2,
      stagedRevisions: 1,
      failedRevisions: 1,
      deviations: [{ policy: 's', revision: 1, state: 'Failed', reason: 'FetchFailed', message: 'no route' }],
      deviationCount: 1,
      observedGeneration: 1,
    });
    assert.ok(startedAt !== undefined && lastReported !== undefined);
    assert.deepEqual(
      conditions?.map(({ type, status: is, reason }) => [type, is, reason]),
      [['Ready', 'False', 'Deviating']],
    );
    assert.equal(await scene.lease('a'), undefined);
    await stop();
    assert.equal(await scene.replica('a'), undefined);
  });

  it('has texts that control no terminal', async () => {
    state.set(reportOf('s', { state: 'Failed' }));
    const message = 'evil\u001B[2J\u001B]8;;a:b\u009B2J\u202Etxt';
    state.deviating = [{ policy: 's', revision: 1, state: 'Failed', reason: 'FetchFailed', message }];
    const stop = start();
    const { status } = await scene.until('a', (replica) => replica.status !== undefined);
    assert.equal(status?.deviations?.[0]?.message, 'evil\u{fffd}[2J\u{fffd}]8;;a:b\u{fffd}2J\u{fffd}txt');
    await stop();
  });

  it('is owned by a Lease without a pod, and both are removed in the end', async () => {
    const stop = start();
    const replica = await scene.until('a', ({ status }) => status !== undefined);
    const lease = await scene.lease('a');
    assert.deepEqual(replica.metadata.ownerReferences, [
      { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', name: 'a', uid: lease?.metadata.uid },
    ]);
    assert.deepEqual([lease?.spec?.holderIdentity, lease?.spec?.leaseDurationSeconds], ['a', 15]);
    while ((await scene.lease('a'))?.spec?.renewTime === lease?.spec?.renewTime) {
      await sleep(5);
    }
    await stop();
    assert.deepEqual([await scene.replica('a'), await scene.lease('a')], [undefined, undefined]);
  });

  it('is not written without a change', async () => {
    start();
    await scene.until('a', ({ status }) => status !== undefined);
    await sleep(100);
    const before = scene.writes.length;
    for (let i = 0; i < 20; i += 1) {
      state.notify(['p-1']);
      await sleep(10);
    }
    assert.deepEqual([before, scene.writes.length], [2, 2]);
    assert.deepEqual(scene.requests.filter((request) => request === 'get policyserverreplicas').length, 1);
  });

  it('is written once for many changes, with the last state', async () => {
    const reportIntervalMs = 150;
    start({ reportIntervalMs });
    await scene.until('a', ({ status }) => status !== undefined);
    const before = scene.writes.length;
    const began = performance.now();
    for (let i = 1; i <= 50; i += 1) {
      state.servedRevisions = [served('p', i)];
      state.notify(['p-1']);
      await sleep(2);
    }
    await scene.until('a', ({ status }) => status?.setHash === setHash([served('p', 50)]));
    const intervals = Math.ceil((performance.now() - began) / reportIntervalMs);
    assert.ok(scene.writes.length - before <= 1 + intervals, `${scene.writes.length - before} writes`);
  });

  it('is recreated when it or its Lease is deleted', async () => {
    start();
    const first = await scene.until('a', ({ status }) => status !== undefined);
    await scene.admin.delete(POLICY_SERVER_REPLICAS, { namespace: NAMESPACE, name: 'a' });
    const second = await scene.until(
      'a',
      ({ metadata, status }) => metadata.uid !== first.metadata.uid && status !== undefined,
    );
    await scene.admin.delete(LEASES, { namespace: NAMESPACE, name: 'a' });
    const owner = ({ metadata }: PolicyServerReplica): string | undefined => metadata.ownerReferences?.[0]?.uid;
    const third = await scene.until('a', (replica) => owner(replica) !== owner(second) && replica.status !== undefined);
    assert.equal(owner(third), (await scene.lease('a'))?.metadata.uid);
  });

  it('is restored when another client changes it, and replaces that of a former process with the same name', async () => {
    await scene.admin.create(POLICY_SERVER_REPLICAS, {
      apiVersion: 'portcullis.dev/v1',
      kind: 'PolicyServerReplica',
      metadata: { name: 'a', namespace: NAMESPACE, labels: { kept: 'yes' } },
      spec: { policyServer: 'old', controlAddress: 'old:1' },
    });
    start();
    const taken = await scene.until(
      'a',
      ({ spec, status }) => spec.controlAddress === '10.0.0.1:8444' && status !== undefined,
    );
    assert.deepEqual(taken.metadata.labels, { kept: 'yes', [POLICY_SERVER_LABEL]: 'default' });
    await scene.admin.patch(
      POLICY_SERVER_REPLICAS,
      { namespace: NAMESPACE, name: 'a' },
      { type: 'merge', body: { status: { servingRevisions: 99 } } },
      { subresource: 'status' },
    );
    await scene.until('a', ({ status }) => status?.servingRevisions === 0);
  });

  it('is written when the API server is available again', async () => {
    scene.isDown = true;
    start();
    while (scene.requests.length < 3) {
      await sleep(5);
    }
    assert.equal(await scene.replica('a'), undefined);
    scene.isDown = false;
    await scene.until('a', ({ status }) => status !== undefined);
  });

  it('does not delay a stopping replica when the API server is down', async () => {
    const stop = start();
    await scene.until('a', ({ status }) => status !== undefined);
    scene.isDown = true;
    await stop();
    assert.notEqual(await scene.replica('a'), undefined);
  });

  it('needs exactly the rights of REPLICA_RULES', async () => {
    start();
    await scene.until('a', ({ status }) => status !== undefined);
    const body = { spec: { version: 'another' } };
    await scene.admin.patch(POLICY_SERVER_REPLICAS, { namespace: NAMESPACE, name: 'a' }, { type: 'merge', body });
    await scene.until('a', ({ spec }) => spec.version === '1.2.3');
    while (!scene.requests.includes('update leases')) {
      await sleep(5);
    }
    stopAll.abort();
    await Promise.all(running);
    const used = new Set(scene.requests);
    const granted = REPLICA_RULES.flatMap(({ resources, verbs }) =>
      resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
    );
    // Revisions are the feed's, and controllers are peers.
    const own = granted.filter((right) => !/ (policyrevisions|controllerreplicas)$/.test(right));
    assert.deepEqual(
      [...used].filter((right) => !granted.includes(right)),
      [],
    );
    assert.deepEqual(
      own.filter((right) => !used.has(right)),
      [],
    );
  });
});

describe('the status of a replica', () => {
  const facts = { generation: 1, startedAt: 'x', conditions: undefined, now: 0 };

  it('has equal hashes exactly for equal sets', () => {
    const hash = setHash([served('a'), served('b')]);
    assert.equal(setHash([served('b'), served('a')]), hash);
    for (const other of [
      [],
      [served('a')],
      [served('a'), served('b', 2)],
      [served('a'), { ...served('b'), digest: 'x' }],
    ]) {
      assert.notEqual(setHash(other), hash);
    }
  });

  it('lists the first of many deviations, in order, and counts all', () => {
    const state = new TestReplicaState();
    state.deviating = Array.from({ length: 150 }, (_, i) => ({
      policy: `p${String(149 - i).padStart(3, '0')}`,
      revision: 1,
      state: 'Failed' as const,
      reason: 'FetchFailed',
      message: 'x'.repeat(5000),
    }));
    const status = replicaStatus(state, facts);
    assert.equal(status.deviationCount, 150);
    assert.equal(status.deviations?.length, MAX_DEVIATIONS);
    assert.equal(status.deviations[0]?.policy, 'p000');
    assert.equal(status.deviations[0]?.message?.length, MAX_DEVIATION_MESSAGE);
    assert.deepEqual(replicaStatus(state, facts), status);
  });

  it('is Ready when the cluster has been read and nothing deviates', () => {
    const state = new TestReplicaState({ isSynced: false });
    const reason = (): unknown => replicaStatus(state, facts).conditions?.map((one) => [one.status, one.reason]);
    assert.deepEqual(reason(), [['False', 'Starting']]);
    state.isSynced = true;
    assert.deepEqual(reason(), [['True', 'UpToDate']]);
  });
});
