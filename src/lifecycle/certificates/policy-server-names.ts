// Names and labels of the objects of a PolicyServer.
import { createHash } from 'node:crypto';
import { type KubernetesObject, POLICY_SERVER_LABEL, MANAGED_BY } from '../../resources/index.ts';
import { dns1035LabelProblems } from '../../names/index.ts';

/** Prefix of the names of all objects of PolicyServers, including service accounts. */
export const POLICY_SERVER_PREFIX = 'policy-server-';
/** Limit of Service names and label values. */
const MAX_LENGTH = 63;
/** Hexadecimal digits of a hash that replaces invalid characters: 40 bits. */
const HASH_DIGITS = 10;

/**
 * The name of the Deployment, the Service and the other objects of a PolicyServer: `policy-server-<name>`. A Service
 * name is a DNS label (RFC 1035), so longer names, or names with dots, are cut and get a hash.
 */
export function policyServerObjectName(policyServer: string): string {
  const name = `${POLICY_SERVER_PREFIX}${policyServer}`;
  if (dns1035LabelProblems(name).length === 0) {
    return name;
  }
  const hash = createHash('sha256').update(policyServer).digest('hex').slice(0, HASH_DIGITS);
  const simple = policyServer.toLowerCase().replaceAll(/[^a-z0-9-]+/g, '-');
  const kept = simple.slice(0, MAX_LENGTH - POLICY_SERVER_PREFIX.length - HASH_DIGITS - 1).replace(/-+$/, '');
  return `${POLICY_SERVER_PREFIX}${kept === '' ? '' : `${kept}-`}${hash}`;
}

/** Prefix of the names of all ClusterRoles and ClusterRoleBindings that the controller writes. */
export const POLICY_SERVER_CLUSTER_ROLE_PREFIX = `portcullis-${POLICY_SERVER_PREFIX}`;

/** The name of its ClusterRole and ClusterRoleBinding, which are cluster-scoped and need a prefix. */
export function policyServerClusterRoleName(policyServer: string): string {
  return `portcullis-${policyServerObjectName(policyServer)}`;
}

/** Labels of all objects of all PolicyServers. */
export const POLICY_SERVER_OBJECT_LABELS = {
  ...MANAGED_BY,
  'app.kubernetes.io/component': 'policy-server',
} as const;

/** Labels of all objects of a PolicyServer. */
export function policyServerLabels(policyServer: string): Readonly<Record<string, string>> {
  return {
    'app.kubernetes.io/name': 'portcullis',
    'app.kubernetes.io/part-of': 'portcullis',
    ...POLICY_SERVER_OBJECT_LABELS,
    'app.kubernetes.io/instance': policyServerObjectName(policyServer),
    [POLICY_SERVER_LABEL]: policyServer,
  };
}

/** Selects the pods of a PolicyServer only. The selector of a Deployment is immutable, so this must not change. */
export function policyServerSelector(policyServer: string): Readonly<Record<string, string>> {
  return {
    'app.kubernetes.io/part-of': 'portcullis',
    'app.kubernetes.io/component': 'policy-server',
    'app.kubernetes.io/instance': policyServerObjectName(policyServer),
  };
}

/** Whether Portcullis created an object for this PolicyServer. */
export function isObjectOf({ metadata }: Pick<KubernetesObject, 'metadata'>, policyServer: string): boolean {
  const { labels = {} } = metadata;
  return (
    labels['app.kubernetes.io/managed-by'] === POLICY_SERVER_OBJECT_LABELS['app.kubernetes.io/managed-by'] &&
    labels[POLICY_SERVER_LABEL] === policyServer
  );
}
