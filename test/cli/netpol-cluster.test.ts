// `portcullis netpol` in a cluster: its providers, their settings, and its addresses.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { EmbeddedCluster, Gateway, kubeconfigText } from '../../src/apiserver/index.ts';
import { agentPod } from '../../src/network-policy/testing/sample-cluster.ts';
import {
  customResourceDefinition,
  type JsonObject,
  knownKind,
  NETWORK_POLICY_PROVIDERS,
} from '../../src/resources/index.ts';
import { createLoopbackCertificate } from '../cluster/loopback-certificate.ts';
import { portcullis } from './command.ts';

const TOKENS = { admin: 'admin-token', tenant: 'tenant-token' } as const;

/** Older than the time that the agent of a new node has to start. */
const CLUSTER_AGE_MS = 60 * 60_000;

/** Egress to a block of pods, of nodes, and of neither; SCTP. */
const POLICIES = Object.entries({
  pods: { egress: [{ to: [{ ipBlock: { cidr: '10.244.0.0/16' } }] }] },
  nodes: { egress: [{ to: [{ ipBlock: { cidr: '192.168.7.0/24' } }] }] },
  office: { egress: [{ to: [{ ipBlock: { cidr: '10.99.0.0/16' } }] }] },
  sctp: { ingress: [{ ports: [{ protocol: 'SCTP', port: 7 }] }] },
}).map(([name, rules]) => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name, namespace: 'default' },
  spec: { podSelector: {}, policyTypes: Object.keys(rules).includes('egress') ? ['Egress'] : ['Ingress'], ...rules },
}));

describe('portcullis netpol in a cluster', () => {
  let cluster: EmbeddedCluster;
  let gateway: Gateway;
  let folder = '';

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-netpol-cluster-'));
    const tls = await createLoopbackCertificate();
    cluster = await EmbeddedCluster.open({
      // So old that its nodes should have an agent by now.
      now: () => Date.now() - CLUSTER_AGE_MS,
      tokens: [
        { token: TOKENS.admin, user: { username: 'admin', groups: ['system:masters', 'system:authenticated'] } },
        { token: TOKENS.tenant, user: { username: 'tenant', groups: ['system:authenticated'] } },
      ],
    });
    const { authenticator, admin } = cluster;
    gateway = new Gateway({ cluster, authenticator, tls, onError: (error) => console.error(error) });
    const { url } = await gateway.start({ port: 0 });
    for (const [name, token] of Object.entries(TOKENS)) {
      await writeFile(join(folder, name), kubeconfigText({ server: url, ca: tls.cert, token, name }), { mode: 0o600 });
    }
    for (const policy of POLICIES) {
      await admin.create(knownKind('networking.k8s.io/v1', 'NetworkPolicy'), policy);
    }
    const node = {
      metadata: { name: 'a' },
      spec: { podCIDRs: ['10.244.0.0/24'] },
      status: { addresses: [{ type: 'InternalIP', address: '192.168.7.1' }] },
    };
    await create('v1', 'Node', node);
    const spec = { nodeName: 'a', containers: [{ name: 'web', image: 'example.com/web:1' }] };
    await create('v1', 'Pod', {
      metadata: { name: 'web', namespace: 'default' },
      spec,
      status: { podIPs: [{ ip: '10.244.0.7' }], podIP: '10.244.0.7' },
    });
    const agent = agentPod({ node: 'a' });
    await create('v1', 'Pod', { ...agent, status: { phase: 'Running' } });
    await create('v1', 'ConfigMap', {
      metadata: { name: 'cilium-config', namespace: 'kube-system' },
      data: { 'enable-sctp': 'true' },
    });
  });

  after(async () => {
    await gateway.stop();
    await cluster.close();
    await rm(folder, { recursive: true });
  });

  /** Creates an object, and writes its status. */
  async function create(
    apiVersion: string,
    kind: string,
    {
      status,
      ...object
    }: { readonly status?: JsonObject; readonly metadata: object; readonly [field: string]: unknown },
  ): Promise<void> {
    const type = knownKind(apiVersion, kind);
    const created = await cluster.admin.create(type, { ...object, apiVersion, kind });
    if (status !== undefined) {
      const { name = '', namespace } = created.metadata;
      const key = namespace === undefined ? { name } : { name, namespace };
      await cluster.admin.patch(type, key, { type: 'merge', body: { status } }, { subresource: 'status' });
    }
  }

  const netpol = async (user: keyof typeof TOKENS, ...args: readonly string[]) =>
    await portcullis(['netpol', ...args, '--kubeconfig', join(folder, user)]);

  it('judges the policies by the provider, the version and the settings that are detected', async () => {
    const { code, stdout, stderr } = await netpol('admin', 'check');
    assert.equal(code, 1, stderr);
    assert.match(stdout, /^4 policies, 1 provider: 2 accepted, 2 not, 0 unknown$/m);
    assert.doesNotMatch(stdout, /default\/sctp/, 'the ConfigMap turns SCTP on');
  });

  it('has verdicts about blocks with addresses of pods and nodes, and no warning about others', async () => {
    const { stdout } = await netpol('admin', 'check');
    assert.match(stdout, /^default\/pods +False +FailClosed +Cilium 1\.15\.4 does not match IPs of pods/m);
    assert.match(
      stdout,
      /^default\/nodes +False +FailClosed +Cilium 1\.15\.4 does not match IPs of nodes .*: policy-cidr-match-mode is ""$/m,
    );
    assert.doesNotMatch(stdout, /default\/office|warning/);
  });

  it('tells of nodes without an agent, on which nothing is enforced', async () => {
    assert.doesNotMatch((await netpol('admin', 'check')).stderr, /agent/);
    await create('v1', 'Node', { metadata: { name: 'windows' } });
    try {
      const { stderr } = await netpol('admin', 'check');
      assert.match(
        stderr,
        /^note: 1 node has no agent of a network provider: NetworkPolicies are not enforced there$/m,
      );
    } finally {
      await cluster.admin.delete(knownKind('v1', 'Node'), { name: 'windows' });
    }
  });

  it('changes by --provider only what it names', async () => {
    const newer = await netpol('admin', 'check', '--provider', 'cilium@1.20.2', '-o', 'json');
    const { results } = JSON.parse(newer.stdout) as { results: { policy: string; verdicts: { accepted: string }[] }[] };
    assert.deepEqual(
      results.map(({ policy, verdicts }) => [policy, verdicts[0]?.accepted]).find(([name]) => name === 'default/sctp'),
      ['default/sctp', 'True'],
    );
    const off = await netpol('admin', 'explain', 'sctp', '--provider', 'cilium,enable-sctp=false');
    assert.match(off.stdout, /^cilium@v1\.15\.4: Accepted=False, FeatureNotSupported, FailClosed$/m);
  });

  it('compares with the provider of the cluster, whose settings stay', async () => {
    const { code, stdout } = await netpol('admin', 'what-if', '--to', 'cilium@1.20.2,policy-cidr-match-mode=pods');
    assert.match(stdout, /^default\/pods +Fixes +IPBlockOfPods /m);
    assert.doesNotMatch(stdout, /SCTP/);
    assert.equal(code, stdout.includes('Breaks') ? 1 : 0);
  });

  it('explains by the provider of the cluster', async () => {
    const { code, stdout, stderr } = await netpol('admin', 'explain', 'pods');
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^cilium@v1\.15\.4: Accepted=False/m);
  });

  it('starts from what the controller detected and administrators declare, where there is a controller', async () => {
    await cluster.admin.create(
      knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition'),
      customResourceDefinition(NETWORK_POLICY_PROVIDERS),
    );
    const metadata = { name: 'cilium' };
    const { group, version, kind } = NETWORK_POLICY_PROVIDERS;
    await cluster.admin.create(NETWORK_POLICY_PROVIDERS, {
      apiVersion: `${group}/${version}`,
      kind,
      metadata,
      spec: { presence: 'Present' },
    });
    const status = { isPresent: 'True', version: '1.20.2', settings: { 'policy-cidr-match-mode': 'pods' } };
    const options = { subresource: 'status' } as const;
    await cluster.admin.patch(NETWORK_POLICY_PROVIDERS, metadata, { type: 'merge', body: { status } }, options);
    const { stdout } = await netpol('admin', 'check');
    assert.doesNotMatch(stdout, /default\/pods/);
    assert.match(stdout, /^default\/sctp +Unknown +Cilium 1\.20\.2 supports SCTP/m);
  });

  it('does not leave out a provider that its catalogue does not have', async () => {
    const { group, version, kind } = NETWORK_POLICY_PROVIDERS;
    const metadata = { name: 'stranger' };
    await cluster.admin.create(NETWORK_POLICY_PROVIDERS, {
      apiVersion: `${group}/${version}`,
      kind,
      metadata,
      spec: { presence: 'Present' },
    });
    const body = { status: { isPresent: 'True', version: '1.0.0' } };
    await cluster.admin.patch(NETWORK_POLICY_PROVIDERS, metadata, { type: 'merge', body }, { subresource: 'status' });
    const { stdout } = await netpol('admin', 'check');
    assert.match(
      stdout,
      /^default\/office +Unknown +it is unknown whether stranger 1\.0\.0 enforces NetworkPolicies: the catalogue has no row for it/m,
    );
  });

  it('says that no provider is known to whom may not read them', async () => {
    const { code, stderr } = await netpol('tenant', 'what-if', '--to', 'cilium@1.20.2');
    assert.notEqual(code, 0);
    assert.match(stderr, /networkpolicies/, 'a tenant without rights may not list the policies either');
  });
});
