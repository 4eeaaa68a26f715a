// Both stories of KEP-2943 on a real API server, with a policy server that warns at apply, and what the controller's rights suffice
// for.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { readFileSync } from 'node:fs';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { type Connection, connectionAs, KubernetesCluster, tokenCredentials } from '../../src/cluster/index.ts';
import { NetworkPolicyControllers, StatusRemoval } from '../../src/network-policy/index.ts';
import {
  NETWORK_POLICY_READER_RULES,
  NETWORK_POLICY_STATUS_RULES,
} from '../../src/network-policy/access-rules/index.ts';
import {
  ANNOTATIONS,
  customResourceDefinition,
  findCondition,
  kubernetesKind,
  type KubernetesObject,
  NETWORK_POLICY_KINDS,
  NETWORK_POLICY_STATUSES,
} from '../../src/resources/index.ts';
import { EventRecorder, SharedCaches } from '../../src/runtime/index.ts';
import { agentPod, rangePolicy } from '../../src/network-policy/testing/sample-cluster.ts';
import { PolicyProjection, type PolicyProjectionOptions } from '../../src/network-policy/policy-projection.ts';
import { annotationAccess } from '../../src/installation/objects/annotation-access.ts';
import { withoutComments } from '../../src/installation/objects/comments.ts';
import { EmbeddedCluster } from '../../src/apiserver/index.ts';
import { portcullis } from '../cli/command.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';
import { answered, SupportPolicyServer } from './network-policy-webhook.ts';

const kind = (apiVersion: string, name: string) => kubernetesKind(apiVersion, name) ?? assert.fail(name);
const PODS = kind('v1', 'Pod');
const POLICIES = kind('networking.k8s.io/v1', 'NetworkPolicy');
const KEY = { namespace: 'detected', name: 'myegress' };
const AGENT = { namespace: 'kube-system', name: 'cilium-a' };
const NAMESPACE = 'portcullis';
const USER = `system:serviceaccount:${NAMESPACE}:portcullis-controller`;
const WARNING = 'Cilium 1.15.15 allows only port 30000, not 30000 to 32000';
const log = pino({ level: 'silent' });

describe('the status of NetworkPolicies on a real API server', { skip: skipWithoutCluster() }, () => {
  let server: Cluster;
  let cluster: KubernetesCluster;
  let connection: Connection;
  /** With the rights of the installation. */
  let controller: KubernetesCluster;
  let embedded: EmbeddedCluster;
  let policyServer: SupportPolicyServer;
  const stop = new AbortController();
  const running: Promise<void>[] = [];

  before(async () => {
    server = await startCluster();
    connection = {
      server: server.url,
      ca: readFileSync(server.caFile, 'utf8'),
      credentials: tokenCredentials(server.adminToken),
    };
    cluster = new KubernetesCluster(connection);
    controller = new KubernetesCluster(connectionAs(connection, { user: USER }));
    await grantRights(cluster);
    const definitions = kind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
    for (const one of NETWORK_POLICY_KINDS) {
      await cluster.create(definitions, customResourceDefinition(one));
    }
    await eventually(async () => void (await cluster.list(NETWORK_POLICY_STATUSES)));
    await cluster.create(PODS, agentPod({ image: 'quay.io/cilium/cilium:v1.15.15' }));
    const caches = new SharedCaches({ cluster: controller, log });
    const events = new EventRecorder({ cluster: controller, component: 'portcullis-controller', log });
    const controllers = new NetworkPolicyControllers({
      cluster: controller,
      caches,
      events,
      registry: new Registry(),
      log,
    });
    running.push(caches.start(stop.signal), events.start(stop.signal), controllers.start(stop.signal));
    policyServer = await SupportPolicyServer.start(server.kubeconfig);
    embedded = await EmbeddedCluster.open();
  });

  after(async () => {
    stop.abort();
    await Promise.all(running);
    controller?.close();
    cluster?.close();
    await policyServer?.[Symbol.asyncDispose]();
    await embedded?.[Symbol.asyncDispose]();
    await server?.stop();
  });

  it('warns at apply, says False for an old provider, and True after its upgrade, without a touch of the policy', async () => {
    await policyServer.enforce(cluster, 'detected', rangePolicy());
    await eventually(async () => {
      const { warnings } = await answered(cluster, 'detected', rangePolicy());
      assert.deepEqual(warnings, [WARNING], 'the provider is detected');
    });
    const stdin = JSON.stringify(rangePolicy(KEY.name, KEY.namespace));
    const applied = await server.kubectl(['apply', '-f', '-'], { stdin });
    assert.deepEqual(applied, {
      stdout: 'networkpolicy.networking.k8s.io/myegress created\n',
      stderr: `Warning: ${WARNING}\n`,
      code: 0,
    });
    const policy = await cluster.get<KubernetesObject>(POLICIES, KEY);
    await eventually(async () => {
      const { status } = await cluster.get(NETWORK_POLICY_STATUSES, KEY);
      const accepted = findCondition(status?.conditions, 'Accepted');
      assert.equal(accepted?.status, 'False');
      assert.equal(accepted?.reason, 'FeatureNotSupported');
      assert.equal(status?.summary?.unsupported, 'endPort');
    });
    const body = { spec: { containers: [{ name: 'cilium-agent', image: 'quay.io/cilium/cilium:v1.16.8' }] } };
    await cluster.patch(PODS, AGENT, { type: 'strategic', body });
    await eventually(async () => {
      const { status } = await cluster.get(NETWORK_POLICY_STATUSES, KEY);
      assert.equal(findCondition(status?.conditions, 'Accepted')?.status, 'True');
    });
    assert.deepEqual(await cluster.get(POLICIES, KEY), policy);
    await eventually(async () => {
      assert.deepEqual(await answered(cluster, 'detected', rangePolicy('another')), { warnings: [] });
    });
  });

  it('lists for an administrator what an upgrade fixes, and what another provider breaks', async () => {
    const whatIf = (from: string, to: string) =>
      portcullis(['netpol', 'what-if', '-A', '--kubeconfig', server.kubeconfig, '--provider', from, '--to', to]);
    const upgrade = await whatIf('cilium@1.15.15', 'cilium@1.16.8');
    assert.equal(upgrade.code, 0, upgrade.stderr);
    assert.match(
      upgrade.stdout,
      /^detected\/myegress +Fixes +EndPort +no longer: Cilium 1\.15\.15 allows only port 30000/m,
    );
    const change = await whatIf('cilium@1.16.8', 'weave-net@2.8.1');
    assert.equal(change.code, 1, change.stderr);
    assert.match(change.stdout, /^detected\/myegress +Breaks +EndPort +Weave Net 2\.8\.1 allows only port 30000/m);
    const same = await whatIf('cilium@1.16.8', 'cilium@1.16.8');
    assert.deepEqual([same.code, same.stdout], [0, 'nothing changes\n']);
  });

  it('starts commands from the provider that is detected, which flags only change', async () => {
    const netpol = (...args: readonly string[]) =>
      portcullis(['netpol', ...args, '-A', '--kubeconfig', server.kubeconfig]);
    const check = await netpol('check');
    assert.deepEqual([check.code, check.stdout], [0, '1 policy, 1 provider: 1 accepted, 0 not, 0 unknown\n']);
    const downgrade = await netpol('what-if', '--to', 'cilium@1.15.15');
    assert.equal(downgrade.code, 1, downgrade.stderr);
    assert.match(downgrade.stdout, /^detected\/myegress +Breaks +EndPort /m);
    const explained = await netpol('explain', '--provider', 'cilium,enable-policy=never');
    assert.match(explained.stdout, /^cilium@v1\.16\.8: Accepted=False, ProviderDisabled, Inert$/m);
  });

  for (const [name, target] of [
    ['the real API server', () => cluster],
    ['the embedded API server', () => embedded.admin],
  ] as const) {
    it(`warns through ${name}, or denies where the settings say so, within the limits of length`, async () => {
      for (const policy of ['warned', 'denied', 'many'] as const) {
        await policyServer.enforce(target(), policy, rangePolicy());
      }
      assert.deepEqual(await answered(target(), 'warned', rangePolicy()), { warnings: [WARNING] });
      const denied = await answered(target(), 'denied', rangePolicy());
      assert.match(
        denied.message ?? '',
        /denied the request: Cilium 1\.15\.15 allows only port 30000, not 30000 to 32000$/,
      );
      const { warnings, message } = await answered(target(), 'many', demandingPolicy());
      assert.equal(message, undefined);
      assert.ok(warnings.length > 5);
      assert.match(warnings.at(-1) ?? '', /^and \d+ more: portcullis netpol explain shows all$/, 'none is dropped');
      assert.ok(warnings.every((text) => text.length <= 256));
    });
  }

  it('has the columns of the KEP’s successor in kubectl', async () => {
    const { stdout: said } = await server.kubectl(['get', 'npst', '-A']);
    assert.match(said, /^NAMESPACE +NAME +PROVIDERS +ACCEPTED +REASON +UNSUPPORTED +EFFECT +WARNINGS +AGE$/m);
    assert.match(said, /^detected +myegress +cilium 1\.16\.8 +True +Accepted /m);
    await server.kubectl(['wait', '-n', 'detected', 'npst/myegress', '--for=condition=Accepted']);
  });

  it('is an annotation where that is switched on, with a right to nothing else of the policy', async () => {
    for (const object of annotationAccess({ namespace: NAMESPACE }).map(withoutComments)) {
      await cluster.create(kind(object.apiVersion, object.kind), object);
    }
    const { metadata } = await cluster.get<KubernetesObject>(POLICIES, KEY);
    const [key, uid] = [ANNOTATIONS.networkPolicyStatus, metadata.uid ?? ''];
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'a', uid };
    for (const body of [
      { spec: { podSelector: { matchLabels: { a: 'b' } } } },
      { metadata: { labels: { a: 'b' } } },
      { metadata: { finalizers: ['example.com/a'] } },
      { metadata: { ownerReferences: [owner] } },
      { metadata: { annotations: { [key]: 'a', other: 'b' } } },
    ]) {
      await eventually(() =>
        assert.rejects(
          controller.patch(POLICIES, KEY, { type: 'merge', body }, { dryRun: true }),
          /the controller of Portcullis only annotates NetworkPolicies/,
          JSON.stringify(body),
        ),
      );
    }
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } };
    await cluster.create(kind('v1', 'Namespace'), namespace);
    const admin = new KubernetesCluster(connectionAs(connection, { user: USER, groups: ['system:masters'] }));
    await admin.create(POLICIES, rangePolicy('own', NAMESPACE), { dryRun: true });
    await assert.rejects(admin.create(POLICIES, rangePolicy('new', 'default'), { dryRun: true }), /only annotates/);
    admin.close();
    const { status } = await cluster.get(NETWORK_POLICY_STATUSES, KEY);
    const policies = { get: () => undefined, subscribe: () => () => {} };
    const policy = await cluster.get<KubernetesObject>(POLICIES, KEY);
    for (const [annotation, expected] of [
      ['write', /^Accepted=True, generation 1, since 20\S+Z: Cilium 1\.16\.8 does what the policy says$/],
      ['remove', /^$/],
    ] as const) {
      let after = await cluster.get<KubernetesObject>(POLICIES, KEY);
      // What the API server answers: the running controller, which annotates nothing, removes the annotation at once.
      const recording: PolicyProjectionOptions['cluster'] = {
        patch: async <T extends KubernetesObject>(...request: Parameters<typeof controller.patch<T>>): Promise<T> => {
          const written = await controller.patch<T>(...request);
          after = written;
          return written;
        },
      };
      const { discovery } = controller;
      const projection = new PolicyProjection({ cluster: recording, discovery, policies, annotation, log });
      await projection.write(after, status ?? {}, new AbortController().signal);
      assert.match(after.metadata.annotations?.[key] ?? '', expected);
      assert.deepEqual([after['spec'], after.metadata.generation], [policy['spec'], policy.metadata.generation]);
    }
  });

  it('goes when it is switched off, and the entries of others stay', async () => {
    const conditions = [
      { type: 'Accepted', status: 'True', reason: 'Accepted', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
    ];
    const body = {
      apiVersion: 'portcullis.dev/v1',
      kind: 'NetworkPolicyStatus',
      metadata: KEY,
      status: { providers: [{ controllerName: 'example.com/agent', conditions }] },
    };
    const options = { fieldManager: 'example', subresource: 'status' };
    await cluster.patch(NETWORK_POLICY_STATUSES, KEY, { type: 'apply', body }, options);
    stop.abort();
    await Promise.all(running);
    await new StatusRemoval({ cluster: controller, log }).remove(new AbortController().signal);
    const { status } = await cluster.get(NETWORK_POLICY_STATUSES, KEY);
    assert.deepEqual(
      status?.providers?.map(({ controllerName }) => controllerName),
      ['example.com/agent'],
    );
    assert.equal(status?.conditions, undefined);
  });
});

/** A policy that old providers support in nothing, with long names. */
function demandingPolicy(): KubernetesObject {
  const { spec: _spec, ...policy } = rangePolicy();
  const named = Array.from({ length: 40 }, (_, index) => ({ port: `${'x'.repeat(12)}-${index}`, protocol: 'SCTP' }));
  const from = [
    { ipBlock: { cidr: '2001:db8::/32', except: ['2001:db8::/48'] } },
    { namespaceSelector: {}, podSelector: {} },
  ];
  return { ...policy, spec: { podSelector: {}, ingress: [{ from, ports: [...named, { port: 1, endPort: 3 }] }] } };
}

/** Exactly the rights of an installation for the status of NetworkPolicies, and events. */
async function grantRights(cluster: KubernetesCluster): Promise<void> {
  const apiGroup = 'rbac.authorization.k8s.io';
  const apiVersion = `${apiGroup}/v1`;
  const metadata = { name: USER };
  const events = { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] };
  const rules = [...NETWORK_POLICY_READER_RULES, ...NETWORK_POLICY_STATUS_RULES, events];
  await cluster.create(kind(apiVersion, 'ClusterRole'), { apiVersion, kind: 'ClusterRole', metadata, rules });
  await cluster.create(kind(apiVersion, 'ClusterRoleBinding'), {
    apiVersion,
    kind: 'ClusterRoleBinding',
    metadata,
    roleRef: { apiGroup, kind: 'ClusterRole', name: USER },
    subjects: [{ apiGroup, kind: 'User', name: USER }],
  });
}
