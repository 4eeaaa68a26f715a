// The disaster on a real API server, with Pods as processes: all Pods of a PolicyServer and the leading controller are deleted with
// their disks while the source of a module is down. The certificates are those that the controller issues.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { AdmissionPolicyStatus } from '../../src/resources/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { example, moduleBytes } from '../server/harness.ts';
import { leadingPod, podNames, VALUES } from './install-case.ts';
import { InstallLab, NAMESPACE, POLICY_SERVER } from './install-lab.ts';

const POLICY = '/apis/policies.kubewarden.io/v1/clusteradmissionpolicies/labelled';
const CONFIG_MAPS = '/api/v1/namespaces/labelled/configmaps';
const UNLABELLED = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'asked-' } };

describe('copies of modules, installed', { skip: skipWithoutCluster() }, () => {
  let lab: InstallLab;
  before(async () => {
    lab = await InstallLab.start();
    await lab.install(VALUES);
    await lab.running();
  });
  after(() => (lab as InstallLab | undefined)?.[Symbol.asyncDispose]());

  it('judge requests when all policy servers and the leader are lost, and the source is down', async () => {
    const bytes = await moduleBytes(example('required-labels'));
    await lab.cluster.createNamespace('labelled', { scenario: 'labelled' });
    await lab.apply({
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name: 'labelled' },
      spec: {
        module: lab.web.put('labelled.wasm', { kind: 'serve', bytes }),
        settings: { labels: ['owner'] },
        mutating: false,
        rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
        namespaceSelector: { matchLabels: { scenario: 'labelled' } },
      },
    });
    await lab.active('clusteradmissionpolicies', 'labelled');
    await lab.eventually('copies on both controllers', async () => {
      const { status } = await lab.get<{ readonly status: AdmissionPolicyStatus }>(POLICY);
      assert.deepEqual(status.copies, { servers: 2, controllers: 2, nodes: 1, durable: false });
      assert.equal(status.conditions?.find(({ type }) => type === 'ModulesKept')?.reason, 'OneNode');
    });
    assert.match((await lab.command('doctor', '--fail-on', 'warning')).stdout, /^((?!ModulesNotKept).)*$/s);

    lab.web.isDown = true;
    const leader = (await leadingPod(lab)).name;
    const lost = [...(await podNames(lab, POLICY_SERVER)), leader];
    await lab.kubectl(['delete', 'pods', '-n', NAMESPACE, '--force', '--grace-period=0', ...lost]);
    await lab.running();
    assert.deepEqual(
      (await podNames(lab, POLICY_SERVER)).filter((name) => lost.includes(name)),
      [],
    );
    await lab.eventually('requests to be judged', async () => {
      assert.match(await lab.answer(CONFIG_MAPS, UNLABELLED), /has no label "owner"/);
    });
    // The new controller has a copy again, from the policy servers that got theirs from the other controller.
    await lab.eventually('all copies', async () => {
      const { status } = await lab.get<{ readonly status: AdmissionPolicyStatus }>(POLICY);
      assert.deepEqual([status.phase, status.copies?.servers, status.copies?.controllers], ['Active', 2, 2]);
    });
  });
});
