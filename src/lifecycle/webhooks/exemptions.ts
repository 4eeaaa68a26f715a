// Requests that no policy sees, so that a policy can keep neither the product nor the cluster from recovering. Listed in
// docs/enforcement.md.
import { quote } from '../../go/index.ts';
import {
  type AccessRule,
  GUARDED_GROUPS,
  type MatchCondition,
  type MatchRule,
  POLICIES_GROUP,
  PORTCULLIS_GROUP,
} from '../../resources/index.ts';
import { namespacedExemption } from './namespaced-exemption.ts';
import { mayCoverProductRequests } from './product-requests.ts';
import { quotedList } from './quoted-list.ts';
import type { Webhook } from './webhook-object.ts';

/** Name prefix of match conditions that are exemptions, not a policy's. */
const EXEMPTION_PREFIX = 'portcullis.dev/exempt-';

export interface ExemptionSettings {
  /** Namespaces that cluster-wide policies do not cover. */
  readonly exemptNamespaces: readonly string[];
  /**
   * User names of the product, whose requests no policy sees; a `*` at the end matches any suffix. Iterated anew for each
   * webhook, so the names may change.
   */
  readonly identities: Iterable<string>;
  /** The namespace of the product's own objects. */
  readonly productNamespace: string;
  /** Access rules of further controllers of the product, such as those of governance. Default: none. */
  readonly furtherRules?: readonly AccessRule[];
}

/** Whether a match condition of a webhook is an exemption, not a policy's. */
export function isExemption({ name }: MatchCondition): boolean {
  return name.startsWith(EXEMPTION_PREFIX);
}

/**
 * Match conditions that exclude exempt requests:
 *
 * - for policies of the cluster, objects that only the product writes: its own records and the statuses of policies;
 * - API groups that are needed to repair a policy that rejects everything, unless rules name them, rather than `*`;
 * - for policies of namespaces, see {@link namespacedExemption};
 * - requests of the product itself, if the webhook can receive any. Most webhooks cannot, and a match condition costs API
 *   servers time for every request.
 *
 * @param rules of the policies
 * @param webhook its rules may be wider than those of the policies
 */
export function exemptions(
  rules: readonly MatchRule[],
  webhook: Pick<Webhook, 'rules' | 'namespaceSelector'> & { readonly isNamespaced: boolean },
  {
    identities: users,
    productNamespace,
    furtherRules,
  }: Pick<ExemptionSettings, 'identities' | 'productNamespace' | 'furtherRules'>,
): readonly MatchCondition[] {
  const identities = [...users];
  const named = new Set(rules.flatMap(({ apiGroups }) => apiGroups));
  // Widened rules have `*` for groups, whatever the policies name.
  const isWild = named.has('*') || webhook.rules.some(({ apiGroups }) => apiGroups.includes('*'));
  const unnamed = isWild ? GUARDED_GROUPS.filter((group) => !named.has(group)) : [];
  return [
    ...(webhook.isNamespaced
      ? conditionUnlessNone('from-namespaced', namespacedExemption(webhook.rules, unnamed))
      : clusterConditions(named, unnamed)),
    ...(identities.length === 0 || !mayCoverProductRequests(webhook, productNamespace, furtherRules)
      ? []
      : [condition('identities', identitiesText(identities))]),
  ];
}

/** For policies of the cluster. @param unnamed guarded groups that the rules match by `*` only */
function clusterConditions(named: ReadonlySet<string>, unnamed: readonly string[]): readonly MatchCondition[] {
  const groups = named.has(PORTCULLIS_GROUP) ? [...unnamed, PORTCULLIS_GROUP] : unnamed;
  const isStatus = `request.resource.group == "${POLICIES_GROUP}" && has(request.subResource) && request.subResource == "status"`;
  return [
    ...(groups.length === 0 ? [] : [condition('groups', `request.resource.group in [${quotedList(groups)}]`)]),
    ...(named.has(POLICIES_GROUP) ? [condition('policy-status', isStatus)] : []),
  ];
}

function conditionUnlessNone(name: string, isExempt: string | undefined): readonly MatchCondition[] {
  return isExempt === undefined ? [] : [condition(name, isExempt)];
}

function condition(name: string, isExempt: string): MatchCondition {
  return { name: `${EXEMPTION_PREFIX}${name}`, expression: `!(${isExempt})` };
}

function identitiesText(identities: readonly string[]): string {
  const sorted = [...new Set(identities)].toSorted();
  const exact = sorted.filter((one) => !one.endsWith('*'));
  const prefixes = sorted.filter((one) => one.endsWith('*')).map((one) => one.slice(0, -1));
  return [
    ...(exact.length === 0 ? [] : [`request.userInfo.username in [${quotedList(exact)}]`]),
    ...prefixes.map((prefix) => `request.userInfo.username.startsWith(${quote(prefix)})`),
  ].join(' || ');
}
