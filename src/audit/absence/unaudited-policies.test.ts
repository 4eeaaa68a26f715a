import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { pino } from 'pino';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import { type Cluster, ClusterError } from '../../cluster/index.ts';
import {
  AUDITOR_FIELD_MANAGER,
  type AuditStatus,
  CLUSTER_ADMISSION_POLICIES,
  type ClusterAdmissionPolicy,
  customResourceDefinition,
  knownKind,
  POLICY_KINDS,
  policyId,
} from '../../resources/index.ts';
import { LEASES, SharedCaches } from '../../runtime/index.ts';
import { asJson } from '../../values/index.ts';
import { REPORT_LABELS } from '../access-rules/report-labels.ts';
import { type Coverage, NO_COUNTS } from '../coverage.ts';
import { AuditStatusController } from '../policy-status/audit-status-controller.ts';
import { celSpec, policyObject } from '../testing/sample-policies.ts';
import { SteppedClock } from '../testing/stepped-clock.ts';
import { AuditorPresence } from './auditor-presence.ts';
import { UnauditedPolicies } from './unaudited-policies.ts';
import { unreadAnnotation } from './unread-policies.ts';

const DEFINITIONS = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
const LOG = pino({ level: 'silent' });
const NAMESPACE = 'portcullis';
const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const LEASE = { namespace: NAMESPACE, name: 'portcullis-auditor' };
const PODS = { group: '', version: 'v1', resource: 'pods', kind: 'Pod', namespaced: true };
const COUNTS = { matched: 9, passed: 7, failed: 2, wouldChange: 0, skipped: 0, unjudged: 0 };
const KNOWN: AuditStatus = {
  summary: '2',
  state: 'Complete',
  reason: 'Scanned',
  message: '2 of 9 objects would be rejected',
  observedGeneration: 1,
  counts: COUNTS,
  kinds: [],
};

describe('policies without an auditor', () => {
  let embedded: EmbeddedCluster;
  let admin: Cluster;
  let stop: AbortController;
  let running: Promise<unknown>;
  let clock: SteppedClock;
  /** Whether Leases cannot be listed. */
  let isDown: boolean;
  /** Of statuses, by the controller. */
  let writes: number;

  const policy = async (name = 'p'): Promise<ClusterAdmissionPolicy> =>
    await admin.get(CLUSTER_ADMISSION_POLICIES, { name });
  const audit = async (name = 'p'): Promise<AuditStatus | undefined> => (await policy(name)).status?.audit;
  const create = async (name: string): Promise<unknown> =>
    await admin.create(CLUSTER_ADMISSION_POLICIES, policyObject(name, celSpec('false')));

  beforeEach(async () => {
    embedded = await EmbeddedCluster.open();
    ({ admin } = embedded);
    clock = new SteppedClock();
    writes = 0;
    isDown = false;
    for (const kind of POLICY_KINDS) {
      await admin.create(DEFINITIONS, customResourceDefinition(kind));
    }
    await admin.create(knownKind('v1', 'Namespace'), {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: NAMESPACE },
    });
    await create('p');
  });
  afterEach(async () => {
    await end();
    await embedded[Symbol.asyncDispose]();
  });

  async function end(): Promise<void> {
    stop.abort();
    await clock.pass(SECOND_MS);
    await running;
  }

  function start(isExpected = true): void {
    stop = new AbortController();
    const cluster = {
      patch: async (...args: Parameters<Cluster['patch']>) => {
        writes += 1;
        return await admin.patch(...args);
      },
    } as Pick<Cluster, 'patch'>;
    const caches = new SharedCaches({ cluster: admin, log: LOG });
    const leases = {
      list: async (...args: Parameters<Cluster['list']>) => {
        if (isDown) {
          throw new ClusterError('unreachable', 'cut');
        }
        return await admin.list(...args);
      },
    } as Pick<Cluster, 'list'>;
    const presence = new AuditorPresence({ cluster: leases, namespace: NAMESPACE, isExpected, log: LOG, clock });
    const policies = new UnauditedPolicies({ cluster, caches, presence, log: LOG, clock });
    running = Promise.all([caches, presence, policies].map((part) => part.start(stop.signal)));
  }

  /** The clock of the auditor is years behind. */
  async function renew(transitions: number, annotations: Readonly<Record<string, string>> = {}): Promise<void> {
    const renewTime = new Date(Date.UTC(2001, 0, 1) + transitions * 1_000).toISOString().replace('Z', '000Z');
    const lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { ...LEASE, labels: REPORT_LABELS, annotations },
      spec: { holderIdentity: 'auditor', leaseDurationSeconds: 15, renewTime },
    };
    await admin.patch(LEASES, LEASE, { type: 'apply', body: lease, force: true }, { fieldManager: 'auditor' });
  }

  async function writeKnown(): Promise<void> {
    const body = asJson({
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name: 'p' },
      status: { audit: KNOWN },
    });
    const options = { subresource: 'status', fieldManager: AUDITOR_FIELD_MANAGER };
    await admin.patch(CLUSTER_ADMISSION_POLICIES, { name: 'p' }, { type: 'apply', body, force: true }, options);
  }

  it('say Unknown and since when once its Lease is not renewed, and what was known until then', async () => {
    await writeKnown();
    start();
    for (let minute = 0; minute < 5; minute += 1) {
      await renew(minute);
      await clock.pass(MINUTE_MS);
    }
    assert.deepEqual([await audit(), writes], [KNOWN, 0]);
    await clock.pass(3 * MINUTE_MS);
    const { summary, state, reason, message, since, counts } = (await audit()) ?? {};
    assert.deepEqual(
      [summary, state, reason, since, counts],
      ['Unknown', 'Unknown', 'AuditorStopped', '2030-01-01T00:04:00Z', COUNTS],
    );
    assert.equal(message, 'no auditor works: what was known is out of date (since 2030-01-01T00:04:00Z)');
  });

  it('are written once: neither later nor by the next controller', async () => {
    await writeKnown();
    start();
    await clock.pass(3 * MINUTE_MS);
    const before = await audit();
    await clock.pass(10 * MINUTE_MS);
    await end();
    start();
    await clock.pass(10 * MINUTE_MS);
    assert.deepEqual([await audit(), writes], [before, 1]);
  });

  it('say so where none was ever there, and at once where there shall be none', async () => {
    start();
    await clock.pass(MINUTE_MS);
    assert.equal(await audit(), undefined);
    await clock.pass(2 * MINUTE_MS);
    assert.deepEqual([(await audit())?.reason, (await audit())?.counts], ['NoAuditor', undefined]);
    await end();
    start(false);
    await create('new');
    await clock.pass(SECOND_MS);
    assert.deepEqual(
      [(await audit('new'))?.reason, (await audit('new'))?.since],
      ['NoAuditor', '2030-01-01T00:03:01Z'],
    );
  });

  it('keep nothing of an older generation', async () => {
    await writeKnown();
    start();
    await clock.pass(3 * MINUTE_MS);
    const body = { spec: { mode: 'monitor' } };
    await admin.patch(CLUSTER_ADMISSION_POLICIES, { name: 'p' }, { type: 'merge', body });
    await clock.pass(SECOND_MS);
    const since = '2030-01-01T00:00:00Z';
    const message = `no auditor works: existing objects are not judged (since ${since})`;
    assert.deepEqual(await audit(), { summary: 'Unknown', state: 'Unknown', reason: 'NoAuditor', message, since });
  });

  it('are written slowly', async () => {
    for (let count = 0; count < 200; count += 1) {
      await create(`many-${count}`);
    }
    start(false);
    await clock.pass(2 * SECOND_MS);
    assert.ok(writes <= 65, String(writes));
    await clock.pass(30 * SECOND_MS);
    assert.equal(writes, 201);
  });

  it('name the right that the auditor lacks to read them, while it works', async () => {
    start();
    const kind = { ...CLUSTER_ADMISSION_POLICIES };
    const entry: Coverage = { policy: '*', kind, state: 'Forbidden', reason: 'Forbidden', counts: NO_COUNTS };
    await renew(0, unreadAnnotation([entry]));
    await clock.pass(20 * SECOND_MS);
    await renew(1, unreadAnnotation([entry]));
    await clock.pass(20 * SECOND_MS);
    const { state, reason, kinds } = (await audit()) ?? {};
    assert.deepEqual([state, reason], ['Unknown', 'Forbidden']);
    assert.deepEqual(kinds?.[0]?.missingRule, {
      apiGroups: ['policies.kubewarden.io'],
      resources: ['clusteradmissionpolicies'],
      verbs: ['get', 'list', 'watch'],
    });
    for (let count = 2; count < 6; count += 1) {
      await renew(count, unreadAnnotation([entry]));
      await clock.pass(40 * SECOND_MS);
    }
    assert.equal(writes, 1);
  });

  it('are left alone after an outage of the API server, in which auditors cannot renew either', async () => {
    await writeKnown();
    start();
    await renew(0);
    await clock.pass(MINUTE_MS);
    isDown = true;
    await clock.pass(10 * MINUTE_MS);
    isDown = false;
    await clock.pass(30 * SECOND_MS);
    await renew(1);
    await clock.pass(MINUTE_MS);
    assert.deepEqual([await audit(), writes], [KNOWN, 0]);
  });

  it('are taken over by an auditor that comes back, without a second word of the controller', async () => {
    await writeKnown();
    start();
    await clock.pass(3 * MINUTE_MS);
    assert.equal((await audit())?.state, 'Unknown');
    const caches = new SharedCaches({ cluster: admin, log: LOG });
    const counts = { ...NO_COUNTS, scanned: 9, matched: 9, failed: 2, passed: 7 };
    const scanned: Coverage = {
      policy: 'cap/p',
      kind: PODS,
      state: 'Scanned',
      scannedAt: '2030-01-01T00:03:00Z',
      counts,
    };
    let coverage: readonly Coverage[] = [{ ...scanned, state: 'Pending' }];
    let changed = (): void => undefined;
    const audited = {
      coverage: () => coverage,
      generationOf: () => 1,
      ofPolicy: () => [],
      onCoverage: (listener: (id: string) => void) => {
        changed = () => listener(policyId({ kind: 'ClusterAdmissionPolicy', metadata: { name: 'p' } }));
        return () => undefined;
      },
    };
    const auditor = new AuditStatusController({ cluster: admin, caches, audited, log: LOG, clock });
    running = Promise.all([running, ...[caches, auditor].map((part) => part.start(stop.signal))]);
    await clock.pass(2 * SECOND_MS);
    assert.deepEqual([(await audit())?.state, (await audit())?.since], ['Pending', undefined]);
    coverage = [scanned];
    changed();
    await clock.pass(2 * SECOND_MS);
    await renew(1);
    await clock.pass(10 * SECOND_MS);
    assert.deepEqual([(await audit())?.state, (await audit())?.counts, writes], ['Complete', COUNTS, 1]);
  });
});
