/** Ids of policies have no slash. */
const NAMESPACE_OWNER = 'namespace/';

/**
 * Whose time a policy uses. All policies of a namespace have one owner, since its users choose their number; any other policy is
 * its own owner.
 */
export function policyOwner(id: string, namespace: string | undefined): string {
  return namespace === undefined ? id : `${NAMESPACE_OWNER}${namespace}`;
}

/** Whether an owner is a namespace, not a single policy. */
export function isNamespaceOwner(owner: string): boolean {
  return owner.startsWith(NAMESPACE_OWNER);
}
