// Roles and bindings of governance: of the controller, and of the account whose rights policies have.
import {
  GOVERNANCE_ACCOUNT,
  GOVERNANCE_ACCOUNT_RULES,
  GOVERNANCE_CONTROLLER_RULES,
  governanceNamespaceRules,
} from '../../../governance/index.ts';
import type { AccessRule, KubernetesObject } from '../../../resources/index.ts';
import { commented } from './comments.ts';
import { explainedRules } from './explained-rules.ts';
import { componentLabels, CONTROLLER, type InstallContext } from './naming.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';
const RBAC_VERSION = `${RBAC_GROUP}/v1`;
/** The name of the controller's roles for governance. No binding of {@link governanceBindings} has it. */
export const GOVERNANCE_CONTROLLER = `${CONTROLLER}-governance`;
/** The component of bindings that administrators ask for. */
export const GOVERNANCE_ROLES = 'governance-roles';
/** Selects these bindings. */
export const GOVERNANCE_BINDINGS = `app.kubernetes.io/part-of=portcullis,app.kubernetes.io/component=${GOVERNANCE_ROLES}`;

/** The governance account with the rights that it has in any case, and the controller's rights for governance. */
export function governanceAccess({ namespace }: Pick<InstallContext, 'namespace'>): readonly KubernetesObject[] {
  const labels = componentLabels('governance');
  return [
    commented(
      'Policies read and write with the rights of this account, which the controller impersonates. It has none but those below, until an administrator binds ClusterRoles to it.',
      {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name: GOVERNANCE_ACCOUNT, namespace, labels },
        automountServiceAccountToken: false,
      },
    ),
    ...granted('ClusterRole', GOVERNANCE_ACCOUNT, GOVERNANCE_ACCOUNT, namespace, GOVERNANCE_ACCOUNT_RULES),
    ...granted('ClusterRole', GOVERNANCE_CONTROLLER, CONTROLLER, namespace, GOVERNANCE_CONTROLLER_RULES),
    ...granted('Role', GOVERNANCE_CONTROLLER, CONTROLLER, namespace, governanceNamespaceRules(GOVERNANCE_ACCOUNT)),
  ];
}

/** A role with its binding to a service account of the product. */
function granted(
  kind: 'ClusterRole' | 'Role',
  name: string,
  account: string,
  namespace: string,
  rules: readonly AccessRule[],
): readonly KubernetesObject[] {
  const metadata = { name, ...(kind === 'Role' ? { namespace } : {}), labels: componentLabels('governance') };
  return [
    { apiVersion: RBAC_VERSION, kind, metadata, rules: explainedRules(rules) },
    {
      apiVersion: RBAC_VERSION,
      kind: `${kind}Binding`,
      metadata,
      roleRef: { apiGroup: RBAC_GROUP, kind, name },
      subjects: [{ kind: 'ServiceAccount', name: account, namespace }],
    },
  ];
}

/** Binds ClusterRoles to the governance account. */
export function governanceBindings(namespace: string, roles: readonly string[]): readonly KubernetesObject[] {
  return roles.map((name) => ({
    apiVersion: RBAC_VERSION,
    kind: 'ClusterRoleBinding',
    metadata: { name: `${GOVERNANCE_ACCOUNT}-${name}`, labels: componentLabels(GOVERNANCE_ROLES) },
    roleRef: { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name },
    subjects: [{ kind: 'ServiceAccount', name: GOVERNANCE_ACCOUNT, namespace }],
  }));
}
