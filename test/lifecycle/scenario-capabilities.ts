// Scenario 12: a policy of a namespace needs a host capability that its PolicyServer does not name.
import assert from 'node:assert/strict';
import type { ResourceType } from '../../src/resources/index.ts';
import { kind, type Policy, type RolloutLab } from './rollout-lab.ts';

const NAME = 'asking';

const POLICY: Policy = {
  apiVersion: 'policies.kubewarden.io/v1',
  kind: 'AdmissionPolicy',
  metadata: { name: NAME, namespace: NAME },
  spec: {
    module: 'builtin:cel',
    mutating: false,
    settings: { validations: [{ expression: "!authorizer.path('/').check('get').allowed()" }] },
    rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
  },
};

/** The policy never serves, and its status has the line to add. */
export async function tenantsNeedCapabilities(lab: RolloutLab): Promise<void> {
  await lab.namespace(NAME);
  await lab.create(POLICY);
  const type = kind(POLICY.apiVersion, POLICY.kind) as ResourceType<Policy>;
  const status = await lab.eventually(
    async () => {
      const { status: found } = await lab.cluster.get(type, { name: NAME, namespace: NAME });
      assert.equal(found?.reason, 'CapabilityNotGranted');
      return found;
    },
    () => 'the reason of a policy without its host capability',
  );
  assert.match(
    status.message ?? '',
    /add "kubernetes\/can_i" to spec\.namespacedPoliciesCapabilities of the PolicyServer/,
  );
  assert.equal(await lab.refusal(NAME), undefined);
  await lab.cluster.delete(type, { name: NAME, namespace: NAME });
}
