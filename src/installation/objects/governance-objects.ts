// Roles and bindings of governance: of the controller, and of the account whose rights policies have.
import {
  GOVERNANCE_ACCOUNT,
  GOVERNANCE_ACCOUNT_RULES,
  GOVERNANCE_CONTROLLER_RULES,
  governanceNamespaceRules,
} from '../../governance/access-rules/index.ts';
import type { AccessRule, KubernetesObject } from '../../resources/index.ts';
import { commented } from './comments.ts';
import { explainedRules } from './explained-rules.ts';
import { componentLabels, CONTROLLER, type InstallContext } from './naming.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';
const RBAC_VERSION = `${RBAC_GROUP}/v1`;
/** The name of the controller's roles for governance. No binding of {@link governanceBindings} has it. */
const GOVERNANCE_CONTROLLER = `${CONTROLLER}-governance`;
/** The component of bindings that administrators ask for. */
export const GOVERNANCE_ROLES = 'governance-roles';
/** Selects these bindings. */
export const GOVERNANCE_BINDINGS = `app.kubernetes.io/part-of=portcullis,app.kubernetes.io/component=${GOVERNANCE_ROLES}`;

/** A role that an installation binds to a service account of the product. */
export interface Grant {
  readonly kind: 'ClusterRole' | 'Role';
  readonly name: string;
  readonly account: string;
  readonly rules: readonly AccessRule[];
}

export const GOVERNANCE_GRANTS: readonly Grant[] = [
  { kind: 'ClusterRole', name: GOVERNANCE_ACCOUNT, account: GOVERNANCE_ACCOUNT, rules: GOVERNANCE_ACCOUNT_RULES },
  { kind: 'ClusterRole', name: GOVERNANCE_CONTROLLER, account: CONTROLLER, rules: GOVERNANCE_CONTROLLER_RULES },
  {
    kind: 'Role',
    name: GOVERNANCE_CONTROLLER,
    account: CONTROLLER,
    rules: governanceNamespaceRules(GOVERNANCE_ACCOUNT),
  },
];

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
    ...GOVERNANCE_GRANTS.flatMap((grant) =>
      granted({ ...grant, rules: explainedRules(grant.rules) }, namespace, 'governance'),
    ),
  ];
}

/** A role with its binding to a service account of the product. */
export function granted(
  { kind, name, account, rules }: Grant,
  namespace: string,
  component: string,
): readonly KubernetesObject[] {
  const metadata = { name, ...(kind === 'Role' ? { namespace } : {}), labels: componentLabels(component) };
  return [
    { apiVersion: RBAC_VERSION, kind, metadata, rules },
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
