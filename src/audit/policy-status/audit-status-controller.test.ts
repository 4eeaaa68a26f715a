import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { pino } from 'pino';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import type { Cluster } from '../../cluster/index.ts';
import {
  type AuditStatus,
  CLUSTER_ADMISSION_POLICIES,
  type ClusterAdmissionPolicy,
  customResourceDefinition,
  knownKind,
  POLICY_KINDS,
  policyId,
} from '../../resources/index.ts';
import { SharedCaches } from '../../runtime/index.ts';
import { type Coverage, NO_COUNTS } from '../coverage.ts';
import type { AuditFinding } from '../finding.ts';
import { celSpec } from '../testing/sample-policies.ts';
import { SteppedClock } from '../testing/stepped-clock.ts';
import { type AuditedPolicies, AuditStatusController } from './audit-status-controller.ts';

const PODS = { group: '', version: 'v1', resource: 'pods', kind: 'Pod', namespaced: true };
/** The clock starts at midnight. */
const EARLY = '2029-12-31T22:00:00Z';
const DEFINITIONS = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
const LOG = pino({ level: 'silent' });
const MINUTE_MS = 60_000;

describe('the writer of audits into statuses of policies', () => {
  let embedded: EmbeddedCluster;
  let admin: Cluster;
  let stop: AbortController;
  let running: Promise<unknown>;
  let clock: SteppedClock;
  let writes: number;
  let known: { generation: number; coverage: readonly Coverage[]; findings: readonly AuditFinding[] } | undefined;
  let changed: () => void;

  const scanned = (failed: number, scannedAt = EARLY): readonly Coverage[] => [
    {
      policy: 'cap/p',
      kind: PODS,
      state: 'Scanned',
      scannedAt,
      counts: { ...NO_COUNTS, scanned: 9, matched: 9, failed, passed: 9 - failed },
    },
  ];
  const PENDING: readonly Coverage[] = [
    { policy: 'cap/p', kind: PODS, state: 'Pending', reason: 'NotScanned', counts: NO_COUNTS },
  ];

  const policy = async (): Promise<ClusterAdmissionPolicy> =>
    await admin.get(CLUSTER_ADMISSION_POLICIES, { name: 'p' });
  const audit = async (): Promise<AuditStatus | undefined> => (await policy()).status?.audit;

  beforeEach(async () => {
    embedded = await EmbeddedCluster.open();
    ({ admin } = embedded);
    clock = new SteppedClock();
    writes = 0;
    known = undefined;
    for (const kind of POLICY_KINDS) {
      await admin.create(DEFINITIONS, customResourceDefinition(kind));
    }
    const created = await admin.create(CLUSTER_ADMISSION_POLICIES, {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name: 'p' },
      spec: celSpec('false'),
    });
    await admin.patch(
      CLUSTER_ADMISSION_POLICIES,
      { name: 'p' },
      { type: 'merge', body: { status: { phase: 'Active', observedGeneration: 1 } } },
      { subresource: 'status', fieldManager: 'portcullis-controller' },
    );
    start(policyId(created));
  });
  afterEach(async () => {
    stop.abort();
    await running;
    await embedded[Symbol.asyncDispose]();
  });

  function start(id: string): void {
    stop = new AbortController();
    const cluster: Pick<Cluster, 'patch'> = {
      patch: async (...args: Parameters<Cluster['patch']>) => {
        writes += 1;
        return await admin.patch(...args);
      },
    } as Pick<Cluster, 'patch'>;
    const caches = new SharedCaches({ cluster: admin, log: LOG });
    const audited: AuditedPolicies = {
      coverage: () => known?.coverage,
      generationOf: () => known?.generation,
      ofPolicy: () => known?.findings ?? [],
      onCoverage: (listener) => {
        changed = () => listener(id);
        return () => undefined;
      },
    };
    const controller = new AuditStatusController({ cluster, caches, audited, log: LOG, clock });
    running = Promise.all([caches.start(stop.signal), controller.start(stop.signal)]);
  }

  async function learn(
    coverage: readonly Coverage[],
    generation = 1,
    findings: readonly AuditFinding[] = [],
  ): Promise<void> {
    known = { generation, coverage, findings };
    changed();
    await clock.pass(2_000);
  }

  it('writes what is known beside the status of the controller, and nothing when nothing changed', async () => {
    await learn(scanned(2));
    const { status } = await policy();
    assert.deepEqual([status?.phase, status?.audit?.summary, status?.audit?.state], ['Active', '2', 'Complete']);
    await learn(scanned(2));
    assert.equal(writes, 1);
  });

  it('keeps what is known over a restart, and forgets it when the policy changes', async () => {
    await learn(scanned(2));
    await learn(PENDING);
    assert.equal((await audit())?.summary, '2');
    await learn(PENDING, 2);
    assert.deepEqual([(await audit())?.state, (await audit())?.counts?.failed], ['Pending', 0]);
    await learn(scanned(1), 2);
    assert.deepEqual([(await audit())?.state, (await audit())?.counts?.failed, writes], ['Complete', 1, 3]);
  });

  it('writes counts at most every ten seconds, and times of scans alone at most once an hour', async () => {
    await learn(scanned(2));
    await learn(scanned(3));
    assert.equal(writes, 1);
    await clock.pass(MINUTE_MS);
    assert.deepEqual([(await audit())?.summary, writes], ['3', 2]);
    await learn(scanned(4));
    await learn(scanned(4, '2029-12-31T22:20:00Z'));
    assert.equal((await audit())?.lastCompleteScan, '2029-12-31T22:20:00Z', 'more than an hour before the clock');
    await learn(scanned(4, '2029-12-31T23:59:00Z'));
    assert.equal((await audit())?.lastCompleteScan, '2029-12-31T23:59:00Z');
    await learn(scanned(4, '2030-01-01T00:01:00Z'));
    assert.deepEqual([(await audit())?.lastCompleteScan, writes], ['2029-12-31T23:59:00Z', 5]);
  });

  it('restores what somebody has removed', async () => {
    await learn(scanned(2));
    await clock.pass(MINUTE_MS);
    const body = { status: { audit: null } };
    await admin.patch(CLUSTER_ADMISSION_POLICIES, { name: 'p' }, { type: 'merge', body }, { subresource: 'status' });
    await clock.pass(2_000);
    assert.equal((await audit())?.summary, '2');
  });

  it('writes nothing about policies that are not known', async () => {
    changed();
    await clock.pass(2_000);
    assert.deepEqual([await audit(), writes], [undefined, 0]);
  });
});
