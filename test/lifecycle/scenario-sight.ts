// Scenario 7: the status of a policy explains its failure to its readers, and reveals nothing of other tenants.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { ApiError } from '../../src/cluster/index.ts';
import {
  ADMISSION_POLICIES,
  POLICY_REVISIONS,
  type KubernetesObject,
  type ResourceType,
} from '../../src/resources/index.ts';
import { findBinary } from '../cluster/binaries.ts';
import { kind, NAMESPACE, type Policy, requiresLabel, type RolloutLab } from './rollout-lab.ts';
import type { LabUser } from './rollout-lab-target.ts';
import { enforced } from './scenario-updates.ts';

const NAMESPACED = ADMISSION_POLICIES as ResourceType<Policy>;
const GROUP = 'policies.kubewarden.io';

async function kubectl(lab: RolloutLab, user: LabUser, ...args: readonly string[]): Promise<string> {
  const env = {
    ...process.env,
    KUBECONFIG: await lab.kubeconfig(user),
    KUBECACHEDIR: `${lab.folder}/${user}`,
    KUBERC: 'off',
  };
  return (await promisify(execFile)(findBinary('kubectl') ?? 'kubectl', [...args], { env })).stdout;
}

export async function statusIsEnough(lab: RolloutLab): Promise<void> {
  const rules = [{ apiGroups: [GROUP], resources: ['clusteradmissionpolicies'], verbs: ['get'] }];
  await lab.grant('reader', rules);
  await enforced(lab, requiresLabel('seen', await lab.module('seen.wasm'), 'old'), 'old');
  await lab.change('seen', { settings: { labels: 7 } });
  await lab.reaches('seen', 'Degraded');
  const described = await kubectl(lab, 'reader', 'describe', 'clusteradmissionpolicy', 'seen');
  assert.match(described, /Phase:\s+Degraded/);
  assert.match(described, /Reason:\s+InvalidSettings/);
  assert.match(described, /labels: expected a list of at least one label name/);
  assert.match(described, /Desired Revision:\s+2/);
  assert.match(described, /Serving Revision:\s+1/);
  assert.match(described, /Serving:\n\s+Modules:\n\s+Digest:\s+sha256:\w{64}\n[^]*Settings:\s+\{"labels":\["old"\]\}/);
  assert.match(
    described,
    /Revisions:\n\s+Cause:\s+generation 2: settings\n[^]*State:\s+Failed[^]*Cause:\s+generation 1\n/,
  );
  assert.match(await kubectl(lab, 'admin', 'describe', 'cap', 'seen'), /Events:[^]*Warning\s+InvalidSettings/);
}

function tenantsPolicy(namespace: string, secret: string): Policy {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'AdmissionPolicy',
    metadata: { namespace, name: 'own' },
    spec: {
      module: 'builtin:cel',
      // Invalid only when compiled.
      settings: { validations: [{ expression: secret }] },
      mutating: false,
      rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
    },
  };
}

async function forbidden(request: Promise<unknown>, what: string): Promise<void> {
  await assert.rejects(request, (error) => error instanceof ApiError && error.code === 403, what);
}

/**
 * In monitor mode, the status and the events of a policy tell its readers what it would have rejected. No other scenario has a
 * policy for its kind: the shared webhook would send it their objects, too.
 */
export async function monitorInforms(lab: RolloutLab): Promise<void> {
  const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['services'], operations: ['CREATE'] }];
  await lab.namespace('informs');
  await lab.create(requiresLabel('informs', await lab.module('informs.wasm'), 'kept', { mode: 'monitor', rules }));
  const { status } = await lab.reaches('informs', 'Active');
  assert.deepEqual([status?.monitored?.count, status?.monitored?.last], [0, []]);
  for (const name of ['one', 'two']) {
    const metadata = { name, namespace: 'informs' };
    const service = { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{ port: 80 }] } };
    await lab.cluster.create(kind('v1', 'Service'), service);
  }
  const counted = await lab.reaches('informs', 'Active', ({ monitored }) => (monitored?.count ?? 0) > 0);
  const { last = [], revision } = counted.status?.monitored ?? {};
  assert.equal(revision, 1);
  for (const { operation, kind: of, namespace, name, user, message } of last) {
    assert.deepEqual([operation, of, namespace], ['CREATE', 'Service', 'informs']);
    assert.match(name ?? '', /^(?:one|two)$/);
    assert.notEqual(user ?? '', '');
    assert.match(message ?? '', /has no label "kept"/);
  }
  const described = (): Promise<string> => kubectl(lab, 'admin', 'describe', 'cap', 'informs');
  await lab.eventually(
    async () => assert.match(await described(), /WouldReject.*would have rejected \d requests?/),
    () => 'an event that counts requests',
  );
  assert.match(await kubectl(lab, 'admin', 'get', 'cap', 'informs', '-o', 'wide'), /WOULD REJECT[^]*informs/);
  await lab.change('informs', { mode: 'protect' });
  await lab.reaches('informs', 'Active', ({ mode, monitored }) => mode === 'protect' && monitored === undefined);
}

export async function tenantsSeeTheirOwn(lab: RolloutLab): Promise<void> {
  const EVENTS = kind('v1', 'Event');
  const rules = [
    { apiGroups: [GROUP], resources: ['admissionpolicies'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: ['get', 'list', 'watch'] },
  ];
  for (const tenant of ['red', 'blue'] as const) {
    await lab.namespace(tenant);
    await lab.grant(tenant, rules, tenant);
    await lab.create(tenantsPolicy(tenant, `secret_of_${tenant}`));
  }
  for (const [tenant, other] of [
    ['red', 'blue'],
    ['blue', 'red'],
  ] as const) {
    const cluster = lab.as(tenant);
    await lab.eventually(
      async () => {
        const policy = await cluster.get(NAMESPACED, { namespace: tenant, name: 'own' });
        assert.equal(policy.status?.phase, 'Error');
        assert.match(policy.status.message ?? '', new RegExp(`secret_of_${tenant}`));
        assert.deepEqual(
          policy.status.revisions?.map(({ revision, state, declared }) => [revision, state, declared]),
          [[1, 'Failed', true]],
        );
      },
      () => `the status of the policy of ${tenant}`,
    );
    await lab.eventually(
      async () => {
        const { items } = await cluster.list(EVENTS, { namespace: tenant });
        assert.ok(items.length > 0, 'they see their own events');
        assert.ok(!JSON.stringify(items).includes(`secret_of_${other}`));
      },
      () => `events for ${tenant}`,
    );
    await forbidden(cluster.get(NAMESPACED, { namespace: other, name: 'own' }), 'policies of others');
    await forbidden(cluster.list(NAMESPACED, {}), 'all policies');
    await forbidden(cluster.list(EVENTS, { namespace: other }), 'events of others');
    await forbidden(cluster.list(POLICY_REVISIONS, { namespace: NAMESPACE }), 'revisions');
  }
  // Objects that everybody may read reveal neither.
  const { items } = await lab.cluster.list<KubernetesObject>(EVENTS, { namespace: 'default' });
  assert.doesNotMatch(JSON.stringify(items), /secret_of_(red|blue)/);
}
