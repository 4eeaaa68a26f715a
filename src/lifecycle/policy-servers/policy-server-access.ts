// The service account of a PolicyServer's pods, and its rights.
import type { AccessRule, JsonObject, PolicyServerObject } from '../../resources/index.ts';
import { REPLICA_CLUSTER_RULES, REPLICA_POD_RULES } from '../../control/access-rules/index.ts';
import {
  policyServerClusterRoleName,
  policyServerLabels,
  policyServerObjectName,
} from '../certificates/policy-server-names.ts';
import type { PolicyServerSettings } from './policy-server-settings.ts';

const GROUP = 'rbac.authorization.k8s.io';

/** The name of the pods' service account. */
export function serviceAccountOf({ metadata, spec: { serviceAccountName = '' } }: PolicyServerObject): string {
  return serviceAccountName === '' ? policyServerObjectName(metadata.name ?? '') : serviceAccountName;
}

/** The service account of the pods. Undefined if the spec names another one. */
export function policyServerServiceAccount(
  server: PolicyServerObject,
  { namespace }: PolicyServerSettings,
): JsonObject | undefined {
  const name = policyServerObjectName(server.metadata.name ?? '');
  return serviceAccountOf(server) === name
    ? {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name, namespace, labels: labelsOf(server) },
        // The pods request the token; other pods with this account do not get it by default.
        automountServiceAccountToken: false,
      }
    : undefined;
}

/** Role and RoleBinding in the namespace of Portcullis; ClusterRole and ClusterRoleBinding. */
export function policyServerAccess(
  server: PolicyServerObject,
  { namespace }: PolicyServerSettings,
  contextAwareRules: readonly AccessRule[],
): readonly JsonObject[] {
  const serverName = server.metadata.name ?? '';
  const name = policyServerObjectName(serverName);
  const clusterName = policyServerClusterRoleName(serverName);
  const labels = labelsOf(server);
  const apiVersion = `${GROUP}/v1`;
  const subjects = [{ kind: 'ServiceAccount', name: serviceAccountOf(server), namespace }];
  const rulesOf = (rules: readonly AccessRule[]): JsonObject[] =>
    rules.map(({ apiGroups, resources, verbs }) => ({
      apiGroups: [...apiGroups],
      resources: [...resources],
      verbs: [...verbs],
    }));
  return [
    { apiVersion, kind: 'Role', metadata: { name, namespace, labels }, rules: rulesOf(REPLICA_POD_RULES) },
    {
      apiVersion,
      kind: 'RoleBinding',
      metadata: { name, namespace, labels },
      roleRef: { apiGroup: GROUP, kind: 'Role', name },
      subjects,
    },
    {
      apiVersion,
      kind: 'ClusterRole',
      metadata: { name: clusterName, labels },
      rules: rulesOf([...REPLICA_CLUSTER_RULES, ...contextAwareRules]),
    },
    {
      apiVersion,
      kind: 'ClusterRoleBinding',
      metadata: { name: clusterName, labels },
      roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name: clusterName },
      subjects,
    },
  ];
}

function labelsOf({ metadata }: PolicyServerObject): JsonObject {
  return policyServerLabels(metadata.name ?? '');
}
