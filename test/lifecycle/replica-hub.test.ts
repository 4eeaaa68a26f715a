// The hub of a controller with real control ports, and with very many of them.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { eventually, HubScene, TestCertificates } from '../../src/lifecycle/replicas/testing/hub-scene.ts';
import { REPLICA_TIMING } from '../../src/lifecycle/replicas/replica-timing.ts';
import { reportOf } from '../../src/lifecycle/replicas/testing/test-replica.ts';
import type { AdmissionPolicySpec } from '../../src/resources/index.ts';
import { RequestRefusal } from '../../src/https/errors.ts';
import { ControlEndpoint } from '../../src/control/control-endpoint.ts';
import type { ReportSource } from '../../src/control/report-source.ts';
import type { PrevalidationRequest, PrevalidationResult, RevisionReport } from '../../src/control/index.ts';

/** Reports of a replica that a test changes. */
class Reports implements ReportSource {
  isSynced = false;
  readonly #reports = new Map<string, RevisionReport>();
  readonly #listeners = new Set<(names: readonly string[]) => void>();

  set(...reports: readonly RevisionReport[]): void {
    for (const report of reports) {
      this.#reports.set(report.name, report);
    }
    this.#notify(reports.map(({ name }) => name));
  }

  delete(...names: readonly string[]): void {
    for (const name of names) {
      this.#reports.delete(name);
    }
    this.#notify(names);
  }

  synced(): void {
    this.isSynced = true;
    this.#notify([]);
  }

  reports(): Iterable<RevisionReport> {
    return this.#reports.values();
  }

  report(name: string): RevisionReport | undefined {
    return this.#reports.get(name);
  }

  subscribe(listener: (names: readonly string[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #notify(names: readonly string[]): void {
    for (const listener of this.#listeners) {
      listener(names);
    }
  }
}

let certificates: TestCertificates;
before(async () => {
  certificates = await TestCertificates.create();
});
after(() => certificates[Symbol.asyncDispose]());

describe('ReplicaHub and ControlEndpoint', { timeout: 60_000 }, () => {
  const request: PrevalidationRequest = {
    kind: 'ClusterAdmissionPolicy',
    metadata: { name: 'p' },
    spec: { module: 'builtin:cel', mutating: false, rules: [] } as unknown as AdmissionPolicySpec,
  };
  const { signal } = new AbortController();

  /** A control port, its object, and a leading hub, with the real times. */
  async function withEndpoint(
    body: (parts: {
      scene: HubScene;
      reports: Reports;
      endpoint: ControlEndpoint;
      answer: { of: () => Promise<PrevalidationResult> };
    }) => Promise<void>,
  ): Promise<void> {
    await using scene = await HubScene.open(certificates, { timing: REPLICA_TIMING });
    const reports = new Reports();
    const answer = { of: (): Promise<PrevalidationResult> => Promise.resolve({ ok: true, modules: [] }) };
    const endpoint = new ControlEndpoint({
      host: '127.0.0.1',
      port: 0,
      tls: certificates.control,
      replica: 'r1',
      policyServer: 'default',
      version: '0.0.0',
      reports,
      prevalidate: () => answer.of(),
      readModule: () => Promise.resolve(undefined),
      log: pino({ level: 'silent' }),
    });
    const port = await endpoint.start();
    try {
      await scene.object('r1', { controlAddress: `127.0.0.1:${port}` });
      await scene.lead();
      await body({ scene, reports, endpoint, answer });
    } finally {
      await endpoint.stop();
    }
  }

  const states = (scene: HubScene, policy: string): string | undefined =>
    scene
      .find('r1')
      ?.reports(policy)
      .map(({ revision, state }) => `${revision}:${state}`)
      .join(' ');

  it('agree on the revisions of a replica through all changes', async () => {
    await withEndpoint(async ({ scene, reports }) => {
      reports.set(reportOf('a', 1), {
        ...reportOf('b', 1, 'Failed'),
        reason: 'FetchFailed',
        message: 'é'.repeat(9000),
      });
      reports.synced();
      await scene.see('r1=connected');
      assert.equal(states(scene, 'a'), '1:Serving');
      assert.equal(scene.find('r1')?.reports('b')[0]?.reason, 'FetchFailed');
      reports.set(reportOf('a', 2, 'Loading'));
      reports.set(reportOf('a', 2, 'Staged'));
      await eventually(() => states(scene, 'a') === '1:Serving 2:Staged');
      reports.set(reportOf('a', 2));
      reports.delete('a-1', 'b-1');
      await eventually(() => states(scene, 'a') === '2:Serving' && states(scene, 'b') === '');
    });
  });

  it('agree on ten thousand revisions', async () => {
    await withEndpoint(async ({ scene, reports }) => {
      const many = Array.from({ length: 10_000 }, (_, index) => reportOf(`kw.cap.policy-${index}`, 1));
      reports.set(...many);
      reports.synced();
      await scene.see('r1=connected');
      assert.equal(states(scene, 'kw.cap.policy-9999'), '1:Serving');
      reports.set(...many.map((report) => ({ ...report, state: 'Failed' as const })));
      await eventually(
        () => states(scene, 'kw.cap.policy-9999') === '1:Failed' && states(scene, 'kw.cap.policy-0') === '1:Failed',
      );
      assert.deepEqual(scene.losses(), []);
    });
  });

  it('agree that a replica is not connected before it has read its revisions', async () => {
    await withEndpoint(async ({ scene, reports }) => {
      reports.set(reportOf('a', 1));
      await scene.see('r1=lost');
      reports.synced();
      await scene.see('r1=connected');
      assert.equal(states(scene, 'a'), '1:Serving');
    });
  });

  it('agree on the result of a pre-validation', async () => {
    await withEndpoint(async ({ scene, reports, answer }) => {
      reports.synced();
      await scene.see('r1=connected');
      const modules = [{ name: 'p', module: 'builtin:cel', digest: 'builtin:cel@1.0.0' }];
      answer.of = () => Promise.resolve({ ok: true, modules });
      assert.deepEqual(await scene.hub.prevalidate('default', request, signal), { ok: true, modules });
      const bad = { ok: false, reason: 'InvalidSettings', message: 'no', isTransient: false } as const;
      answer.of = () => Promise.resolve(bad);
      assert.deepEqual(await scene.hub.prevalidate('default', request, signal), bad);
      answer.of = () => Promise.reject(new RequestRefusal(422, 'not so'));
      const refused = await scene.hub.prevalidate('default', request, signal);
      assert.ok(!refused.ok && refused.message.includes('not so'));
      answer.of = () => Promise.reject(new RequestRefusal(503, 'busy'));
      await assert.rejects(scene.hub.prevalidate('default', request, signal), { name: 'Waiting' });
      assert.equal(scene.states()?.join(), 'r1=connected');
    });
  });

  it('agree that a stopped replica is lost', async () => {
    await withEndpoint(async ({ scene, reports, endpoint }) => {
      reports.synced();
      await scene.see('r1=connected');
      await endpoint.stop();
      await scene.see('r1=lost');
    });
  });
});

describe('ReplicaHub', { timeout: 60_000 }, () => {
  it('connects to two hundred replicas', async () => {
    // The handshakes of both sides run in one process.
    await using scene = await HubScene.open(certificates, { timing: { silenceMs: 2_000, connectingMs: 15_000 } });
    const names = Array.from({ length: 200 }, (_, index) => `r${String(index).padStart(3, '0')}`);
    await Promise.all(names.map((name) => scene.replica(name, { reports: [reportOf('a', 1)] })));
    await scene.lead();
    await scene.see(...names.map((name) => `${name}=connected`));
    assert.ok(scene.hub.replicas('default')?.every((replica) => replica.reports('a')[0]?.state === 'Serving'));
    await eventually(() => scene.changes.length > 0);
    assert.deepEqual(scene.changes, [{ policyServer: 'default', policies: 'all' }]);
  });
});
