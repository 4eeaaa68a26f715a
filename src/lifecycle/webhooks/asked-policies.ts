// What configurations in a cluster ask about, as they are there: whether that is what policies are for, and of which.
import { isDeepStrictEqual } from 'node:util';
import {
  isNamespacedPolicyId,
  type MatchRule,
  NAMESPACE_NAME_LABEL,
  ownBucket,
  type PolicyMatch,
  policyOfBucket,
  RuleSet,
} from '../../resources/index.ts';
import { type ExemptionSettings, isExemption } from './exemptions.ts';
import { insideNamespaces } from './namespace-groups.ts';
import { ADMIT_PATH } from './webhook-configurations.ts';
import { clientConfig, type Webhook, type WebhookConfiguration, type WebhookTarget } from './webhook-object.ts';
import { demandsNoMore } from './widest-selector.ts';

/** A webhook with what has been found out about it. */
interface KnownWebhook {
  readonly webhook: Webhook;
  readonly bucket: string;
  /** Where it asks in certain namespaces only. */
  readonly namespaces: readonly string[] | undefined;
  readonly rules: RuleSet;
  /** Whether its rules cover a rule, by the rule's text. */
  readonly covered: Map<string, boolean>;
}

/** What one configuration asks about. Made once for each version of an object, then asked about any number of policies. */
export class AskedPolicies {
  readonly #isMutating: boolean;
  readonly #webhooks: readonly KnownWebhook[];
  readonly #byBucket = new Map<string, KnownWebhook[]>();

  constructor({ kind, webhooks = [] }: WebhookConfiguration) {
    this.#isMutating = kind === 'MutatingWebhookConfiguration';
    this.#webhooks = webhooks.flatMap((webhook) => knownWebhook(webhook as Partial<Webhook>, this.#isMutating));
    for (const known of this.#webhooks) {
      for (const namespace of known.namespaces ?? ['']) {
        const key = keyOf(known.bucket, namespace);
        this.#byBucket.set(key, [...(this.#byBucket.get(key) ?? []), known]);
      }
    }
  }

  /** Whether all requests that a policy is for are asked about, but for those that are exempt. */
  isAskedAbout(match: PolicyMatch, settings: Pick<ExemptionSettings, 'exemptNamespaces'>): boolean {
    const { bucket, isMutating, namespace = '' } = match;
    return (
      isMutating === this.#isMutating &&
      (this.#byBucket.get(keyOf(bucket, namespace)) ?? []).some((known) => asksAbout(known, match, settings))
    );
  }

  /** Whether all webhooks are where a policy server is. */
  isAt(target: WebhookTarget): boolean {
    return this.#webhooks.every(({ webhook, bucket }) =>
      isDeepStrictEqual(webhook.clientConfig, clientConfig(target, `${ADMIT_PATH}${bucket}`)),
    );
  }

  /** Whether there is a webhook of a policy's own. */
  hasOwn(id: string): boolean {
    return this.#webhooks.some(({ bucket }) => policyOfBucket(bucket) === id);
  }

  /** What is asked about, as if each webhook, and each namespace that one names, were a policy. */
  matches(settings: Pick<ExemptionSettings, 'exemptNamespaces'>): readonly PolicyMatch[] {
    return this.#webhooks.flatMap(({ webhook, bucket, namespaces }) => {
      const { rules, failurePolicy, matchPolicy, objectSelector, timeoutSeconds, matchConditions = [] } = webhook;
      const expressions = (webhook.namespaceSelector.matchExpressions ?? []).filter((one) => !isExempt(one, settings));
      const { matchLabels } = webhook.namespaceSelector;
      const match: PolicyMatch = {
        bucket,
        isMutating: this.#isMutating,
        failurePolicy,
        matchPolicy,
        rules,
        namespaceSelector: {
          ...(matchLabels === undefined ? {} : { matchLabels }),
          ...(expressions.length === 0 ? {} : { matchExpressions: expressions }),
        },
        objectSelector,
        matchConditions: matchConditions.filter((one) => !isExemption(one)),
        timeoutSeconds,
      };
      return namespaces === undefined
        ? [match]
        : namespaces.map((namespace) => ({ ...match, namespace, namespaceSelector: {} }));
    });
  }
}

/** Somebody else may have written it. */
function knownWebhook(webhook: Partial<Webhook>, isMutating: boolean): readonly KnownWebhook[] {
  const { clientConfig: place = {}, namespaceSelector = {}, rules = [], objectSelector = {} } = webhook;
  const { url, service } = place as { url?: string; service?: { path?: string } };
  const path = url === undefined ? service?.path : URL.parse(url)?.pathname;
  const at = path?.lastIndexOf(ADMIT_PATH) ?? -1;
  if (path === undefined || at === -1) {
    return [];
  }
  const bucket = bucketOfPath(path.slice(at + ADMIT_PATH.length), isMutating);
  const [only, ...others] = namespaceSelector.matchExpressions ?? [];
  const isOfNamespaces =
    only?.key === NAMESPACE_NAME_LABEL &&
    only.operator === 'In' &&
    others.length === 0 &&
    namespaceSelector.matchLabels === undefined &&
    isOfNamespacesBucket(bucket);
  return [
    {
      webhook: { ...(webhook as Webhook), namespaceSelector, objectSelector, rules },
      bucket,
      namespaces: isOfNamespaces ? (only.values ?? []) : undefined,
      rules: new RuleSet(rules),
      covered: new Map(),
    },
  ];
}

/** The version before this one called a bucket of one policy by the policy's id, whichever kind of webhook asked there. */
function bucketOfPath(name: string, isMutating: boolean): string {
  return policyOfBucket(name) === name ? ownBucket(isMutating, name) : name;
}

/** Whether what is in a bucket are policies of namespaces. */
function isOfNamespacesBucket(bucket: string): boolean {
  const owner = policyOfBucket(bucket);
  return owner === undefined ? bucket.split('.').includes('namespaced') : isNamespacedPolicyId(owner);
}

function asksAbout(
  { webhook, namespaces, rules: asked, covered }: KnownWebhook,
  match: PolicyMatch,
  settings: Pick<ExemptionSettings, 'exemptNamespaces'>,
): boolean {
  const rules = match.namespace === undefined ? match.rules : match.rules.flatMap(insideNamespaces);
  const demanded = webhook.namespaceSelector.matchExpressions?.filter((one) => !isExempt(one, settings)) ?? [];
  return (
    (webhook.failurePolicy === 'Fail' || match.failurePolicy === 'Ignore') &&
    (webhook.matchPolicy === 'Equivalent' || match.matchPolicy === 'Exact') &&
    webhook.timeoutSeconds >= match.timeoutSeconds &&
    demandsNoMore(webhook.objectSelector, match.objectSelector) &&
    (namespaces !== undefined ||
      demandsNoMore({ ...webhook.namespaceSelector, matchExpressions: demanded }, match.namespaceSelector)) &&
    (webhook.matchConditions ?? []).every(
      (one) =>
        isExemption(one) ||
        match.matchConditions.some(({ name, expression }) => name === one.name && expression === one.expression),
    ) &&
    rules.every((rule) => isCovered(asked, rule, covered))
  );
}

function isCovered(rules: RuleSet, rule: MatchRule, known: Map<string, boolean>): boolean {
  const key = JSON.stringify(rule);
  const result = known.get(key) ?? rules.covers(rule);
  known.set(key, result);
  return result;
}

type Expression = NonNullable<PolicyMatch['namespaceSelector']['matchExpressions']>[number];

/** Whether a requirement leaves out exempt namespaces only. */
function isExempt(
  { key, operator, values = [] }: Expression,
  { exemptNamespaces }: Pick<ExemptionSettings, 'exemptNamespaces'>,
): boolean {
  return (
    key === NAMESPACE_NAME_LABEL && operator === 'NotIn' && values.every((value) => exemptNamespaces.includes(value))
  );
}

function keyOf(bucket: string, namespace: string): string {
  return `${bucket}/${namespace}`;
}
