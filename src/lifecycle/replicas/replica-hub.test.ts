import assert from 'node:assert/strict';
import { copyFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { POLICY_SERVER_REPLICAS } from '../../resources/index.ts';
import type { AdmissionPolicySpec, KubernetesObject } from '../../resources/index.ts';
import { LEASES, Waiting } from '../../runtime/index.ts';
import type { PrevalidationRequest, ReplicaMessage } from '../../control/index.ts';
import { MAX_REPLICAS_OF_SERVER } from './replica-fleet.ts';
import { MAX_REVISIONS } from './replica-reports.ts';
import { MAX_LINE_BYTES } from '../../control/index.ts';
import { eventually, HubScene, NAMESPACE, TEST_TIMING, TestCertificates } from './testing/hub-scene.ts';
import { hello, reportOf, TestReplica } from './testing/test-replica.ts';

/** Tests run together, because they mostly wait. */
const TOGETHER = { timeout: 20_000, concurrency: 4 };

let certificates: TestCertificates;
let others: TestCertificates;
before(async () => {
  [certificates, others] = await Promise.all([TestCertificates.create(), TestCertificates.create()]);
});
after(async () => {
  await certificates[Symbol.asyncDispose]();
  await others[Symbol.asyncDispose]();
});

const states = (scene: HubScene, replica: string, policy: string): string =>
  (scene.find(replica)?.reports(policy) ?? []).map(({ revision, state }) => `${revision}:${state}`).join(' ');

describe('ReplicaHub', TOGETHER, () => {
  it('returns the reports of each replica on a policy', async () => {
    await using scene = await HubScene.open(certificates);
    const one = await scene.replica('r1', { reports: [reportOf('kw.cap.a', 1), reportOf('kw.cap.b', 1)] });
    await scene.replica('r2', { reports: [reportOf('kw.cap.a', 1, 'Loading')] });
    await scene.replica('r3', { policyServer: 'other' });
    assert.equal(scene.hub.replicas('default'), undefined);
    await scene.lead();
    await scene.see('r1=connected', 'r2=connected');
    await eventually(() => scene.states('other')?.join() === 'r3=connected');
    assert.equal(states(scene, 'r1', 'kw.cap.a'), '1:Serving');
    assert.equal(states(scene, 'r2', 'kw.cap.a'), '1:Loading');
    assert.equal(states(scene, 'r2', 'kw.cap.b'), '');
    assert.deepEqual(scene.hub.replicas('none'), []);

    scene.changes.length = 0;
    one.report([reportOf('kw.cap.a', 2, 'Staged'), reportOf('kw.cap.c', 1, 'Loading')], ['kw.cap.b-1']);
    await eventually(() => scene.changes.length > 0);
    assert.deepEqual(scene.changes, [{ policyServer: 'default', policies: ['kw.cap.b', 'kw.cap.a', 'kw.cap.c'] }]);
    assert.equal(states(scene, 'r1', 'kw.cap.a'), '1:Serving 2:Staged');
    assert.equal(states(scene, 'r1', 'kw.cap.b'), '');
  });

  it('does not report unchanged reports', async () => {
    await using scene = await HubScene.open(certificates);
    const replica = await scene.replica('r1', { reports: [reportOf('a', 1)] });
    await scene.lead();
    await scene.see('r1=connected');
    await sleep(1);
    scene.changes.length = 0;
    replica.report([reportOf('a', 1)], ['unknown']);
    replica.report([reportOf('b', 1)]);
    await eventually(() => scene.changes.length > 0);
    assert.deepEqual(scene.changes, [{ policyServer: 'default', policies: ['b'] }]);
  });

  it('does not know replicas before each initial one has reported or is lost', async () => {
    await using scene = await HubScene.open(certificates);
    await scene.replica('r1');
    await scene.replica('r2', { opening: (replica) => [hello(replica)] });
    await scene.lead();
    await eventually(() => scene.lines.some(({ msg }) => msg === 'replica connected'));
    assert.equal(scene.states(), undefined);
    assert.deepEqual(scene.changes, []);
    await scene.see('r1=connected', 'r2=lost');
    await eventually(() => scene.changes.length > 0);
    assert.deepEqual(scene.changes, [{ policyServer: 'default', policies: 'all' }]);
  });

  it('reports that a policy server has no replicas', async () => {
    await using scene = await HubScene.open(certificates);
    await scene.policyServer('default', 1);
    await scene.lead();
    await eventually(() => scene.changes.length > 0);
    assert.deepEqual(scene.changes, [{ policyServer: 'default', policies: 'all' }]);
    assert.deepEqual(scene.states(), []);
  });

  it('joins the parts of a report', async () => {
    await using scene = await HubScene.open(certificates);
    const part = (policy: string, isComplete: boolean): ReplicaMessage => ({
      type: 'report',
      revisions: [reportOf(policy, 1)],
      gone: [],
      isComplete,
    });
    await scene.lead();
    const replica = await scene.replica('r1', { opening: (one) => [hello(one), part('a', false)] });
    await eventually(() => replica.opened > 0 && scene.states()?.[0] === 'r1=connecting');
    await sleep(TEST_TIMING.tickMs);
    assert.equal(states(scene, 'r1', 'a'), '');
    replica.send(part('b', true));
    await scene.see('r1=connected');
    assert.deepEqual(
      ['a', 'b'].map((policy) => states(scene, 'r1', policy)),
      ['1:Serving', '1:Serving'],
    );
  });

  it('loses a silent replica, and finds it again', async () => {
    await using scene = await HubScene.open(certificates);
    const replica = await scene.replica('r1', { reports: [reportOf('a', 1)] });
    await scene.lead();
    await scene.see('r1=connected');
    await sleep(2 * TEST_TIMING.silenceMs);
    assert.deepEqual(scene.losses(), []);
    replica.isSilent = true;
    await scene.see('r1=lost');
    assert.equal(states(scene, 'r1', 'a'), '');
    assert.deepEqual(scene.losses(), ['no message within the limit']);
    replica.isSilent = false;
    await scene.see('r1=connected');
    assert.equal(states(scene, 'r1', 'a'), '1:Serving');
  });

  it('counts a replica that comes and goes only after a delay', async () => {
    await using scene = await HubScene.open(certificates, { timing: { holdMs: 400, holdCapMs: 400 } });
    const replica = await scene.replica('r1', { reports: [reportOf('a', 1)] });
    await scene.lead();
    await scene.see('r1=connected');
    const falter = async (): Promise<void> => {
      replica.isSilent = true;
      await scene.see('r1=lost');
      replica.isSilent = false;
    };
    await falter();
    await scene.see('r1=connected');
    await falter();
    const { opened } = replica;
    await eventually(() => replica.opened > opened);
    const changes = scene.changes.length;
    replica.report([reportOf('a', 2)]);
    // A tenth of the delay.
    await sleep(40);
    assert.deepEqual([scene.states(), states(scene, 'r1', 'a'), scene.changes.length], [['r1=lost'], '', changes]);
    await scene.see('r1=connected');
    assert.equal(states(scene, 'r1', 'a'), '1:Serving 2:Serving');
  });

  it('keeps a replica whose connection breaks, and reports missed changes', async () => {
    await using scene = await HubScene.open(certificates);
    const replica = await scene.replica('r1', { reports: [reportOf('a', 1), reportOf('b', 1), reportOf('c', 1)] });
    await scene.lead();
    await scene.see('r1=connected');
    await sleep(TEST_TIMING.stableMs);
    scene.changes.length = 0;
    replica.disconnect();
    replica.reports = [reportOf('a', 1), reportOf('b', 2)];
    await eventually(() => scene.changes.length > 0);
    assert.deepEqual(scene.changes, [{ policyServer: 'default', policies: ['b', 'c'] }]);
    assert.equal(states(scene, 'r1', 'b'), '2:Serving');
    assert.deepEqual(scene.losses(), []);
    assert.equal(scene.states()?.join(), 'r1=connected');
  });

  it('loses a replica whose process ended, and finds another one of its name', async () => {
    await using scene = await HubScene.open(certificates);
    const replica = await scene.replica('r1', { reports: [reportOf('a', 1)] });
    await scene.lead();
    await scene.see('r1=connected');
    await replica[Symbol.asyncDispose]();
    await scene.see('r1=lost');
    await scene.remove('r1');
    await scene.see();
    await scene.replica('r1', { reports: [reportOf('a', 2)] });
    await scene.see('r1=connected');
    assert.equal(states(scene, 'r1', 'a'), '2:Serving');
  });

  it('finds a replica that restarted at its old address as soon as it writes its object', async () => {
    await using scene = await HubScene.open(certificates, { timing: { retryMs: 60_000, retryCapMs: 60_000 } });
    const replica = await scene.replica('r1');
    await scene.lead();
    await scene.see('r1=connected');
    const { port } = replica;
    await replica[Symbol.asyncDispose]();
    await scene.see('r1=lost');
    await using _ = await TestReplica.start({ name: 'r1', tls: certificates.control }, port);
    const body = { metadata: { labels: { a: 'b' } } };
    await scene.cluster.admin.patch(
      POLICY_SERVER_REPLICAS,
      { namespace: NAMESPACE, name: 'r1' },
      { type: 'merge', body },
    );
    await scene.see('r1=connected');
  });

  it('follows a replica to another address', async () => {
    await using scene = await HubScene.open(certificates);
    const first = await scene.replica('r1');
    const spare = await scene.replica('r2', {
      policyServer: 'spare',
      opening: (replica) => [
        { ...hello(replica), replica: 'r1' } as ReplicaMessage,
        { type: 'report', revisions: [reportOf('a', 7)], gone: [], isComplete: true },
      ],
    });
    await scene.lead();
    await scene.see('r1=connected');
    const body = { spec: { controlAddress: spare.address } };
    await scene.cluster.admin.patch(
      POLICY_SERVER_REPLICAS,
      { namespace: NAMESPACE, name: 'r1' },
      { type: 'merge', body },
    );
    await eventually(() => states(scene, 'r1', 'a') === '7:Serving');
    assert.equal(first.opened, 1);
  });

  it('waits at the start for a replica that changes its address meanwhile', async () => {
    await using scene = await HubScene.open(certificates, { timing: { connectingMs: 2_000 } });
    await scene.replica('r1', { opening: (replica) => [hello(replica)] });
    const body = { spec: { controlAddress: '127.0.0.1:1' } };
    await scene.lead();
    const key = { namespace: NAMESPACE, name: 'r1' };
    await scene.cluster.admin.patch(POLICY_SERVER_REPLICAS, key, { type: 'merge', body });
    await sleep(TEST_TIMING.tickMs);
    assert.equal(scene.states(), undefined);
  });

  it('drops a replica whose object was deleted', async () => {
    await using scene = await HubScene.open(certificates);
    const replica = await scene.replica('r1');
    await scene.lead();
    await scene.see('r1=connected');
    scene.changes.length = 0;
    await scene.remove('r1');
    await scene.see();
    await eventually(() => scene.changes.length > 0);
    assert.deepEqual(scene.changes, [{ policyServer: 'default', policies: 'all' }]);
    await sleep(2 * TEST_TIMING.retryCapMs);
    assert.equal(replica.opened, 1);
  });

  it('knows no replicas without leadership, and all again with it', async () => {
    await using scene = await HubScene.open(certificates);
    const replica = await scene.replica('r1', { reports: [reportOf('a', 1)] });
    await scene.lead();
    await scene.see('r1=connected');
    await scene.resign();
    assert.equal(scene.states(), undefined);
    replica.report([reportOf('a', 1, 'Failed')]);
    await scene.lead();
    await scene.see('r1=connected');
    assert.equal(states(scene, 'r1', 'a'), '1:Failed');
    assert.equal(replica.opened, 2);
  });

  it('uses new certificates for its next connection', async () => {
    await using own = await TestCertificates.create();
    await using scene = await HubScene.open(certificates, { tls: own.control, timing: { connectingMs: 100 } });
    await scene.replica('r1');
    await scene.lead();
    await scene.see('r1=lost');
    for (const file of ['certFile', 'keyFile', 'caFile'] as const) {
      await copyFile(certificates.control[file], own.control[file]);
    }
    await scene.see('r1=connected');
  });

  it('counts replicas for Prometheus', async () => {
    await using scene = await HubScene.open(certificates);
    await scene.replica('r1');
    await scene.object('r2', {});
    await scene.lead();
    await scene.see('r1=connected', 'r2=lost');
    const text = await scene.registry.metrics();
    assert.match(text, /portcullis_replicas\{policy_server="default",state="connected"\} 1/);
    assert.match(text, /portcullis_replicas\{policy_server="default",state="lost"\} 1/);
    assert.match(text, /portcullis_replicas\{policy_server="default",state="connecting"\} 0/);
  });
});

describe('ReplicaHub and a faulty replica', TOGETHER, () => {
  const report = (revisions: readonly unknown[]): string =>
    `${JSON.stringify({ type: 'report', revisions, gone: [], isComplete: false })}\n`;
  const manyReports = (): string =>
    Array.from({ length: MAX_REVISIONS / 1000 + 1 }, (_, part) =>
      report(Array.from({ length: 1000 }, (__, index) => reportOf('a', part * 1000 + index + 1))),
    ).join('');
  const openings: readonly [string, (replica: TestReplica) => readonly (ReplicaMessage | string)[], RegExp][] = [
    ['another name', ({ instance }) => [hello({ name: 'r9', instance })], /expected replica bad .* got r9/],
    [
      'another protocol',
      (replica) => [{ ...hello(replica), protocol: 9 } as ReplicaMessage],
      /version 1 of the control protocol, got 9/,
    ],
    ['no hello', () => [{ type: 'alive' }], /expected hello first, got alive/],
    ['hello twice', (replica) => [hello(replica), hello(replica)], /expected one hello/],
    ['invalid JSON', () => ['hello?\n'], /expected a line of JSON, got "hello\?"/],
    ['a list', () => ['[]\n'], /expected a JSON object, got a list/],
    ['an endless line', () => ['x'.repeat(MAX_LINE_BYTES + 1)], /lines of at most/],
    ['an unknown state', (replica) => [hello(replica), report([{ state: 'Odd' }])], /expected state: one of/],
    ['too many revisions', (replica) => [hello(replica), manyReports()], /expected at most 50000 revisions/],
    ['nothing', () => [], /no message within the limit/],
  ];
  for (const [what, opening, reason] of openings) {
    it(`loses a replica that sends ${what}, and no other`, async () => {
      await using scene = await HubScene.open(certificates, { timing: { silenceMs: 400, connectingMs: 5_000 } });
      const isSilent = what === 'nothing';
      const bad = await scene.replica('bad', { opening });
      bad.isSilent = isSilent;
      await scene.replica('good', { reports: [reportOf('a', 1)] });
      await scene.lead();
      // A silent replica gets time to connect.
      if (isSilent) {
        await eventually(() => scene.losses().length > 0);
      }
      await scene.see('bad=lost', 'good=connected');
      assert.match(scene.losses()[0] ?? '', reason);
      assert.equal(states(scene, 'good', 'a'), '1:Serving');
      assert.deepEqual(scene.find('bad')?.reports('a'), []);
    });
  }

  it('loses a replica that violates the protocol later', async () => {
    await using scene = await HubScene.open(certificates);
    const replica = await scene.replica('r1');
    await scene.lead();
    await scene.see('r1=connected');
    replica.send('{"type":"report"}\n');
    await eventually(() => scene.losses().length > 0);
    assert.match(scene.losses()[0] ?? '', /revisions: a list, got nothing/);
  });

  it('notices that the clock of a replica differs', async () => {
    await using scene = await HubScene.open(certificates);
    const replica = await scene.replica('r1');
    await scene.lead();
    await scene.see('r1=connected');
    const offset = (): number | undefined => scene.find('r1')?.clockOffsetMs;
    const tell = async (aheadMs: number, expected: number): Promise<void> => {
      await eventually(async () => {
        replica.send({ type: 'alive', time: new Date(Date.now() + aheadMs).toISOString() });
        await sleep(5);
        return offset() === expected;
      });
    };
    assert.equal(offset(), undefined, 'that of an older version is not known');
    await tell(0, 0);
    scene.changes.length = 0;
    await tell(61_300, 61_000);
    await eventually(() => scene.changes.length > 0);
    assert.match(await scene.registry.metrics(), /portcullis_replica_clock_offset_seconds\{.*replica="r1"\} 61/);
    await tell(0, 0);
  });

  it('receives uses of exceptions, of replicas that count them', async () => {
    await using scene = await HubScene.open(certificates);
    const replica = await scene.replica('r1');
    await scene.lead();
    await scene.see('r1=connected');
    assert.equal(scene.find('r1')?.reportsUses, false, 'that of an older version does not');
    const use = { uid: 'u', since: '2026-01-01T00:00:00.000Z', count: 2, last: '2026-01-01T00:00:01.000Z' };
    replica.send({ type: 'exceptions', uses: [use] });
    await eventually(() => scene.hub.exceptions.of('u').length > 0);
    assert.deepEqual(scene.hub.exceptions.of('u'), [{ ...use, replica: 'r1' }]);
    assert.equal(scene.find('r1')?.reportsUses, true);
    assert.deepEqual([scene.hub.mayReport('r1'), scene.hub.mayReport('r2')], [true, false]);
    // A replica that stops removes its object, and still reports.
    await scene.remove('r1');
    await scene.see();
    assert.equal(scene.hub.mayReport('r1'), true);
    replica.send({ type: 'exceptions', uses: [{ ...use, count: 3 }] });
    await eventually(() => scene.hub.exceptions.of('u')[0]?.count === 3);
    replica.disconnect();
    await eventually(() => !scene.hub.mayReport('r1'));
    // Another leader may know better by then.
    await scene.resign();
    await scene.lead();
    await eventually(() => scene.hub.exceptions.of('u').length === 0);
    assert.deepEqual(scene.losses(), []);
  });

  it('ignores a message type of a later version', async () => {
    await using scene = await HubScene.open(certificates);
    const replica = await scene.replica('r1');
    await scene.lead();
    await scene.see('r1=connected');
    replica.send('{"type":"weather","sun":true}\n');
    replica.report([reportOf('a', 1)]);
    await eventually(() => states(scene, 'r1', 'a') === '1:Serving');
    assert.deepEqual(scene.losses(), []);
  });

  for (const [what, tls, reason] of [
    ['of another CA', () => others.control, /self-signed|unable to|certificate/i],
    ['for another name', () => certificates.otherName, /altnames/],
  ] as const) {
    it(`does not trust a certificate ${what}`, async () => {
      await using scene = await HubScene.open(certificates, { timing: { connectingMs: 100 } });
      await scene.replica('r1', { tls: tls(), reports: [reportOf('a', 1)] });
      await scene.lead();
      await eventually(() => scene.losses().some((loss) => reason.test(loss)));
      await scene.see('r1=lost');
    });
  }

  it('loses a replica without a valid address', async () => {
    await using scene = await HubScene.open(certificates);
    await scene.object('r1', {});
    await scene.object('r2', { controlAddress: 'https://r2:1/' });
    await scene.lead();
    await scene.see('r1=lost', 'r2=lost');
  });

  it('connects to a bounded number of replicas, which leaves room for those of other PolicyServers', async () => {
    await using scene = await HubScene.open(certificates);
    await scene.lead();
    for (let index = 0; index <= MAX_REPLICAS_OF_SERVER; index += 1) {
      await scene.object(`forged-${String(index).padStart(3, '0')}`, { policyServer: 'tenants' });
    }
    await scene.replica('genuine');
    await scene.see('genuine=connected');
    assert.equal(scene.states('tenants')?.length, MAX_REPLICAS_OF_SERVER);
    const ignored = scene.lines.filter(({ msg }) => msg === 'replica ignored: there are too many');
    assert.deepEqual(
      ignored.map(({ replica }) => replica),
      [`forged-${MAX_REPLICAS_OF_SERVER}`],
    );
    await scene.remove('forged-000');
    await eventually(() => scene.states('tenants')?.at(-1)?.startsWith(`forged-${MAX_REPLICAS_OF_SERVER}=`) === true);
  });

  it('removes a replica whose Lease was released', async () => {
    await using scene = await HubScene.open(certificates);
    const lease = await scene.cluster.admin.create<KubernetesObject>(LEASES, {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'r1', namespace: NAMESPACE },
      spec: { holderIdentity: '', leaseDurationSeconds: 1 },
    });
    const owner = { apiVersion: lease.apiVersion, kind: 'Lease', name: 'r1', uid: lease.metadata.uid ?? '' };
    const replica = await scene.replica('r1', { owner });
    await scene.lead();
    await scene.see('r1=connected');
    await replica[Symbol.asyncDispose]();
    await scene.see();
  });

  it('sends no requests to the API server in normal operation', async () => {
    const calls: string[] = [];
    await using scene = await HubScene.open(certificates, {
      through: (cluster) =>
        new Proxy(cluster, {
          get(target, property) {
            calls.push(String(property));
            const value: unknown = Reflect.get(target, property, target);
            return typeof value === 'function' ? (value.bind(target) as unknown) : value;
          },
        }),
    });
    const replica = await scene.replica('r1');
    await scene.lead();
    await scene.see('r1=connected');
    calls.length = 0;
    for (let revision = 1; revision <= 50; revision += 1) {
      replica.report([reportOf('a', revision)]);
    }
    replica.disconnect();
    await eventually(() => replica.opened === 2);
    await sleep(TEST_TIMING.silenceMs);
    assert.deepEqual(calls, []);
  });
});

describe('ReplicaHub.prevalidate', TOGETHER, () => {
  const request: PrevalidationRequest = {
    kind: 'ClusterAdmissionPolicy',
    metadata: { name: 'p' },
    spec: { module: 'builtin:cel' } as AdmissionPolicySpec,
  };
  const { signal } = new AbortController();
  const waits = (error: unknown): boolean => error instanceof Waiting && error.reason === 'NoReplicaAnswers';
  const good = { ok: true, modules: [{ name: 'p', module: 'builtin:cel', digest: 'builtin:cel@1' }] };

  it('pre-validates policies on replicas in turn', async () => {
    await using scene = await HubScene.open(certificates);
    const replicas = [await scene.replica('r1'), await scene.replica('r2')];
    await scene.lead();
    await scene.see('r1=connected', 'r2=connected');
    const results = await Promise.all(
      Array.from({ length: 10 }, () => scene.hub.prevalidate('default', request, signal)),
    );
    assert.deepEqual(
      results,
      results.map(() => good),
    );
    assert.deepEqual(
      replicas.map(({ prevalidated }) => prevalidated.length),
      [5, 5],
    );
    assert.deepEqual(replicas[0]?.prevalidated[0], request);
  });

  it('keeps connections for further policies', async () => {
    await using scene = await HubScene.open(certificates);
    const replica = await scene.replica('r1');
    await scene.lead();
    await scene.see('r1=connected');
    for (let turn = 0; turn < 5; turn += 1) {
      await scene.hub.prevalidate('default', request, signal);
    }
    // One for the stream, one for all requests.
    assert.equal(replica.connections, 2);
  });

  it('returns the failure of a policy', async () => {
    await using scene = await HubScene.open(certificates);
    const replica = await scene.replica('r1');
    await scene.lead();
    await scene.see('r1=connected');
    const bad = { ok: false, reason: 'InvalidSettings', message: 'no such level', isTransient: false } as const;
    replica.prevalidate = () => ({ body: bad });
    assert.deepEqual(await scene.hub.prevalidate('default', request, signal), bad);
    replica.prevalidate = () => ({ status: 413, body: 'too large' });
    const refused = await scene.hub.prevalidate('default', request, signal);
    assert.ok(!refused.ok && refused.isTransient && refused.message.includes('too large'));
  });

  it('tries another replica when one fails or is busy', async () => {
    await using scene = await HubScene.open(certificates);
    const broken = await scene.replica('r1');
    await scene.replica('r2');
    await scene.lead();
    await scene.see('r1=connected', 'r2=connected');
    for (const answer of [
      undefined,
      { body: '{' },
      { body: { ok: 1 } },
      {
        body: {
          ...good,
          modules: [{ name: 'p', module: 'https://evil.example/p', digest: `sha256:${'0'.repeat(64)}` }],
        },
      },
      { status: 503, body: '' },
      { status: 500, body: '' },
    ]) {
      broken.prevalidate = () => answer;
      broken.prevalidated.length = 0;
      for (let turn = 0; turn < 2; turn += 1) {
        assert.deepEqual(await scene.hub.prevalidate('default', request, signal), good);
        await scene.see('r1=connected', 'r2=connected');
      }
      assert.ok(broken.prevalidated.length > 0);
    }
  });

  it('does not let one policy crash all replicas', async () => {
    await using scene = await HubScene.open(certificates);
    const replicas = await Promise.all(['r1', 'r2', 'r3'].map((name) => scene.replica(name)));
    await scene.lead();
    await scene.see('r1=connected', 'r2=connected', 'r3=connected');
    for (const replica of replicas) {
      replica.prevalidate = () => undefined;
    }
    await assert.rejects(scene.hub.prevalidate('default', request, signal), waits);
    assert.equal(
      replicas.reduce((sum, { prevalidated }) => sum + prevalidated.length, 0),
      2,
    );
  });

  it('waits when no replica is connected', async () => {
    await using scene = await HubScene.open(certificates);
    await assert.rejects(scene.hub.prevalidate('default', request, signal), waits);
    await scene.replica('r1', { policyServer: 'other' });
    await scene.lead();
    await eventually(() => scene.states('other')?.join() === 'r1=connected');
    await assert.rejects(scene.hub.prevalidate('default', request, signal), waits);
  });

  it('is aborted with its signal, and when the replica is lost', async () => {
    await using scene = await HubScene.open(certificates);
    const replica = await scene.replica('r1');
    await scene.lead();
    await scene.see('r1=connected');
    // Reads the request and does not respond.
    let received = Promise.withResolvers<void>();
    replica.prevalidate = () => {
      received.resolve();
      return { body: new Proxy({}, { get: () => undefined }), status: 102 };
    };
    const stop = new AbortController();
    const stopped = scene.hub.prevalidate('default', request, stop.signal);
    await received.promise;
    stop.abort(new Error('enough'));
    await assert.rejects(stopped, /enough/);
    // One for each connection, and one that waits for a connection.
    const holding = new AbortController();
    const held = Array.from({ length: 128 }, () => scene.hub.prevalidate('default', request, holding.signal));
    await eventually(() => replica.prevalidated.length === 129);
    const waiting = new AbortController();
    const waited = scene.hub.prevalidate('default', request, waiting.signal);
    await sleep(20);
    waiting.abort(new Error('enough of waiting'));
    await assert.rejects(waited, /enough of waiting/);
    holding.abort();
    await Promise.allSettled(held);
    received = Promise.withResolvers();
    const lost = assert.rejects(scene.hub.prevalidate('default', request, signal), waits);
    // A busy replica may still have all of the aborted connections, and refuse this one.
    await Promise.race([received.promise, lost]);
    replica.isSilent = true;
    await lost;
  });
});
