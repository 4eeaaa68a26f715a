// Requests that no policy of a namespace sees, so that a tenant reaches neither rights nor the removal of its namespace. Used by
// the controller, which writes match conditions of webhooks, and by policy servers, which match reviews themselves.
import type { GroupVersionResource } from '../resource-type.ts';
import { POLICIES_GROUP, PORTCULLIS_GROUP } from '../kind-declarations/common-schemas.ts';

/**
 * Groups of privileged kinds, which decide what users may do and what is enforced: RBAC, tokens, access reviews, certificate
 * requests, webhooks and policies.
 */
export const PRIVILEGED_GROUPS: readonly string[] = [
  'rbac.authorization.k8s.io',
  'authentication.k8s.io',
  'authorization.k8s.io',
  'certificates.k8s.io',
  'admissionregistration.k8s.io',
  POLICIES_GROUP,
  PORTCULLIS_GROUP,
  'policy.open-cluster-management.io',
];

/** Token requests of service accounts, the only privileged kind of the core group. */
export const TOKEN_REQUESTS = { group: '', resource: 'serviceaccounts', subresource: 'token' } as const;

/** A privileged kind that a rule names. */
export interface PrivilegedName {
  /** Below the rule: `apiGroups[0]`. */
  readonly field: string;
  /** A group, or `serviceaccounts/token`. */
  readonly name: string;
}

/** The privileged kinds that a rule names, not by `*`. */
export function privilegedNames({
  apiGroups = [],
  resources,
}: {
  readonly apiGroups?: readonly string[];
  readonly resources: readonly string[];
}): readonly PrivilegedName[] {
  const named = (list: readonly string[], field: string, isNamed: (name: string) => boolean): PrivilegedName[] =>
    list.flatMap((name, index) => (isNamed(name) ? [{ field: `${field}[${index}]`, name }] : []));
  const tokens = `${TOKEN_REQUESTS.resource}/${TOKEN_REQUESTS.subresource}`;
  return [
    ...named(apiGroups, 'apiGroups', (group) => PRIVILEGED_GROUPS.includes(group)),
    ...named(resources, 'resources', (one) => one === tokens && apiGroups.includes(TOKEN_REQUESTS.group)),
  ];
}

/** Whether a resource is privileged. */
export function isPrivileged(
  { group, resource }: Pick<GroupVersionResource, 'group' | 'resource'>,
  subresource: string,
): boolean {
  return (
    PRIVILEGED_GROUPS.includes(group) ||
    (group === TOKEN_REQUESTS.group &&
      resource === TOKEN_REQUESTS.resource &&
      subresource === TOKEN_REQUESTS.subresource)
  );
}

/**
 * User names of the garbage collector and the namespace controller (k8s.io/kubernetes, cmd/kube-controller-manager). If a policy
 * could reject their deletions, a namespace could stay Terminating for ever.
 */
export const CLUSTER_COLLECTORS: readonly string[] = [
  'system:serviceaccount:kube-system:generic-garbage-collector',
  'system:serviceaccount:kube-system:namespace-controller',
];
