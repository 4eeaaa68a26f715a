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

/** A cluster with a NetworkPolicy, and reconcilers of its status. */
async function scene(stack: AsyncDisposableStack) {
  const { admin } = stack.use(await EmbeddedCluster.open());
  for (const one of NETWORK_POLICY_KINDS) {
    await admin.create(knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition'), customResourceDefinition(one));
  }
  const policies = knownKind('networking.k8s.io/v1', 'NetworkPolicy');
  const policy = await admin.create<KubernetesObject>(policies, rangePolicy(KEY.name, KEY.namespace));
  const readStatus = () => admin.get(NETWORK_POLICY_STATUSES, KEY);
  const reconcilerOf = (
    image: string,
    read?: Awaited<ReturnType<typeof readStatus>>,
    now: () => number = Date.now,
  ): StatusReconciler => {
    const known = { get: () => policy, subscribe: () => () => {} };
    const pods = [readAgentPod(agentPod({ image })) ?? assert.fail('no agent')];
    const providers = clusterProviders({ pods, nodes: [], configMaps: [], declared: [] }, builtinCatalogue(), 0);
    const log = pino({ level: 'silent' });
    const { discovery } = admin;
    return new StatusReconciler({
      cluster: admin,
      policies: known,
      statuses: { get: () => read, subscribe: () => () => {} },
      providers: () => providers,
      redundancy: async () => undefined,
      events: { event: () => {} },
      onForged: () => {},
      projection: new PolicyProjection({ cluster: admin, discovery, policies: known, annotation: 'none', log }),
      now,
    });
  };
  return { admin, readStatus, reconcilerOf };
}

const { signal } = new AbortController();

it('the status of a NetworkPolicy is not written over a report that came after it was read', async () => {
  await using stack = new AsyncDisposableStack();
  const { admin, readStatus, reconcilerOf } = await scene(stack);
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

it('a NetworkPolicy is judged once for a status, although the write of it is seen again', async () => {
  await using stack = new AsyncDisposableStack();
  const { reconcilerOf } = await scene(stack);
  let judged = 0;
  const reconciler = reconcilerOf('quay.io/cilium/cilium:v1.15.4', undefined, () => {
    judged += 1;
    return 0;
  });
  for (let round = 0; round < 3; round += 1) {
    await reconciler.reconcile(KEY, signal);
  }
  assert.equal(judged, 1);
});
