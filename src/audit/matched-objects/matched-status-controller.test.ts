import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { pino } from 'pino';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import type { Cluster } from '../../cluster/index.ts';
import { customResourceDefinition, knownKind, POLICY_EXCEPTIONS, type PolicyException } from '../../resources/index.ts';
import { SharedCaches } from '../../runtime/index.ts';
import { type Coverage, NO_COUNTS } from '../coverage.ts';
import type { AuditFinding } from '../finding.ts';
import { SteppedClock } from '../testing/stepped-clock.ts';
import { MatchedStatusController } from './matched-status-controller.ts';

const KEY = { namespace: 'shop', name: 'importer' };
const LOG = pino({ level: 'silent' });
const EXCEPTION: PolicyException = {
  apiVersion: 'portcullis.dev/v1',
  kind: 'PolicyException',
  metadata: KEY,
  spec: {
    policies: [{ kind: 'ClusterAdmissionPolicy', name: 'p' }],
    objects: { kinds: [{ apiGroup: '', kind: 'Pod' }], names: ['importer'] },
    reason: 'a test',
    expiresAt: '2027-01-31T12:00:00Z',
  },
};
const FINDING: AuditFinding = {
  policy: 'p',
  policyId: 'kw.cap.p',
  policyUid: 'p',
  mode: 'protect',
  result: 'skip',
  object: { apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'importer' },
  exception: 'shop/importer',
};
const other = (name: string): AuditFinding => ({ ...FINDING, object: { ...FINDING.object, name } });

describe('the writer of matched objects into statuses of exceptions', () => {
  let embedded: EmbeddedCluster;
  let stop: AbortController;
  let running: Promise<unknown>;
  let clock: SteppedClock;
  let writes: number;
  let findings: readonly AuditFinding[];
  let coverage: readonly Coverage[] | undefined;
  let changed: (namespace: string | undefined) => void;
  let covered: (policy: string) => void;
  let isOwn: boolean;
  let shared: () => void;

  beforeEach(async () => {
    embedded = await EmbeddedCluster.open();
    const { admin } = embedded;
    clock = new SteppedClock();
    [writes, findings, coverage, isOwn] = [0, [FINDING], undefined, true];
    await admin.create(
      knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition'),
      customResourceDefinition(POLICY_EXCEPTIONS),
    );
    await admin.create(knownKind('v1', 'Namespace'), {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: KEY.namespace },
    });
    const { metadata } = await admin.create(POLICY_EXCEPTIONS, EXCEPTION);
    const accepted = {
      uid: metadata.uid ?? '',
      generation: 1,
      policies: [{ kind: 'ClusterAdmissionPolicy', name: 'p', uid: 'p' }],
    };
    const options = { subresource: 'status', fieldManager: 'portcullis-controller' };
    const body = { status: { state: 'Active', accepted, used: 3 } };
    await admin.patch(POLICY_EXCEPTIONS, KEY, { type: 'merge', body }, options);
    stop = new AbortController();
    const cluster: Pick<Cluster, 'patch'> = {
      patch: async (...args: Parameters<Cluster['patch']>) => {
        writes += 1;
        return await admin.patch(...args);
      },
    } as Pick<Cluster, 'patch'>;
    const caches = new SharedCaches({ cluster: admin, log: LOG });
    const controller = new MatchedStatusController({
      cluster,
      caches,
      audited: {
        of: (namespace) => (namespace === 'shop' ? findings : []),
        coverage: () => coverage,
        onChange: (listener) => ((changed = listener), () => undefined),
        onCoverage: (listener) => ((covered = listener), () => undefined),
      },
      share: {
        isOwn: () => isOwn,
        mayWrite: () => isOwn,
        onChange: (listener) => ((shared = () => listener('gained')), () => undefined),
      },
      log: LOG,
      clock,
    });
    running = Promise.all([caches.start(stop.signal), controller.start(stop.signal)]);
    await caches.ready;
  });
  afterEach(async () => {
    stop.abort();
    await running;
    await embedded[Symbol.asyncDispose]();
  });

  const status = async (): Promise<NonNullable<PolicyException['status']>> =>
    (await embedded.admin.get(POLICY_EXCEPTIONS, KEY)).status ?? assert.fail();
  const until = async (summary: string): Promise<void> => {
    while ((await status()).matched?.summary !== summary) {
      await clock.pass(1_000);
    }
  };
  const settle = async (): Promise<void> => {
    await clock.pass(15_000);
  };

  const SCANNED: readonly Coverage[] = [{ policy: 'p', state: 'Scanned', counts: NO_COUNTS }];

  it('writes nothing before the objects are judged, then how many there are, and leaves the rest of the status', async () => {
    await settle();
    assert.equal(writes, 0);
    coverage = SCANNED;
    covered('kw.cap.p');
    await until('1');
    assert.deepEqual([(await status()).state, (await status()).used, writes], ['Active', 3, 1]);
  });

  it('writes nothing in namespaces of other auditors, until they are its own', async () => {
    isOwn = false;
    coverage = SCANNED;
    covered('kw.cap.p');
    await settle();
    assert.equal(writes, 0);
    isOwn = true;
    shared();
    await until('1');
  });

  it('follows the findings of its namespace, and writes nothing where nothing changed', async () => {
    coverage = SCANNED;
    covered('kw.cap.p');
    await until('1');
    changed('shop');
    changed(undefined);
    await settle();
    assert.equal(writes, 1);
    findings = [FINDING, other('importer-2')];
    changed('shop');
    await until('2');
    findings = [];
    changed(undefined);
    await until('0');
    assert.equal(writes, 3);
  });

  it('writes again at most every ten seconds', async () => {
    coverage = SCANNED;
    covered('kw.cap.p');
    await until('1');
    const at = clock.date();
    findings = [FINDING, other('importer-2')];
    changed('shop');
    await until('2');
    assert.ok(clock.date() - at >= 9_000, `${clock.date() - at} ms`);
  });

  it('keeps what is known while an auditor that starts knows less', async () => {
    coverage = SCANNED;
    covered('kw.cap.p');
    await until('1');
    [coverage, findings] = [[{ policy: 'p', state: 'Pending', counts: NO_COUNTS }], []];
    covered('kw.cap.p');
    changed('shop');
    await settle();
    assert.equal((await status()).matched?.summary, '1');
  });
});
