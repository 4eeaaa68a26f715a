// Policies in monitor mode: what API servers' requests leave in the log, the status and the events of a policy.
import assert from 'node:assert/strict';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import {
  ANNOTATIONS,
  keyOf,
  type KubernetesObject,
  type MonitoredStatus,
  type ObjectKey,
  policyId,
} from '../../src/resources/index.ts';
import { example, review, TestFolder, type TestServer, until } from '../server/harness.ts';
import { startReplica } from '../server/replica-lab.ts';
import { kind, PODS, type Policy, PolicyLab } from './policy-lab.ts';

const POLICIES = 'policies.kubewarden.io/v1';
const RULES = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];
const ALICE = { username: 'alice', groups: ['system:masters', 'system:authenticated'] };
/** Longer than any test: only the first count is written for its own sake. */
const HOUR_MS = 3_600_000;
const LABELS = { module: example('required-labels'), settings: { labels: ['owner'] } };

function policy(
  metadata: KubernetesObject['metadata'],
  rest: Readonly<Record<string, unknown>> = {},
): KubernetesObject {
  return {
    apiVersion: POLICIES,
    kind: metadata.namespace === undefined ? 'ClusterAdmissionPolicy' : 'AdmissionPolicy',
    metadata,
    spec: { ...LABELS, rules: RULES, mutating: false, mode: 'monitor', ...rest },
  };
}

function group(metadata: ObjectKey): KubernetesObject {
  const spec = { expression: 'member()', message: 'the group says no', policies: { member: LABELS }, rules: RULES };
  return {
    apiVersion: POLICIES,
    kind: metadata.namespace === undefined ? 'ClusterAdmissionPolicyGroup' : 'AdmissionPolicyGroup',
    metadata,
    spec: { ...spec, mode: 'monitor' },
  };
}

describe('a policy in monitor mode', () => {
  let lab: PolicyLab;
  let pods = 0;
  before(async () => {
    lab = await PolicyLab.start({ monitoredReportMs: 0, monitoredIntervalMs: HOUR_MS });
    for (const name of ['shop', 'bank']) {
      await lab.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
  });
  after(async () => {
    await lab[Symbol.asyncDispose]();
  });

  /** Creates a pod as alice. Returns its name. */
  async function createPod(namespace: string, dryRun = false): Promise<string> {
    const name = `pod-${(pods += 1)}`;
    const spec = { containers: [{ name: 'app', image: 'app' }] };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace }, spec };
    await lab.cluster.as(ALICE).create(PODS, pod, { dryRun });
    return name;
  }

  function typeOf(object: KubernetesObject): ReturnType<typeof kind<Policy>> {
    return kind<Policy>(object.apiVersion, object.kind);
  }

  async function monitored(
    object: KubernetesObject,
    isSo: (monitored: MonitoredStatus | undefined) => boolean,
  ): Promise<MonitoredStatus | undefined> {
    const found = await lab.sees(typeOf(object), keyOf(object), (now) => isSo(now?.status?.monitored));
    return found?.status?.monitored;
  }

  /** A folder with the certificates of the lab, for another replica. */
  async function folderOfReplica(): Promise<TestFolder> {
    const folder = await TestFolder.create();
    await cp(join(lab.server.folder.path, 'pki'), join(folder.path, 'pki'), { recursive: true });
    return folder;
  }

  async function remove(object: KubernetesObject): Promise<void> {
    await lab.cluster.admin.delete(typeOf(object), keyOf(object));
    await until(() => lab.server.server.policy(policyId(object)) === undefined);
  }

  for (const object of [
    policy({ name: 'all' }),
    policy({ name: 'alone', annotations: { [ANNOTATIONS.webhook]: 'Own' } }),
    policy({ namespace: 'shop', name: 'one' }),
    group({ name: 'all' }),
    group({ namespace: 'shop', name: 'one' }),
  ]) {
    const { namespace, name = '' } = object.metadata;
    it(`says what it would have rejected: ${object.kind} ${name}`, async () => {
      await lab.create(object);
      await lab.reaches(object, 'Active');
      const begun = await monitored(object, (now) => now !== undefined);
      assert.deepEqual([begun?.revision, begun?.count, begun?.last], [1, 0, []]);

      await createPod('shop', true);
      await createPod('bank', namespace === undefined);
      const pod = await createPod('shop');
      const { last = [], count, replicas = [] } = (await monitored(object, (now) => now?.count !== 0)) ?? {};
      assert.ok(last[0]);
      const { time, message, ...request } = last[0];
      assert.deepEqual(request, { operation: 'CREATE', kind: 'Pod', namespace: 'shop', name: pod, user: 'alice' });
      assert.match(message ?? '', name === 'alone' ? /has no label "owner"/ : /has no label "owner"|the group says no/);
      assert.ok(!Number.isNaN(Date.parse(time)));
      assert.deepEqual(
        [count, last.length, replicas.map((one) => [one.name, one.count])],
        [1, 1, [['replica-0', 1]]],
        'dry runs, and requests of other namespaces, do not count',
      );

      const lines = lab.server.log.filter((line) => line['policy'] === policyId(object) && line['name'] === pod);
      assert.deepEqual(
        lines.map((line) => [line['msg'], line['allowed'], line['user'], line['namespace']]),
        [['policy evaluation (monitor mode)', false, 'alice', 'shop']],
      );
      await until(async () => (await lab.events(name)).includes('WouldReject 1'));
      await remove(object);
    });
  }

  it('writes the count once an interval, whatever happens meanwhile, and with any other change of the status', async () => {
    const object = policy({ name: 'busy' });
    await lab.create(object);
    await lab.reaches(object, 'Active');
    await createPod('shop');
    const first = await monitored(object, (now) => now?.count === 1);
    const written = await lab.quiet();
    await using folder = await folderOfReplica();
    await using other = await startReplica({
      cluster: lab.cluster.admin,
      name: 'replica-1',
      folder,
      monitoredReportMs: 0,
      workers: 1,
    });
    await lab.sees(typeOf(object), keyOf(object), (now) => now?.status?.readyReplicas === 2);
    await until(() => other.server.policy(policyId(object))?.phase === 'Active');
    const beforeLoad = await lab.quiet();
    assert.ok(beforeLoad > written);
    const requests = 50;
    for (let index = 0; index < requests; index++) {
      await createPod('shop');
      await other.review('validating.ignore.equivalent.cluster.v1', review(), { route: 'admit' });
    }
    await until(() => lab.reported(policyId(object)) === 1 + 2 * requests);
    await lab.reconciles(policyId(object));
    assert.equal(await lab.quiet(), beforeLoad, 'no write for a hundred rejections on two replicas');
    const still = await monitored(object, () => true);
    assert.deepEqual([still?.count, still?.lastReported], [1, first?.lastReported]);

    await lab.merge(typeOf(object), keyOf(object), { metadata: { annotations: { [ANNOTATIONS.pin]: '1' } } });
    const pinned = await monitored(object, (now) => now?.count !== 1);
    assert.equal(pinned?.count, 1 + 2 * requests);
    assert.deepEqual(pinned.last.length, 10);
    assert.ok(pinned.last.every(({ time }, index) => index === 0 || time <= (pinned.last[index - 1]?.time ?? '')));
    await until(async () => (await lab.events('busy')).includes('Pinned 1'));
    assert.ok((await lab.events('busy')).includes('WouldReject 1'), 'one event an interval');
    await remove(object);
  });

  it('goes on counting when the replica, or the controller, is another process', async () => {
    const object = policy({ name: 'durable' });
    await lab.create(object);
    await lab.reaches(object, 'Active');
    await using folder = await folderOfReplica();
    // Only the first rejection is reported by itself.
    const start = (): Promise<TestServer> =>
      startReplica({ cluster: lab.cluster.admin, name: 'replica-2', folder, workers: 1, monitoredReportMs: HOUR_MS });
    const reject = async (replica: TestServer): Promise<void> => {
      await until(() => replica.server.policy(policyId(object))?.phase === 'Active');
      await replica.review('validating.ignore.equivalent.cluster.v1', review(), { route: 'admit' });
    };
    {
      await using first = await start();
      await reject(first);
      await monitored(object, (now) => now?.count === 1);
      await reject(first);
    }
    // The status is written because the replica is gone, and contains what it reported last.
    await monitored(object, (now) => now?.count === 2);
    await using second = await start();
    await reject(second);
    await lab.stopControllers();
    await reject(second);
    await lab.startControllers(0);
    const { last, replicas } = (await monitored(object, (now) => now?.count === 4)) ?? {};
    assert.deepEqual([last?.length, replicas?.map(({ name, count }) => [name, count])], [4, [['replica-2', 2]]]);
    await remove(object);
  });

  it('begins anew with each revision, and says nothing any more in protect mode', async () => {
    const object = policy({ name: 'stricter' });
    const change = (spec: object): Promise<void> => lab.merge(typeOf(object), keyOf(object), { spec });
    await lab.create(object);
    await lab.reaches(object, 'Active');
    await createPod('shop');
    await monitored(object, (now) => now?.count === 1);
    await change({ settings: { labels: ['team'] } });
    const second = await monitored(object, (now) => now?.revision === 2);
    assert.deepEqual([second?.count, second?.last, second?.replicas], [0, [], []]);
    await createPod('shop');
    const { last = [] } = (await monitored(object, (now) => now?.count === 1)) ?? {};
    assert.match(last[0]?.message ?? '', /has no label "team"/);
    await change({ mode: 'protect' });
    await lab.reaches(object, 'Active');
    await monitored(object, (now) => now === undefined);
    await remove(object);
  });
});
