// The controller's rights for the status of NetworkPolicies.
import { NETWORK_POLICY_READER_RULES } from '../../network-policy/access-rules/index.ts';
import type { KubernetesObject } from '../../resources/index.ts';
import { commented } from './comments.ts';
import type { Grant } from './governance-objects.ts';
import { componentLabels, CONTROLLER, type InstallContext } from './naming.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';
const RBAC_VERSION = `${RBAC_GROUP}/v1`;
const NAME = `${CONTROLLER}-network-policies`;

export const NETWORK_POLICY_GRANT: Grant = {
  kind: 'ClusterRole',
  name: NAME,
  account: CONTROLLER,
  rules: NETWORK_POLICY_READER_RULES,
};

/** The right to read NetworkPolicies, and what shows which network providers run. */
export function networkPolicyAccess({ namespace }: Pick<InstallContext, 'namespace'>): readonly KubernetesObject[] {
  const metadata = { name: NAME, labels: componentLabels('controller') };
  return [
    commented(
      'What network providers do with NetworkPolicies: pods in the network of their host show which providers run, nodes where they should, and the ConfigMaps and objects of providers their settings and versions. It writes no NetworkPolicies.',
      { apiVersion: RBAC_VERSION, kind: 'ClusterRole', metadata, rules: NETWORK_POLICY_READER_RULES },
    ),
    {
      apiVersion: RBAC_VERSION,
      kind: 'ClusterRoleBinding',
      metadata,
      roleRef: { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name: NAME },
      subjects: [{ kind: 'ServiceAccount', name: CONTROLLER, namespace }],
    },
  ];
}
