// What the objects of a PolicyServer are called, and how they are found.
import { MANAGED_BY } from '../managed-by.ts';
import { createHash } from 'node:crypto';
import { type KubernetesObject, POLICY_SERVER_LABEL } from '../../resources/index.ts';
import { dns1035LabelProblems } from '../../names/index.ts';

/** What the names of all objects of PolicyServers begin with, those of their service accounts too. */
export const POLICY_SERVER_PREFIX = 'policy-server-';
/** Of a Service, of a label's value. */
const MAX_LENGTH = 63;
/** Hexadecimal digits that stand for what a name cannot have: 40 bits. */
const HASH_DIGITS = 10;

/**
 * The name of the Deployment, the Service and all other objects of a PolicyServer: `policy-server-<name>`. The Service's is a
 * label of DNS (RFC 1035), so what has dots, or is too long, is cut and gets a hash.
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

/** The name of its ClusterRole and ClusterRoleBinding, which have no namespace of the product around them. */
export function policyServerClusterRoleName(policyServer: string): string {
  return `portcullis-${policyServerObjectName(policyServer)}`;
}

/** The names of the webhook configurations for the policies of a PolicyServer. */
export const CONFIGURATION_PREFIX = 'portcullis-';

/** On all objects of all PolicyServers. */
export const POLICY_SERVER_OBJECT_LABELS = {
  ...MANAGED_BY,
  'app.kubernetes.io/component': 'policy-server',
} as const;

/** On all objects of a PolicyServer. */
export function policyServerLabels(policyServer: string): Readonly<Record<string, string>> {
  return {
    'app.kubernetes.io/name': 'portcullis',
    'app.kubernetes.io/part-of': 'portcullis',
    ...POLICY_SERVER_OBJECT_LABELS,
    'app.kubernetes.io/instance': policyServerObjectName(policyServer),
    [POLICY_SERVER_LABEL]: policyServer,
  };
}

/** What its pods are found by, and nobody else's. A Deployment's selector never changes, so neither may this. */
export function policyServerSelector(policyServer: string): Readonly<Record<string, string>> {
  return {
    'app.kubernetes.io/part-of': 'portcullis',
    'app.kubernetes.io/component': 'policy-server',
    'app.kubernetes.io/instance': policyServerObjectName(policyServer),
  };
}

/** Whether an object was made by Portcullis for this PolicyServer. */
export function isObjectOf({ metadata }: Pick<KubernetesObject, 'metadata'>, policyServer: string): boolean {
  const { labels = {} } = metadata;
  return (
    labels['app.kubernetes.io/managed-by'] === POLICY_SERVER_OBJECT_LABELS['app.kubernetes.io/managed-by'] &&
    labels[POLICY_SERVER_LABEL] === policyServer
  );
}
