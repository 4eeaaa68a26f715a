// Policies that are to be enforced by another PolicyServer: requests are reviewed all the time, whichever way it is tried.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { ANNOTATIONS, CLUSTER_ADMISSION_POLICIES, keyOf, type KubernetesObject } from '../../src/resources/index.ts';
import { example, until } from '../server/harness.ts';
import { kind, PODS, PolicyLab, VALIDATING } from './policy-lab.ts';

const ALICE = { username: 'alice', groups: ['system:masters', 'system:authenticated'] };
const CRDS = kind<KubernetesObject & { readonly spec: object }>('apiextensions.k8s.io/v1', 'CustomResourceDefinition');

/** A policy that rejects objects of a resource without the label `owner`. */
function requiring(
  name: string,
  policyServer: string,
  resource = 'pods',
): KubernetesObject & { readonly spec: object } {
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name },
    spec: {
      module: example('required-labels'),
      settings: { labels: ['owner'] },
      rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: [resource], operations: ['CREATE'] }],
      mutating: false,
      policyServer,
    },
  };
}

describe('a policy and another PolicyServer', () => {
  let lab: PolicyLab;
  before(async () => {
    lab = await PolicyLab.start();
    await lab.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    await lab.startOther('other');
  });
  after(async () => {
    await lab[Symbol.asyncDispose]();
  });

  async function isRejected(): Promise<boolean> {
    const spec = { containers: [{ name: 'app', image: 'app' }] };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { generateName: 'pod-', namespace: 'shop' }, spec };
    try {
      await lab.cluster.as(ALICE).create(PODS, pod, { dryRun: true });
      return false;
    } catch (error) {
      assert.match(String(error), /has no label "owner"/);
      return true;
    }
  }

  /** Sends requests until the work is done. @returns how many of them were admitted */
  async function admittedDuring(work: () => Promise<unknown>): Promise<number> {
    let [isDone, admitted] = [false, 0];
    const done = work().finally(() => (isDone = true));
    while (!isDone) {
      admitted += (await isRejected()) ? 0 : 1;
      // A request that no webhook is called for takes no turn of the event loop.
      await nextTurn();
    }
    await done;
    return admitted;
  }

  async function webhooksOf(policyServer: string): Promise<number> {
    const labelSelector = `portcullis.dev/policy-server=${policyServer}`;
    const { items } = await lab.cluster.admin.list(VALIDATING, { labelSelector });
    return items.flatMap(({ webhooks }) => webhooks).length;
  }

  async function remove(...objects: readonly KubernetesObject[]): Promise<void> {
    for (const object of objects) {
      await lab.cluster.admin.delete(CLUSTER_ADMISSION_POLICIES, keyOf(object));
    }
    await until(async () => (await webhooksOf('default')) + (await webhooksOf('other')) === 0);
  }

  /** Has the webhooks of the PolicyServer `default` written, by another policy of it. */
  async function writeWebhooks(name: string): Promise<KubernetesObject> {
    const other = requiring(name, 'default', 'services');
    await lab.create(other);
    await lab.reaches(other, 'Active');
    await lab.quiet();
    return other;
  }

  it('moves without a gap, when it is there under another name before it is deleted', async () => {
    const [before, after] = [requiring('owner', 'default'), requiring('owner-on-other', 'other')];
    await lab.create(before);
    await lab.reaches(before, 'Active');
    const admitted = await admittedDuring(async () => {
      await lab.create(after);
      await lab.sees(CLUSTER_ADMISSION_POLICIES, keyOf(after), (policy) =>
        (policy?.status?.conditions ?? []).some(({ type, status }) => type === 'Enforced' && status === 'True'),
      );
      await lab.cluster.admin.delete(CLUSTER_ADMISSION_POLICIES, keyOf(before));
      await until(async () => (await webhooksOf('default')) === 0);
    });
    assert.deepEqual([admitted, await webhooksOf('other')], [0, 1]);
    await remove(after);
  });

  it('cannot name another one, and stays enforced where another schema lets it', async () => {
    const annotations = { [ANNOTATIONS.progressDeadline]: '1s' };
    const object = { ...requiring('owner', 'default'), metadata: { name: 'owner', annotations } };
    await lab.create(object);
    await lab.reaches(object, 'Active');
    // After its deadline, a rollout waits for no replica.
    await sleep(1_000);
    const name = async (policyServer: string): Promise<void> =>
      await lab.merge(CLUSTER_ADMISSION_POLICIES, keyOf(object), { spec: { policyServer } });
    await assert.rejects(name('other'), /spec\.policyServer: .*the field is immutable/);

    const key = { name: 'clusteradmissionpolicies.policies.kubewarden.io' };
    const ours = await lab.cluster.admin.get(CRDS, key);
    const text = JSON.stringify(ours).replaceAll('self == oldSelf', 'true');
    await lab.cluster.admin.update(CRDS, JSON.parse(text) as typeof ours);
    const admitted = await admittedDuring(async () => {
      await name('nowhere');
      const first = await writeWebhooks('first');
      assert.ok(await isRejected());
      const held = await lab.sees(
        CLUSTER_ADMISSION_POLICIES,
        keyOf(object),
        (now) => now?.status?.reason === 'SchemaReplaced',
      );
      const { servingRevision, readyReplicas, totalReplicas, message, conditions } = held?.status ?? {};
      assert.deepEqual([servingRevision, readyReplicas, totalReplicas], [1, 1, 1]);
      assert.match(
        message ?? '',
        /changed from default to nowhere .*, and PolicyServer default goes on serving the policy/,
      );
      const enforced = conditions?.find(({ type }) => type === 'Enforced');
      assert.deepEqual([enforced?.status, enforced?.message], ['True', 'revision 1 answers requests']);
      // A new leader knows no more than that.
      await lab.stopControllers();
      await lab.startControllers();
      const second = await writeWebhooks('second');
      await name('default');
      await lab.reaches(object, 'Active');
      for (const other of [first, second]) {
        await lab.cluster.admin.delete(CLUSTER_ADMISSION_POLICIES, keyOf(other));
      }
      await lab.quiet();
    });
    assert.equal(admitted, 0);
    await remove(object);
  });
});
