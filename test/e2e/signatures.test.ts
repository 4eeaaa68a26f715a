// A PolicyServer that requires signatures, on a cluster with Portcullis: its pods verify by the ConfigMap that its spec names.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { guest, moduleBytes } from '../server/harness.ts';
import { VALUES } from './install-case.ts';
import { InstallLab, NAMESPACE } from './install-lab.ts';

const POLICIES = '/apis/policies.kubewarden.io/v1';
const CONFIG = 'apiVersion: v1\nallOf:\n  - kind: githubAction\n    owner: kubewarden\n';

interface WithStatus {
  readonly status?: {
    readonly reason?: string;
    readonly conditions?: readonly { readonly type: string; readonly reason: string }[];
  };
}

describe('a PolicyServer that requires signatures', { skip: skipWithoutCluster() }, () => {
  let lab: InstallLab;
  before(async () => {
    lab = await InstallLab.start();
    await lab.install(VALUES);
    await lab.running();
  });
  after(() => (lab as InstallLab | undefined)?.[Symbol.asyncDispose]());

  const policy = (name: string, module: string, settings: object): object => ({
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name },
    spec: {
      module,
      settings,
      policyServer: 'verified',
      mutating: false,
      rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['podtemplates'], operations: ['CREATE'] }],
    },
  });

  it('has no pods without its ConfigMap, and with it pods that run no unsigned module', async () => {
    const server = {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'PolicyServer',
      metadata: { name: 'verified' },
      spec: { image: 'portcullis:0.1.0', replicas: 1, verificationConfig: 'signatures' },
    };
    await lab.apply(server);
    await lab.eventually('the missing ConfigMap to be reported', async () => {
      const { status } = await lab.get<WithStatus>(`${POLICIES}/policyservers/verified`);
      const condition = status?.conditions?.find(({ type }) => type === 'DeploymentReconciled');
      assert.equal(condition?.reason, 'VerificationConfigNotFound', JSON.stringify(status));
    });
    const deployments = await lab.kubectl(['get', 'deployments', '-n', NAMESPACE, '-o', 'name']);
    assert.ok(!deployments.includes('policy-server-verified'), deployments);

    const metadata = { name: 'signatures', namespace: NAMESPACE };
    await lab.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'verification-config': CONFIG } });
    await lab.rolledOut('policy-server-verified');
    const url = lab.web.put('unsigned.wasm', { kind: 'serve', bytes: await moduleBytes(guest('accept')) });
    await lab.apply(
      policy('builtin-of-verified', 'builtin:pod-security', { enforce: 'baseline' }),
      policy('unsigned', url, {}),
    );
    await lab.active('clusteradmissionpolicies', 'builtin-of-verified');
    await lab.eventually('the unsigned module to be refused', async () => {
      const { status } = await lab.get<WithStatus>(`${POLICIES}/clusteradmissionpolicies/unsigned`);
      assert.equal(status?.reason, 'NotVerifiable', JSON.stringify(status));
    });
  });
});
