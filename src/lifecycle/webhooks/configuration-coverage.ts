// Reads from a webhook configuration in the cluster which policies' requests it covers.
import { isDeepStrictEqual } from 'node:util';
import {
  isNamespacedBucket,
  type MatchRule,
  NAMESPACE_NAME_LABEL,
  type PolicyMatch,
  policyOfBucket,
  RuleSet,
} from '../../resources/index.ts';
import { type ExemptionSettings, isExemption } from './exemptions.ts';
import { insideNamespaces } from './namespace-groups.ts';
import { ADMIT_PATH } from './webhook-configurations.ts';
import { clientConfig, type Webhook, type WebhookConfiguration, type WebhookTarget } from './webhook-object.ts';
import { isAtLeastAsWide } from './widest-selector.ts';

/** A webhook that calls a policy server. */
export interface ParsedWebhook {
  readonly webhook: Webhook;
  readonly bucket: string;
  /** The namespaces that it is limited to by name. */
  readonly namespaces: readonly string[] | undefined;
  readonly rules: RuleSet;
  /** Cache: whether its rules cover a rule, by the rule's JSON. */
  readonly covered: Map<string, boolean>;
}

/** The requests that one configuration covers. Created once per version of an object, and used for many policies. */
export class ConfigurationCoverage {
  readonly #isMutating: boolean;
  readonly #webhooks: readonly ParsedWebhook[];
  readonly #byBucket = new Map<string, ParsedWebhook[]>();

  constructor({ kind, webhooks = [] }: WebhookConfiguration) {
    this.#isMutating = kind === 'MutatingWebhookConfiguration';
    this.#webhooks = webhooks.flatMap((webhook) => parsedWebhook(webhook as Partial<Webhook>));
    for (const parsed of this.#webhooks) {
      for (const namespace of parsed.namespaces ?? ['']) {
        const key = keyOf(parsed.bucket, namespace);
        this.#byBucket.set(key, [...(this.#byBucket.get(key) ?? []), parsed]);
      }
    }
  }

  /** Whether one of the webhooks covers all requests of a match, except exempt ones. */
  covers(match: PolicyMatch, settings: Pick<ExemptionSettings, 'exemptNamespaces'>): boolean {
    return this.#covering(match, settings).next().done !== true;
  }

  /** The failurePolicies of the webhooks that cover a match. */
  failurePolicies(
    match: PolicyMatch,
    settings: Pick<ExemptionSettings, 'exemptNamespaces'>,
  ): readonly ('Fail' | 'Ignore')[] {
    return [...this.#covering(match, settings)].map(({ webhook }) => webhook.failurePolicy);
  }

  *#covering(
    match: PolicyMatch,
    settings: Pick<ExemptionSettings, 'exemptNamespaces'>,
  ): Generator<ParsedWebhook, undefined> {
    const { bucket, isMutating, namespace = '' } = match;
    if (isMutating !== this.#isMutating) {
      return;
    }
    for (const parsed of this.#byBucket.get(keyOf(bucket, namespace)) ?? []) {
      if (webhookCovers(parsed, match, settings)) {
        yield parsed;
      }
    }
  }

  /** Whether all webhooks have this target. */
  pointsTo(target: WebhookTarget): boolean {
    return this.#webhooks.every(({ webhook, bucket }) =>
      isDeepStrictEqual(webhook.clientConfig, clientConfig(target, `${ADMIT_PATH}${bucket}`)),
    );
  }

  /** Whether there is a webhook for this policy alone. */
  hasOwnWebhook(id: string): boolean {
    return this.#webhooks.some(({ bucket }) => policyOfBucket(bucket) === id);
  }

  /** The covered requests: one match for each webhook, or for each namespace that a webhook names. */
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

/** Empty for a webhook that calls no policy server. Fields may be missing, since users can edit configurations. */
export function parsedWebhook(webhook: Partial<Webhook>): readonly ParsedWebhook[] {
  const { clientConfig: place = {}, namespaceSelector = {}, rules = [], objectSelector = {} } = webhook;
  const { url, service } = place as { url?: string; service?: { path?: string } };
  const path = url === undefined ? service?.path : URL.parse(url)?.pathname;
  const at = path?.lastIndexOf(ADMIT_PATH) ?? -1;
  if (path === undefined || at === -1) {
    return [];
  }
  const bucket = path.slice(at + ADMIT_PATH.length);
  const [only, ...others] = namespaceSelector.matchExpressions ?? [];
  const isOfNamespaces =
    only?.key === NAMESPACE_NAME_LABEL &&
    only.operator === 'In' &&
    others.length === 0 &&
    namespaceSelector.matchLabels === undefined &&
    isNamespacedBucket(bucket);
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

function webhookCovers(
  { webhook, namespaces, rules: ruleSet, covered }: ParsedWebhook,
  match: PolicyMatch,
  settings: Pick<ExemptionSettings, 'exemptNamespaces'>,
): boolean {
  const rules = match.namespace === undefined ? match.rules : match.rules.flatMap(insideNamespaces);
  const required = webhook.namespaceSelector.matchExpressions?.filter((one) => !isExempt(one, settings)) ?? [];
  return (
    (webhook.failurePolicy === 'Fail' || match.failurePolicy === 'Ignore') &&
    (webhook.matchPolicy === 'Equivalent' || match.matchPolicy === 'Exact') &&
    webhook.timeoutSeconds >= match.timeoutSeconds &&
    isAtLeastAsWide(webhook.objectSelector, match.objectSelector) &&
    (namespaces !== undefined ||
      isAtLeastAsWide({ ...webhook.namespaceSelector, matchExpressions: required }, match.namespaceSelector)) &&
    (webhook.matchConditions ?? []).every(
      (one) =>
        isExemption(one) ||
        match.matchConditions.some(({ name, expression }) => name === one.name && expression === one.expression),
    ) &&
    rules.every((rule) => isCovered(ruleSet, rule, covered))
  );
}

function isCovered(rules: RuleSet, rule: MatchRule, cache: Map<string, boolean>): boolean {
  const key = JSON.stringify(rule);
  const result = cache.get(key) ?? rules.covers(rule);
  cache.set(key, result);
  return result;
}

type Expression = NonNullable<PolicyMatch['namespaceSelector']['matchExpressions']>[number];

/** Whether a requirement excludes only exempt namespaces. */
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
