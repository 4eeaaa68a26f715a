// What the processes of a PolicyServer may do: their service account, and the rights that it gets.
import type { AccessRule, JsonObject, PolicyServer } from '../../resources/index.ts';
import { REPLICA_CLUSTER_RULES, REPLICA_POD_RULES } from '../../control/index.ts';
import { policyServerClusterRoleName, policyServerLabels, policyServerObjectName } from './policy-server-names.ts';
import type { PolicyServerSettings } from './policy-server-settings.ts';

const GROUP = 'rbac.authorization.k8s.io';

/** Whose rights the pods have. */
export function serviceAccountOf({ metadata, spec: { serviceAccountName = '' } }: PolicyServer): string {
  return serviceAccountName === '' ? policyServerObjectName(metadata.name ?? '') : serviceAccountName;
}

/** The account of the pods. Undefined where the PolicyServer names one that is somebody else's. */
export function policyServerServiceAccount(
  server: PolicyServer,
  { namespace }: PolicyServerSettings,
): JsonObject | undefined {
  const name = policyServerObjectName(server.metadata.name ?? '');
  return serviceAccountOf(server) === name
    ? {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name, namespace, labels: labelsOf(server) },
        // Pods ask for the token; whoever else runs as this account does not get one by itself.
        automountServiceAccountToken: false,
      }
    : undefined;
}

/** Role and RoleBinding in the namespace of the product; ClusterRole and ClusterRoleBinding. */
export function policyServerAccess(
  server: PolicyServer,
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

function labelsOf({ metadata }: PolicyServer): JsonObject {
  return policyServerLabels(metadata.name ?? '');
}
