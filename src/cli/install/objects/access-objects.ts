// Who may do what: the service account of the controller with the rights that its code says it needs, and what people get.
import {
  CERTIFICATE_NAMESPACE_RULES,
  CLUSTER_RULES,
  CONTEXT_AWARE_LABEL,
  CONTEXT_AWARE_RULES,
  CONTROLLER_NAMESPACE_RULES,
  EXTERNAL_CERTIFICATE_NAMESPACE_RULES,
  POLICY_SERVER_NAMESPACE_RULES,
} from '../../../lifecycle/index.ts';
import {
  ADMISSION_POLICIES,
  ADMISSION_POLICY_GROUPS,
  CLUSTER_ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICY_GROUPS,
  POLICIES_GROUP,
  POLICY_REVISIONS,
  POLICY_SERVER_REPLICAS,
  POLICY_SERVERS,
  PORTCULLIS_GROUP,
} from '../../../resources/index.ts';
import type { AccessRule, KubernetesObject } from '../../../resources/index.ts';
import { componentLabels, CONTROLLER, type InstallContext } from './naming.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';
const RBAC_VERSION = `${RBAC_GROUP}/v1`;

/** Who keeps the Secrets with certificates: the controller, or somebody else. */
export type CertificateMode = 'own' | 'external';
/** Rights in the namespace of the product: Secrets are only read where others keep them. */
export const NAMESPACE_RULES: Readonly<Record<CertificateMode, readonly AccessRule[]>> = {
  own: [...CONTROLLER_NAMESPACE_RULES, ...CERTIFICATE_NAMESPACE_RULES, ...POLICY_SERVER_NAMESPACE_RULES],
  external: [...CONTROLLER_NAMESPACE_RULES, ...EXTERNAL_CERTIFICATE_NAMESPACE_RULES, ...POLICY_SERVER_NAMESPACE_RULES],
};

/** The controller's service account and its rights in the whole cluster. */
export function controllerAccess({ namespace }: InstallContext): readonly KubernetesObject[] {
  const metadata = { name: CONTROLLER, namespace, labels: componentLabels('controller') };
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata, automountServiceAccountToken: false },
    ...granted('ClusterRole', namespace, CLUSTER_RULES),
  ];
}

/**
 * The controller's rights in its namespace. One Role for each mode, of the same name: when the mode changes, it is overwritten,
 * and nothing stays that the other one was allowed.
 */
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
    { apiVersion: RBAC_VERSION, kind, metadata, rules },
    {
      apiVersion: RBAC_VERSION,
      kind: `${kind}Binding`,
      metadata,
      roleRef: { apiGroup: RBAC_GROUP, kind, name: CONTROLLER },
      subjects: [{ kind: 'ServiceAccount', name: CONTROLLER, namespace }],
    },
  ];
}

/** The ClusterRole that holds what the controller may pass on to policy servers. */
export const PASSED_ON = 'portcullis-context-aware';

/**
 * What context-aware policies may read. Nobody passes on rights that they do not have, so the controller has these: those of all
 * ClusterRoles with a label (aggregation), of which this is the first. Its rules are Kubernetes' to fill in, so none are given.
 */
export function contextAwareAccess({ namespace }: InstallContext): readonly KubernetesObject[] {
  const labels = componentLabels('context-aware');
  return [
    {
      apiVersion: RBAC_VERSION,
      kind: 'ClusterRole',
      metadata: { name: PASSED_ON, labels },
      aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [CONTEXT_AWARE_LABEL]: 'true' } }] },
    },
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

/** Kinds that people of a namespace write. */
const NAMESPACED = [ADMISSION_POLICIES, ADMISSION_POLICY_GROUPS].map(({ resource }) => resource);
/** Kinds that people see. */
const VISIBLE = [CLUSTER_ADMISSION_POLICIES, CLUSTER_ADMISSION_POLICY_GROUPS, POLICY_SERVERS].map(
  ({ resource }) => resource,
);
const READ = ['get', 'list', 'watch'];
const WRITE = ['create', 'update', 'patch', 'delete', 'deletecollection'];

/**
 * ClusterRoles that Kubernetes adds to its own ones for people. Who may edit a namespace may write its policies; policies of
 * the cluster and PolicyServers are for administrators of the cluster, who may do everything anyway.
 */
export function userRoles(): readonly KubernetesObject[] {
  const role = (name: string, to: readonly string[], rules: readonly AccessRule[]): KubernetesObject => ({
    apiVersion: RBAC_VERSION,
    kind: 'ClusterRole',
    metadata: {
      name,
      labels: {
        ...componentLabels('user-roles'),
        ...Object.fromEntries(to.map((target) => [`rbac.authorization.k8s.io/aggregate-to-${target}`, 'true'])),
      },
    },
    rules,
  });
  return [
    role(
      'portcullis-view',
      ['view', 'edit', 'admin'],
      [
        { apiGroups: [POLICIES_GROUP], resources: [...VISIBLE, ...NAMESPACED], verbs: READ },
        {
          apiGroups: [PORTCULLIS_GROUP],
          resources: [POLICY_REVISIONS.resource, POLICY_SERVER_REPLICAS.resource],
          verbs: READ,
        },
      ],
    ),
    role('portcullis-edit', ['edit', 'admin'], [{ apiGroups: [POLICIES_GROUP], resources: NAMESPACED, verbs: WRITE }]),
  ];
}
