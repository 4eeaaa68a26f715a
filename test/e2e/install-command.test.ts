// The life of an installation by the command, on a real API server with Pods as processes. The tests depend on each other.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { InstallLab } from './install-lab.ts';
import { GUARD } from './install-load.ts';

describe('Portcullis, installed with the command', { skip: skipWithoutCluster() }, () => {
  let lab: InstallLab;
  before(async () => {
    lab = await InstallLab.start();
  });
  after(() => (lab as InstallLab | undefined)?.[Symbol.asyncDispose]());

  /** Runs a command of the product, which must succeed. Returns its outputs. */
  const done = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await lab.command(...args);
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}${stdout}`);
    return `${stdout}${stderr}`;
  };

  it('has no findings on a fresh cluster', async () => {
    assert.match(
      (await lab.command('doctor')).stdout,
      /^error NotInstalled: cluster\n(?:.*\n){3}1 errors, 0 warnings\.\n$/,
    );
    await done('install');
    assert.equal(await done('doctor', '--fail-on', 'warning'), 'No problems found.\n');
  });

  const statusOf = async (path: string): Promise<Record<string, unknown>> =>
    (await lab.get<{ status?: Record<string, unknown> }>(path)).status ?? {};
  const condition = (status: Record<string, unknown>, type: string): string => {
    const conditions = (status['conditions'] ?? []) as readonly Record<'type' | 'status' | 'reason', string>[];
    const found = conditions.find((one) => one.type === type);
    return found === undefined ? 'none' : `${found.status} ${found.reason}`;
  };
  const POLICY = '/apis/policies.kubewarden.io/v1/clusteradmissionpolicies/guard';
  const GOVERNANCE = '/apis/policy.open-cluster-management.io/v1';
  const PARENT = `${GOVERNANCE}/namespaces/default/policies/one`;
  const COPY = `${GOVERNANCE}/namespaces/local-cluster/policies/default.one`;
  const TEMPLATE = `${GOVERNANCE}/namespaces/local-cluster/configurationpolicies/one`;
  const STATUSES = '/apis/portcullis.dev/v1/networkpolicystatuses';
  const governed = async (): Promise<readonly unknown[]> =>
    await Promise.all(
      [PARENT, COPY, TEMPLATE].map(async (path) => {
        const status = await statusOf(path);
        return [status['compliant'], condition(status, 'Ready').split(' ')[0], condition(status, 'Enforced')];
      }),
    );
  const COMPLIANT = Array.from({ length: 3 }, () => ['Compliant', 'True', 'none']);

  it('has statuses after the uninstallation that say that nothing is enforced or known', async () => {
    await lab.apply(
      { ...GUARD, metadata: { name: 'guard' } },
      {
        apiVersion: 'policy.open-cluster-management.io/v1',
        kind: 'Policy',
        metadata: { name: 'one', namespace: 'default' },
        spec: {
          disabled: false,
          remediationAction: 'inform',
          'policy-templates': [
            {
              objectDefinition: {
                apiVersion: 'policy.open-cluster-management.io/v1',
                kind: 'ConfigurationPolicy',
                metadata: { name: 'one' },
                spec: {
                  remediationAction: 'inform',
                  'object-templates': [
                    {
                      complianceType: 'musthave',
                      objectDefinition: {
                        apiVersion: 'policies.kubewarden.io/v1',
                        kind: 'PolicyServer',
                        metadata: { name: 'default' },
                      },
                    },
                  ],
                },
              },
            },
          ],
        },
      },
    );
    await lab.active('clusteradmissionpolicies', 'guard');
    await lab.eventually('the Policy to be evaluated', async () => assert.deepEqual(await governed(), COMPLIANT));
    await lab.eventually('statuses of NetworkPolicies', async () =>
      assert.notEqual((await lab.get<{ items: unknown[] }>(STATUSES)).items.length, 0),
    );
    const networkPolicy = `/apis/networking.k8s.io/v1/namespaces/portcullis/networkpolicies/portcullis-controller`;
    await lab.cluster.expect('PATCH', networkPolicy, {
      metadata: { annotations: { 'portcullis.dev/network-policy-status': 'Accepted=True' } },
    });
    const said = await done('uninstall', '--dry-run');
    assert.match(said, /^5 statuses would say that nothing is enforced any more \(reason Uninstalled\)\.$/m);
    assert.equal((await statusOf(POLICY))['phase'], 'Active');
    const removed = await done('uninstall', '--keep-namespace');
    assert.match(removed, /^5 statuses say that nothing is enforced any more \(reason Uninstalled\)\.$/m);
    assert.match(
      removed,
      /^Kept: 1 clusteradmissionpolicies, 1 policyservers, 2 policies, 1 configurationpolicies\. /m,
    );
    const status = await statusOf(POLICY);
    assert.deepEqual(
      [status['phase'], status['reason'], status['policyStatus'], status['servingRevision'], status['readyReplicas']],
      ['Pending', 'Uninstalled', 'unscheduled', 0, 0],
    );
    for (const type of ['Enforced', 'PolicyActive', 'UpToDate', 'Ready']) {
      assert.equal(condition(status, type), 'False Uninstalled', type);
    }
    const server = await statusOf('/apis/policies.kubewarden.io/v1/policyservers/default');
    assert.deepEqual([server['readyReplicas'], condition(server, 'Ready')], [0, 'False Uninstalled']);
    assert.deepEqual(
      await governed(),
      Array.from({ length: 3 }, () => [undefined, 'False', 'False Uninstalled']),
    );
    assert.deepEqual((await lab.get<{ items: unknown[] }>(STATUSES)).items, []);
  });

  it('writes nothing when it is uninstalled again', async () => {
    const version = async (): Promise<unknown> => (await lab.get(POLICY)).metadata.resourceVersion;
    const before = await version();
    assert.doesNotMatch(await done('uninstall', '--keep-namespace'), /statuses say/);
    assert.equal(await version(), before);
  });

  it('has the same statuses as before when it is installed again', async () => {
    await done('install');
    await lab.active('clusteradmissionpolicies', 'guard');
    await lab.eventually('the policies to be evaluated', async () => {
      const status = await statusOf(POLICY);
      assert.deepEqual(
        ['Enforced', 'PolicyActive', 'UpToDate', 'Ready'].map((type) => condition(status, type).split(' ')[0]),
        ['True', 'True', 'True', 'True'],
      );
      assert.deepEqual(await governed(), COMPLIANT);
      assert.notEqual((await lab.get<{ items: unknown[] }>(STATUSES)).items.length, 0);
    });
    assert.equal(await done('doctor', '--fail-on', 'warning'), 'No problems found.\n');
  });
});
