// Computes webhook configurations: few webhooks for any number of policies. Pure: the same policies and settings give the
// same objects, whatever their order.
import { createHash } from 'node:crypto';
import {
  isNamespacedBucket,
  isOwnBucket,
  type JsonObject,
  type MatchRule,
  type MatchSelector,
  NAMESPACE_NAME_LABEL,
  outsideExemptNamespaces,
  POLICY_SERVER_LABEL,
  type PolicyMatch,
  policyOfBucket,
  unionRules,
  MANAGED_BY,
} from '../../resources/index.ts';
import { bytesOf, packWebhooks } from './configuration-parts.ts';
import { exemptions, type ExemptionSettings, isExemption } from './exemptions.ts';
import { type NamespaceGroup, namespaceGroups } from './namespace-groups.ts';
import {
  clientConfig,
  kindOfConfiguration,
  type Webhook,
  type WebhookConfiguration,
  type WebhookTarget,
} from './webhook-object.ts';
import { common, distinct, widestSelector } from './widest-selector.ts';

/** The path of a policy server for reviews of a bucket. */
export const ADMIT_PATH = '/admit/';
/**
 * Ends the name of a webhook, after the bucket or, for a policy's own webhook, after the policy's id. It is longer than the
 * prefix `validating.` of such a bucket, so where the name is short enough for API servers, the bucket fits into a path.
 */
export const WEBHOOK_SUFFIX = '.portcullis.dev';

/**
 * Rules of one webhook. At some 150 bytes each, they stay far below the size limit of an object; and API servers try them in
 * turn for every request.
 */
export const MAX_RULES = 1_000;
/** Bytes of the rules of one webhook: with namespaces and selectors, it stays far below the size limit of an object. */
const MAX_RULES_BYTES = 200_000;
/** Hexadecimal digits of the hash of a group's rules: 128 bits, because tenants choose the rules and must not find collisions. */
const GROUP_DIGITS = 32;

/** Match conditions that API servers accept for one webhook (k8s.io/kubernetes 1.34, admissionregistration validation). */
export const MAX_MATCH_CONDITIONS = 64;

export interface WebhookSettings extends ExemptionSettings {
  readonly policyServer: string;
  readonly target: WebhookTarget;
}

export interface WebhookConfigurations {
  readonly configurations: readonly WebhookConfiguration[];
  /** Webhooks that cover more requests than their policies match, because of a limit. */
  readonly warnings: readonly string[];
}

/**
 * The configurations of one policy server: a validating one, and mutating ones for namespaced and for other policies; more where
 * one would be too large to store.
 */
export function webhookConfigurations(
  policyMatches: readonly PolicyMatch[],
  settings: WebhookSettings,
): WebhookConfigurations {
  const warnings: string[] = [];
  const validating = policyMatches.filter(({ isMutating }) => !isMutating);
  const mutating = policyMatches.filter(({ isMutating }) => isMutating);
  const configurations = [
    { isMutating: false, isOfNamespaces: false, matches: validating },
    { isMutating: true, isOfNamespaces: true, matches: mutating.filter(({ bucket }) => isNamespacedBucket(bucket)) },
    { isMutating: true, isOfNamespaces: false, matches: mutating.filter(({ bucket }) => !isNamespacedBucket(bucket)) },
  ].flatMap(({ isMutating, isOfNamespaces, matches: all }) => {
    const buckets = Map.groupBy(all, ({ bucket }) => bucket);
    const webhooks = [...buckets]
      .toSorted(([one], [other]) => (webhookNamePrefix(one) < webhookNamePrefix(other) ? -1 : 1))
      .flatMap(([bucket, matches]) => webhooksOf(bucket, matches, settings, warnings));
    return packWebhooks(settings.policyServer, webhooks, isOfNamespaces).map(({ name, webhooks: part }) =>
      configurationOf(name, part, isMutating, settings.policyServer),
    );
  });
  return { configurations, warnings };
}

function configurationOf(
  name: string,
  webhooks: readonly Webhook[],
  isMutating: boolean,
  policyServer: string,
): WebhookConfiguration {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: kindOfConfiguration(isMutating),
    metadata: { name, labels: { ...MANAGED_BY, [POLICY_SERVER_LABEL]: policyServer } },
    webhooks,
  };
}

function webhooksOf(
  bucket: string,
  matches: readonly PolicyMatch[],
  settings: WebhookSettings,
  warnings: string[],
): readonly Webhook[] {
  const isInOrder = keepsOrder(bucket);
  const limited = (rules: readonly MatchRule[]): readonly MatchRule[] => {
    const bytes = bytesOf(rules);
    if (isOwnBucket(bucket) || (rules.length <= MAX_RULES && bytes <= MAX_RULES_BYTES)) {
      return rules;
    }
    warnings.push(
      `webhook ${bucket}: its policies have ${rules.length} rules of ${bytes} bytes, expected at most ${MAX_RULES} and ${MAX_RULES_BYTES}: it covers all resources`,
    );
    return widenedToAllResources(rules, matches[0]?.matchPolicy === 'Exact');
  };
  if (matches[0]?.namespace === undefined) {
    const rules = limited(unionRules(distinctRules(matches), { keepsOrder: isInOrder }));
    const selector = widestSelector(matches.map(({ namespaceSelector }) => namespaceSelector));
    return webhookOf(
      bucket,
      '',
      matches,
      rules,
      outsideExemptNamespaces(selector, settings.exemptNamespaces),
      settings,
    );
  }
  const { groups, isMerged } = namespaceGroups(matches, isInOrder);
  if (isMerged) {
    warnings.push(
      `webhook ${bucket}: its namespaces have too many sets of rules: some are covered by the rules of each other's policies`,
    );
  }
  return groups.flatMap((group) => {
    const suffix = isOwnBucket(bucket) ? '' : `.${groupName(group)}`;
    return webhookOf(bucket, suffix, group.matches, limited(group.rules), selectorOf(group), settings);
  });
}

function webhookNamePrefix(bucket: string): string {
  return policyOfBucket(bucket) ?? bucket;
}

/** Empty if the rules are. */
function webhookOf(
  bucket: string,
  suffix: string,
  matches: readonly PolicyMatch[],
  rules: readonly MatchRule[],
  namespaceSelector: MatchSelector,
  settings: WebhookSettings,
): readonly Webhook[] {
  const isMutating = matches[0]?.isMutating === true;
  const isNamespaced = matches[0]?.namespace !== undefined;
  const own = isOwnBucket(bucket) ? common(matches.map(({ matchConditions }) => matchConditions)) : [];
  // Exemptions depend on groups that policies name; a union of rules may have dropped some.
  const exempt = exemptions(distinctRules(matches), { rules, namespaceSelector, isNamespaced }, settings);
  const matchConditions = [...own.filter((one) => !isExemption(one)), ...exempt];
  const webhook: Webhook = {
    name: `${webhookNamePrefix(bucket)}${suffix}${WEBHOOK_SUFFIX}`,
    admissionReviewVersions: ['v1'],
    clientConfig: clientConfig(settings.target, `${ADMIT_PATH}${bucket}`),
    rules,
    failurePolicy: matches.some(({ failurePolicy }) => failurePolicy === 'Fail') ? 'Fail' : 'Ignore',
    matchPolicy: matches.some(({ matchPolicy }) => matchPolicy === 'Equivalent') ? 'Equivalent' : 'Exact',
    ...(matchConditions.length === 0 ? {} : { matchConditions }),
    objectSelector: widestSelector(matches.map(({ objectSelector }) => objectSelector)),
    namespaceSelector,
    // Policies have no side effects on dry runs: API servers refuse others when their own webhook is dry-run.
    sideEffects: 'NoneOnDryRun',
    timeoutSeconds: Math.max(...matches.map(({ timeoutSeconds }) => timeoutSeconds)),
    ...(isMutating ? { reinvocationPolicy: 'IfNeeded' } : {}),
  };
  return rules.length === 0 ? [] : [webhook];
}

/**
 * The configuration of a single policy, for dry runs: an API server's errors then concern that policy alone. It has exemptions
 * only if the policy gets its own webhook.
 */
export function standaloneConfiguration(
  id: string,
  match: PolicyMatch,
  sideEffects: string,
  settings: WebhookSettings,
): WebhookConfiguration {
  const { namespace, isMutating, rules } = match;
  const namespaceSelector = namespace === undefined ? match.namespaceSelector : inNamespaces([namespace]);
  const isNamespaced = namespace !== undefined;
  const exempt = isOwnBucket(match.bucket)
    ? exemptions(rules, { rules, namespaceSelector, isNamespaced }, settings)
    : [];
  const matchConditions = [...match.matchConditions, ...exempt];
  const webhook: Webhook = {
    name: `${id}${WEBHOOK_SUFFIX}`,
    admissionReviewVersions: ['v1'],
    clientConfig: clientConfig(settings.target, `${ADMIT_PATH}${match.bucket}`),
    rules,
    failurePolicy: match.failurePolicy,
    matchPolicy: match.matchPolicy,
    ...(matchConditions.length === 0 ? {} : { matchConditions }),
    objectSelector: match.objectSelector,
    namespaceSelector,
    sideEffects,
    timeoutSeconds: match.timeoutSeconds,
    ...(isMutating ? { reinvocationPolicy: 'IfNeeded' } : {}),
  };
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: kindOfConfiguration(isMutating),
    metadata: { name: id, labels: { ...MANAGED_BY, [POLICY_SERVER_LABEL]: settings.policyServer } },
    webhooks: [webhook],
  };
}

function inNamespaces(namespaces: readonly string[]): MatchSelector {
  return { matchExpressions: [{ key: NAMESPACE_NAME_LABEL, operator: 'In', values: namespaces }] };
}

/** Whether the order of the rules of a bucket decides to which version requests are converted. */
export function keepsOrder(bucket: string): boolean {
  return isOwnBucket(bucket) || isOrdered(bucket);
}

/** Whether policies of a bucket have the same rules, whose order decides to which version requests are converted. */
function isOrdered(bucket: string): boolean {
  return bucket.slice(bucket.lastIndexOf('.') + 1).startsWith('x');
}

function distinctRules(matches: readonly PolicyMatch[]): readonly MatchRule[] {
  return distinct(matches.flatMap(({ rules }) => rules));
}

function selectorOf({ namespaces }: NamespaceGroup): MatchSelector {
  return inNamespaces(namespaces);
}

/** Named after the rules: a new or deleted namespace renames no other webhook. */
function groupName({ rules, part }: NamespaceGroup): string {
  const hash = createHash('sha256').update(JSON.stringify(rules)).digest('hex').slice(0, GROUP_DIGITS);
  return part === 0 ? hash : `${hash}-${part}`;
}

/**
 * Few rules that cover all resources. Operations and scopes stay, and so do versions, unless `matchPolicy` is Exact:
 * otherwise API servers convert requests to them, and all rules of a bucket have the same ones.
 */
function widenedToAllResources(rules: readonly MatchRule[], isExact: boolean): readonly MatchRule[] {
  const wide = { apiGroups: ['*'], resources: ['*/*'], ...(isExact ? { apiVersions: ['*'] } : {}) };
  return unionRules(rules.map((rule) => ({ ...rule, ...wide })));
}

export function bodyOf(configuration: WebhookConfiguration): JsonObject {
  return configuration as JsonObject;
}
