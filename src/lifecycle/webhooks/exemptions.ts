// Requests that no policy is asked about, so that nothing of the product can keep itself, or the cluster, from coming back.
// docs/enforcement.md has them as a table.
import { quote } from '../../go/index.ts';
import {
  GUARDED_GROUPS,
  type MatchCondition,
  type MatchRule,
  type MatchSelector,
  NAMESPACE_NAME_LABEL,
  POLICIES_GROUP,
  PORTCULLIS_GROUP,
} from '../../resources/index.ts';
import { mayBeAskedAboutProduct } from './product-requests.ts';
import type { Webhook } from './webhook-object.ts';

/** Namespaces that Kubernetes itself makes and needs before anything else runs. */
export const DEFAULT_EXEMPT_NAMESPACES: readonly string[] = ['kube-system', 'kube-public', 'kube-node-lease'];

/** What names of match conditions begin with that are ours, and not a policy's. */
const OURS = 'portcullis.dev/exempt-';

/** Who and what is exempt, beside what is by design. */
export interface ExemptionSettings {
  /** Policies of the whole cluster are not asked about what is in these. */
  readonly exemptNamespaces: readonly string[];
  /**
   * User names of the product itself; `*` at the end stands for any rest. No policy is asked about what the product does as
   * these. Gone through for each webhook: it may give others later.
   */
  readonly identities: Iterable<string>;
  /** Where the product writes whatever it needs. */
  readonly productNamespace: string;
}

/** Whether a match condition of a webhook is an exemption, not a policy's. */
export function isExemption({ name }: MatchCondition): boolean {
  return name.startsWith(OURS);
}

/**
 * What leaves out, of the requests that rules are for, those that are exempt. Groups that take part in mending a policy that
 * rejects everything are left out where rules name them by a wildcard only. What only the product writes always is: its own
 * records, and statuses of policies.
 *
 * Requests of the product are left out of webhooks that may be asked about one. Not of others: a match condition costs an API
 * server time with every request that the webhook is for, and most are for what the product never writes.
 *
 * @param rules of the policies that the webhook is of
 * @param webhook what it is asked about: more than that where its rules had to be widened
 */
export function exemptions(
  rules: readonly MatchRule[],
  webhook: Pick<Webhook, 'rules' | 'namespaceSelector'>,
  { identities: users, productNamespace }: Pick<ExemptionSettings, 'identities' | 'productNamespace'>,
): readonly MatchCondition[] {
  const identities = [...users];
  const named = new Set(rules.flatMap(({ apiGroups }) => apiGroups));
  // Rules that had to be widened name no group any more, whatever policies do.
  const isWild = named.has('*') || webhook.rules.some(({ apiGroups }) => apiGroups.includes('*'));
  const groups = GUARDED_GROUPS.filter((group) =>
    group === PORTCULLIS_GROUP ? isWild || named.has(group) : isWild && !named.has(group),
  );
  return [
    ...(groups.length === 0 ? [] : [condition('groups', `request.resource.group in [${quoted(groups)}]`)]),
    ...(named.has(POLICIES_GROUP)
      ? [
          condition(
            'policy-status',
            `request.resource.group == "${POLICIES_GROUP}" && has(request.subResource) && request.subResource == "status"`,
          ),
        ]
      : []),
    ...(identities.length === 0 || !mayBeAskedAboutProduct(webhook, productNamespace)
      ? []
      : [condition('identities', identitiesText(identities))]),
  ];
}

/** Webhooks of policies of the whole cluster: not in the exempt namespaces. */
export function outsideExemptNamespaces(
  selector: MatchSelector,
  { exemptNamespaces }: Pick<ExemptionSettings, 'exemptNamespaces'>,
): MatchSelector {
  if (exemptNamespaces.length === 0) {
    return selector;
  }
  const elsewhere = { key: NAMESPACE_NAME_LABEL, operator: 'NotIn', values: [...new Set(exemptNamespaces)].toSorted() };
  return { ...selector, matchExpressions: [...(selector.matchExpressions ?? []), elsewhere] };
}

function condition(name: string, isExempt: string): MatchCondition {
  return { name: `${OURS}${name}`, expression: `!(${isExempt})` };
}

function identitiesText(identities: readonly string[]): string {
  const sorted = [...new Set(identities)].toSorted();
  const exact = sorted.filter((one) => !one.endsWith('*'));
  const prefixes = sorted.filter((one) => one.endsWith('*')).map((one) => one.slice(0, -1));
  return [
    ...(exact.length === 0 ? [] : [`request.userInfo.username in [${quoted(exact)}]`]),
    ...prefixes.map((prefix) => `request.userInfo.username.startsWith(${quote(prefix)})`),
  ].join(' || ');
}

function quoted(texts: readonly string[]): string {
  return texts.map((text) => quote(text)).join(', ');
}
