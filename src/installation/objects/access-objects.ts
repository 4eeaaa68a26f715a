// Roles and bindings: of the controller's service account, with the rights that its code declares, and of users.
import {
  CERTIFICATE_NAMESPACE_RULES,
  CLUSTER_RULES,
  CONTEXT_AWARE_RULES,
  CONTROLLER_NAMESPACE_RULES,
  EXTERNAL_CERTIFICATE_NAMESPACE_RULES,
  POLICY_SERVER_NAMESPACE_RULES,
} from '../../lifecycle/access-rules/index.ts';
import { NETWORK_POLICY_REPORTER_RULES, NETWORK_POLICY_STATUS_RULES } from '../../network-policy/access-rules/index.ts';
import {
  type AccessRule,
  ADMISSION_POLICIES,
  ADMISSION_POLICY_GROUPS,
  CLUSTER_ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICY_GROUPS,
  CONTEXT_AWARE_LABEL,
  CONTROLLER_REPLICAS,
  GOVERNANCE_GROUP,
  GOVERNANCE_KINDS,
  type KubernetesObject,
  NETWORK_POLICY_KINDS,
  POLICIES_GROUP,
  POLICY_KINDS,
  POLICY_EXCEPTIONS,
  POLICY_REVISIONS,
  POLICY_SERVER_REPLICAS,
  POLICY_SERVERS,
  PORTCULLIS_GROUP,
  REPORT_FORMATS,
} from '../../resources/index.ts';
import { commented } from './comments.ts';
import { explainedRules } from './explained-rules.ts';
import { componentLabels, CONTROLLER, type InstallContext } from './naming.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';
const RBAC_VERSION = `${RBAC_GROUP}/v1`;

/** Who writes the Secrets with certificates: the controller (`own`), or another program, such as cert-manager. */
export type CertificateMode = 'own' | 'external';
/** Rights in the product's namespace. With `external` certificates, Secrets are only read. */
export const NAMESPACE_RULES: Readonly<Record<CertificateMode, readonly AccessRule[]>> = {
  own: [...CONTROLLER_NAMESPACE_RULES, ...CERTIFICATE_NAMESPACE_RULES, ...POLICY_SERVER_NAMESPACE_RULES],
  external: [...CONTROLLER_NAMESPACE_RULES, ...EXTERNAL_CERTIFICATE_NAMESPACE_RULES, ...POLICY_SERVER_NAMESPACE_RULES],
};

/** Rights in the whole cluster. */
export const CONTROLLER_CLUSTER_RULES: readonly AccessRule[] = [...CLUSTER_RULES, ...NETWORK_POLICY_STATUS_RULES];

/** The controller's service account and its cluster-wide rights. */
export function controllerAccess({ namespace }: InstallContext): readonly KubernetesObject[] {
  const metadata = { name: CONTROLLER, namespace, labels: componentLabels('controller') };
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata, automountServiceAccountToken: false },
    ...granted('ClusterRole', namespace, CONTROLLER_CLUSTER_RULES),
  ];
}

/** The controller's rights in its namespace. The Role has one name for all modes, so that a change of mode replaces it. */
export function namespaceAccess(mode: CertificateMode, { namespace }: InstallContext): readonly KubernetesObject[] {
  return granted('Role', namespace, NAMESPACE_RULES[mode]);
}

/** A role of the controller, and its binding. */
function granted(
  kind: 'ClusterRole' | 'Role',
  namespace: string,
  rules: readonly AccessRule[],
): readonly KubernetesObject[] {
  const metadata = {
    name: CONTROLLER,
    ...(kind === 'Role' ? { namespace } : {}),
    labels: componentLabels('controller'),
  };
  return [
    { apiVersion: RBAC_VERSION, kind, metadata, rules: explainedRules(rules) },
    {
      apiVersion: RBAC_VERSION,
      kind: `${kind}Binding`,
      metadata,
      roleRef: { apiGroup: RBAC_GROUP, kind, name: CONTROLLER },
      subjects: [{ kind: 'ServiceAccount', name: CONTROLLER, namespace }],
    },
  ];
}

/** The ClusterRole with the rights that the controller may grant to policy servers. */
export const PASSED_ON = 'portcullis-context-aware';

/**
 * The rights of context-aware policies: an aggregated ClusterRole, whose rules Kubernetes collects from all ClusterRoles with a
 * label, and the first of those. The controller has these rights itself, because Kubernetes lets nobody grant others.
 */
export function contextAwareAccess({ namespace }: InstallContext): readonly KubernetesObject[] {
  const labels = componentLabels('context-aware');
  return [
    commented(
      'What context-aware policies may read: the controller has these rights because API servers let nobody grant others. Whoever may write ClusterRoles with this label adds to them.',
      {
        apiVersion: RBAC_VERSION,
        kind: 'ClusterRole',
        metadata: { name: PASSED_ON, labels },
        aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [CONTEXT_AWARE_LABEL]: 'true' } }] },
      },
    ),
    {
      apiVersion: RBAC_VERSION,
      kind: 'ClusterRoleBinding',
      metadata: { name: PASSED_ON, labels },
      roleRef: { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name: PASSED_ON },
      subjects: [{ kind: 'ServiceAccount', name: CONTROLLER, namespace }],
    },
    {
      apiVersion: RBAC_VERSION,
      kind: 'ClusterRole',
      metadata: { name: `${PASSED_ON}-common`, labels: { ...labels, [CONTEXT_AWARE_LABEL]: 'true' } },
      rules: CONTEXT_AWARE_RULES,
    },
  ];
}

/** Kinds that users of a namespace write. */
const NAMESPACED = [ADMISSION_POLICIES, ADMISSION_POLICY_GROUPS].map(({ resource }) => resource);
/** Kinds that users read. */
const VISIBLE = [CLUSTER_ADMISSION_POLICIES, CLUSTER_ADMISSION_POLICY_GROUPS, POLICY_SERVERS].map(
  ({ resource }) => resource,
);
const READ = ['get', 'list', 'watch'];
const WRITE = ['create', 'update', 'patch', 'delete', 'deletecollection'];

/**
 * ClusterRoles for users. Kubernetes aggregates `portcullis-view` into its roles `view`, `edit` and `admin`. Administrators bind
 * `portcullis-edit` in the namespaces whose users may write policies; aggregation into `edit` and `admin` is a value.
 * Cluster-wide policies, PolicyServers, and Policies, which have the rights of the governance account, are left to cluster
 * administrators. They bind `portcullis-policy-exempter` to those who may except from policies, for all policies; a role of their own
 * with `resourceNames` is for some. They bind `portcullis-network-policy-reporter` to the account of a network provider that reports for itself.
 * @param aggregateWrite a text in templates of the chart
 */
export function userRoles(aggregateWrite: boolean | string): readonly KubernetesObject[] {
  const role = (
    name: string,
    to: readonly string[],
    isAggregated: string,
    rules: readonly AccessRule[],
  ): KubernetesObject => ({
    apiVersion: RBAC_VERSION,
    kind: 'ClusterRole',
    metadata: {
      name,
      labels: {
        ...componentLabels('user-roles'),
        ...Object.fromEntries(to.map((target) => [`rbac.authorization.k8s.io/aggregate-to-${target}`, isAggregated])),
      },
    },
    rules,
  });
  return [
    role('portcullis-view', ['view', 'edit', 'admin'], 'true', [
      { apiGroups: [POLICIES_GROUP], resources: [...VISIBLE, ...NAMESPACED], verbs: READ },
      {
        apiGroups: [PORTCULLIS_GROUP],
        resources: [
          POLICY_EXCEPTIONS,
          POLICY_REVISIONS,
          POLICY_SERVER_REPLICAS,
          CONTROLLER_REPLICAS,
          ...NETWORK_POLICY_KINDS,
        ].map(({ resource }) => resource),
        verbs: READ,
      },
      { apiGroups: [GOVERNANCE_GROUP], resources: GOVERNANCE_KINDS.map(({ resource }) => resource), verbs: READ },
      ...Object.values(REPORT_FORMATS).map(({ reports, clusterReports }) => ({
        apiGroups: [reports.group],
        resources: [reports.resource, clusterReports.resource],
        verbs: READ,
      })),
    ]),
    role('portcullis-edit', ['edit', 'admin'], String(aggregateWrite), [
      { apiGroups: [POLICIES_GROUP], resources: NAMESPACED, verbs: WRITE },
    ]),
    role('portcullis-policy-exempter', [], '', [
      { apiGroups: [PORTCULLIS_GROUP], resources: [POLICY_EXCEPTIONS.resource], verbs: WRITE },
      { apiGroups: [POLICIES_GROUP], resources: POLICY_KINDS.map(({ resource }) => resource), verbs: ['exempt'] },
    ]),
    role('portcullis-network-policy-reporter', [], '', NETWORK_POLICY_REPORTER_RULES),
  ];
}
