// Namespaces that policies of the cluster do not cover, whatever their selectors say.
import { type MatchSelector, NAMESPACE_NAME_LABEL } from './policy-match.ts';

/** Namespaces of Kubernetes' own components, which must start before anything else. */
export const DEFAULT_EXEMPT_NAMESPACES: readonly string[] = ['kube-system', 'kube-public', 'kube-node-lease'];

/** The selector without exempt namespaces. */
export function outsideExemptNamespaces(selector: MatchSelector, exemptNamespaces: readonly string[]): MatchSelector {
  if (exemptNamespaces.length === 0) {
    return selector;
  }
  const elsewhere = { key: NAMESPACE_NAME_LABEL, operator: 'NotIn', values: [...new Set(exemptNamespaces)].toSorted() };
  return { ...selector, matchExpressions: [...(selector.matchExpressions ?? []), elsewhere] };
}
