// Users of the cluster of `portcullis start`: controller, policy server and auditor have the same rights as in any other cluster, but
// that policies and audits may read all that there is.
import { AUDITOR_NAMESPACE_RULES, AUDITOR_RULES } from '../../audit/access-rules/index.ts';
import type { EmbeddedCluster, UserInfo } from '../../apiserver/index.ts';
import {
  ACCESS_REVIEW_RULES,
  CONTROLLER_NAMESPACE_RULES,
  CONTROLLER_RULES,
  EXCEPTION_RULES,
  OWN_KINDS_RULES,
  policyServerObjectName,
} from '../../lifecycle/access-rules/index.ts';
import {
  NETWORK_POLICY_ANNOTATION_RULES,
  NETWORK_POLICY_READER_RULES,
  NETWORK_POLICY_STATUS_RULES,
  NETWORK_POLICY_SUBRESOURCE_RULES,
} from '../../network-policy/access-rules/index.ts';
import { type AccessRule, AUDITOR_ACCOUNT, knownKind, type KubernetesObject } from '../../resources/index.ts';
import { REPLICA_CLUSTER_RULES, REPLICA_RULES } from '../../control/access-rules/index.ts';
import {
  GOVERNANCE_BINDINGS,
  governanceAccess,
  governanceBindings,
  userRoles,
  withoutComments,
} from '../../installation/objects/index.ts';
import { applyObject, removeObject } from './apply-object.ts';
import { PRODUCT_NAMESPACE } from '../product-namespace.ts';
import { POLICY_SERVER } from './roles.ts';

const CONTROLLER = 'portcullis-controller';
const POLICY_SERVER_ACCOUNT = policyServerObjectName(POLICY_SERVER);
/** What policies may read: the only user who writes policies is the administrator. */
const POLICY_READER_RULES: readonly AccessRule[] = [
  { apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list', 'watch'] },
  ...ACCESS_REVIEW_RULES,
];
const RBAC_GROUP = 'rbac.authorization.k8s.io';
const CLUSTER_BINDINGS = knownKind(`${RBAC_GROUP}/v1`, 'ClusterRoleBinding');

export const CONTROLLER_USER = serviceAccount(CONTROLLER);
export const AUDITOR_USER = serviceAccount(AUDITOR_ACCOUNT);
export const POLICY_SERVER_USER = serviceAccount(POLICY_SERVER_ACCOUNT);

/** Creates the namespace of Portcullis, its service accounts and their roles, and the roles for users. */
export async function grantAccess(cluster: EmbeddedCluster): Promise<void> {
  for (const object of accessObjects()) {
    await applyObject(cluster, object);
  }
}

/**
 * Grants what governance needs, and binds exactly these ClusterRoles to its account.
 * @param roles undefined: governance is off, and what an earlier run granted is removed
 */
export async function grantGovernance(cluster: EmbeddedCluster, roles: readonly string[] | undefined): Promise<void> {
  const wanted = governanceBindings(PRODUCT_NAMESPACE, roles ?? []);
  const { items } = await cluster.admin.list(CLUSTER_BINDINGS, { labelSelector: GOVERNANCE_BINDINGS });
  const names = new Set(wanted.map(({ metadata }) => metadata.name));
  for (const object of items.filter(({ metadata }) => !names.has(metadata.name))) {
    await removeObject(cluster, object);
  }
  const access = governanceAccess({ namespace: PRODUCT_NAMESPACE }).map(withoutComments);
  for (const object of access) {
    await (roles === undefined ? removeObject(cluster, object) : applyObject(cluster, object));
  }
  for (const object of wanted) {
    await applyObject(cluster, object);
  }
}

function accessObjects(): readonly KubernetesObject[] {
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: PRODUCT_NAMESPACE } },
    ...[CONTROLLER, POLICY_SERVER_ACCOUNT, AUDITOR_ACCOUNT].map(serviceAccountObject),
    ...grant(CONTROLLER, 'ClusterRole', [
      ...CONTROLLER_RULES,
      ...EXCEPTION_RULES,
      ...OWN_KINDS_RULES,
      ...NETWORK_POLICY_READER_RULES,
      ...NETWORK_POLICY_STATUS_RULES,
      // What NetworkPolicies say of their status: an admission policy limits the first to an annotation.
      ...NETWORK_POLICY_ANNOTATION_RULES,
      ...NETWORK_POLICY_SUBRESOURCE_RULES,
    ]),
    ...grant(CONTROLLER, 'Role', CONTROLLER_NAMESPACE_RULES),
    ...grant(POLICY_SERVER_ACCOUNT, 'Role', REPLICA_RULES),
    ...grant(POLICY_SERVER_ACCOUNT, 'ClusterRole', [...REPLICA_CLUSTER_RULES, ...POLICY_READER_RULES]),
    ...grant(AUDITOR_ACCOUNT, 'ClusterRole', [...AUDITOR_RULES, ...POLICY_READER_RULES]),
    ...grant(AUDITOR_ACCOUNT, 'Role', AUDITOR_NAMESPACE_RULES),
    ...userRoles(false),
  ];
}

/** The user of a service account: https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/ */
function serviceAccount(name: string): UserInfo {
  return {
    username: `system:serviceaccount:${PRODUCT_NAMESPACE}:${name}`,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${PRODUCT_NAMESPACE}`, 'system:authenticated'],
  };
}

function serviceAccountObject(name: string): KubernetesObject {
  return { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: PRODUCT_NAMESPACE } };
}

/** A role and its binding, for the cluster or for the namespace of Portcullis. */
function grant(name: string, kind: 'ClusterRole' | 'Role', rules: readonly AccessRule[]): readonly KubernetesObject[] {
  const namespace = PRODUCT_NAMESPACE;
  const metadata = kind === 'Role' ? { name, namespace } : { name };
  const rbac = { apiVersion: `${RBAC_GROUP}/v1`, metadata };
  const roleRef = { apiGroup: RBAC_GROUP, kind, name };
  const subjects = [{ kind: 'ServiceAccount', name, namespace }];
  return [
    { ...rbac, kind, rules },
    { ...rbac, kind: `${kind}Binding`, roleRef, subjects },
  ];
}
