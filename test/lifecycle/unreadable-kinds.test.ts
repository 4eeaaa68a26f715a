// What users see when a policy declares a kind that its policy server may not read.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubernetesObject } from '../../src/resources/index.ts';
import { example } from '../server/harness.ts';
import { kind, type Policy, PolicyLab } from './policy-lab.ts';

const RBAC = 'rbac.authorization.k8s.io';
const READER = { username: 'reader', groups: ['system:authenticated'] };

function policy(name: string, reads: readonly string[]): KubernetesObject & { readonly spec: object } {
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name },
    spec: {
      module: example('host-namespaces'),
      settings: {},
      mutating: false,
      rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
      contextAwareResources: reads.map((one) => ({ apiVersion: 'v1', kind: one })),
    },
  };
}

async function allow(lab: PolicyLab, resource: string): Promise<void> {
  const metadata = { name: `reads-${resource}` };
  const rules = [{ apiGroups: [''], resources: [resource], verbs: ['get', 'list', 'watch'] }];
  await lab.create({ apiVersion: `${RBAC}/v1`, kind: 'ClusterRole', metadata, rules });
  await lab.create({
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRoleBinding',
    metadata,
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: metadata.name },
    subjects: [{ apiGroup: RBAC, kind: 'User', name: READER.username }],
  });
}

function isEnforced({ status }: Policy): string | undefined {
  return status?.conditions.find(({ type }) => type === 'Enforced')?.status;
}

describe('a policy that declares a kind which the policy server may not read', () => {
  it('is not enforced, and serves once the right is granted', async () => {
    await using lab = await PolicyLab.start({ reader: READER });
    const object = policy('new', ['ConfigMap']);
    await lab.create(object);
    const failed = await lab.reaches(object, 'Error');
    assert.equal(failed.status?.reason, 'KindNotReadable');
    assert.match(failed.status.message, /v1\/ConfigMap.*get, list, watch configmaps.*User "reader" cannot list/);
    assert.equal(isEnforced(failed), 'False');
    await allow(lab, 'configmaps');
    const active = await lab.reaches(object, 'Active');
    assert.equal(isEnforced(active), 'True');
  });

  it('keeps the revision that served before', async () => {
    await using lab = await PolicyLab.start({ reader: READER });
    await allow(lab, 'configmaps');
    const object = policy('changed', ['ConfigMap']);
    await lab.create(object);
    await lab.reaches(object, 'Active');
    const { spec } = policy('changed', ['ConfigMap', 'Secret']);
    await lab.merge(kind(object.apiVersion, object.kind), { name: 'changed' }, { spec });
    const degraded = await lab.reaches(object, 'Degraded');
    assert.match(degraded.status?.message ?? '', /v1\/Secret/);
    assert.equal(degraded.status?.readyReplicas, 0);
    assert.equal(isEnforced(degraded), 'True');
    await allow(lab, 'secrets');
    const active = await lab.reaches(object, 'Active');
    assert.equal(active.status?.desiredRevision, 2);
  });
});
