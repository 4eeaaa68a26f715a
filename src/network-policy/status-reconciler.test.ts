import assert from 'node:assert/strict';
import { it } from 'node:test';
import { pino } from 'pino';
import { EmbeddedCluster } from '../apiserver/index.ts';
import { builtinCatalogue } from '../engine/network-policy/index.ts';
import {
  customResourceDefinition,
  knownKind,
  type KubernetesObject,
  NETWORK_POLICY_KINDS,
  NETWORK_POLICY_STATUSES,
} from '../resources/index.ts';
import { readAgentPod } from './agent-pod.ts';
import { clusterProviders } from './cluster-providers.ts';
import { PolicyProjection } from './policy-projection.ts';
import { StatusReconciler } from './status-reconciler.ts';
import { agentPod, rangePolicy } from './testing/sample-cluster.ts';

const KEY = { namespace: 'default', name: 'myegress' };

it('the status of a NetworkPolicy is not written over a report that came after it was read', async () => {
  await using cluster = await EmbeddedCluster.open();
  const { admin } = cluster;
  for (const one of NETWORK_POLICY_KINDS) {
    await admin.create(knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition'), customResourceDefinition(one));
  }
  const policies = knownKind('networking.k8s.io/v1', 'NetworkPolicy');
  const policy = await admin.create<KubernetesObject>(policies, rangePolicy(KEY.name, KEY.namespace));
  const { signal } = new AbortController();
  const reconcilerOf = (image: string, read?: Awaited<ReturnType<typeof readStatus>>): StatusReconciler => {
    const known = { get: () => policy, subscribe: () => () => {} };
    const pods = [readAgentPod(agentPod({ image })) ?? assert.fail('no agent')];
    const log = pino({ level: 'silent' });
    return new StatusReconciler({
      cluster: admin,
      policies: known,
      statuses: { get: () => read, subscribe: () => () => {} },
      providers: () => clusterProviders({ pods, nodes: [], configMaps: [], declared: [] }, builtinCatalogue(), 0),
      redundancy: () => undefined,
      events: { event: () => {} },
      onForged: () => {},
      projection: new PolicyProjection({
        cluster: admin,
        discovery: admin.discovery,
        policies: known,
        annotation: 'none',
        log,
      }),
    });
  };
  const readStatus = () => admin.get(NETWORK_POLICY_STATUSES, KEY);
  await reconcilerOf('quay.io/cilium/cilium:v1.15.4').reconcile(KEY, signal);
  const read = await readStatus();
  const entry = { controllerName: 'cilium.io/agent', reporter: 'cilium-operator', version: '1.16.1' };
  const body = {
    apiVersion: 'portcullis.dev/v1',
    kind: 'NetworkPolicyStatus',
    metadata: KEY,
    status: { providers: [entry] },
  };
  const options = { fieldManager: 'cilium-operator', subresource: 'status' };
  await admin.patch(NETWORK_POLICY_STATUSES, KEY, { type: 'apply', body, force: true }, options);
  await assert.rejects(reconcilerOf('quay.io/cilium/cilium:v1.16.0', read).reconcile(KEY, signal), { code: 409 });
  assert.equal((await readStatus()).status?.providers?.[0]?.reporter, 'cilium-operator');
});
