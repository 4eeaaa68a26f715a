// What API servers are told to ask a policy server: few webhooks for any number of policies. Pure: the same policies and
// settings give the same objects, in whatever order they come.
import { MANAGED_BY } from '../managed-by.ts';
import { createHash } from 'node:crypto';
import {
  isOwnBucket,
  type JsonObject,
  type MatchRule,
  type MatchSelector,
  NAMESPACE_NAME_LABEL,
  POLICY_SERVER_LABEL,
  type PolicyMatch,
  policyOfBucket,
  unionRules,
} from '../../resources/index.ts';
import { bytesOf, packed } from './configuration-parts.ts';
import { exemptions, type ExemptionSettings, isExemption, outsideExemptNamespaces } from './exemptions.ts';
import { type NamespaceGroup, namespaceGroups } from './namespace-groups.ts';
import {
  clientConfig,
  kindOfConfiguration,
  type Webhook,
  type WebhookConfiguration,
  type WebhookTarget,
} from './webhook-object.ts';
import { common, distinct, widestSelector } from './widest-selector.ts';

/** Where a policy server answers for all policies of a bucket. */
export const ADMIT_PATH = '/admit/';
/**
 * What follows a bucket in the name of its webhook, or the id of the policy that the bucket is of alone. Longer than what such
 * buckets begin with: where the name is not too long for an API server, the bucket is not too long for a path.
 */
export const WEBHOOK_SUFFIX = '.portcullis.dev';

/**
 * Rules of one webhook. Each is some 150 bytes, so they stay far below the bytes that an object may have; and an API server
 * looks at all of them for every request that no earlier one is for.
 */
export const MAX_RULES = 1_000;
/** Bytes of the rules of one webhook: with namespaces and selectors it stays far below what one object may have. */
export const MAX_RULES_BYTES = 200_000;
/** Hexadecimal digits that tell sets of rules apart: 128 bits, since tenants choose the rules. */
const GROUP_DIGITS = 32;

/** Conditions that an API server takes for one webhook (k8s.io/kubernetes 1.34, admissionregistration validation). */
export const MAX_MATCH_CONDITIONS = 64;

export interface WebhookSettings extends ExemptionSettings {
  readonly policyServer: string;
  readonly target: WebhookTarget;
}

export interface WebhookConfigurations {
  readonly configurations: readonly WebhookConfiguration[];
  /** Where more is asked about than policies are for, because a limit was reached. */
  readonly warnings: readonly string[];
}

/**
 * The configurations for what is asked of one policy server. Of each kind there is one, or none; more only where one could not
 * be stored.
 */
export function webhookConfigurations(asked: readonly PolicyMatch[], settings: WebhookSettings): WebhookConfigurations {
  const warnings: string[] = [];
  const configurations = [false, true].flatMap((isMutating) => {
    const buckets = Map.groupBy(
      asked.filter((match) => match.isMutating === isMutating),
      ({ bucket }) => bucket,
    );
    const webhooks = [...buckets]
      .toSorted(([one], [other]) => (namedAfter(one) < namedAfter(other) ? -1 : 1))
      .flatMap(([bucket, matches]) => webhooksOf(bucket, matches, settings, warnings));
    return packed(settings.policyServer, webhooks).map(({ name, webhooks: part }) =>
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
  const keepsOrder = isOwnBucket(bucket) || isOrdered(bucket);
  const limited = (rules: readonly MatchRule[]): readonly MatchRule[] => {
    const bytes = bytesOf(rules);
    if (isOwnBucket(bucket) || (rules.length <= MAX_RULES && bytes <= MAX_RULES_BYTES)) {
      return rules;
    }
    warnings.push(
      `webhook ${bucket}: its policies have ${rules.length} rules of ${bytes} bytes, expected at most ${MAX_RULES} and ${MAX_RULES_BYTES}: it asks about all resources`,
    );
    return ofAllResources(rules, matches[0]?.matchPolicy === 'Exact');
  };
  if (matches[0]?.namespace === undefined) {
    const rules = limited(unionRules(distinctRules(matches), { keepsOrder }));
    const selector = widestSelector(matches.map(({ namespaceSelector }) => namespaceSelector));
    return webhookOf(bucket, '', matches, rules, outsideExemptNamespaces(selector, settings), settings);
  }
  const { groups, isMerged } = namespaceGroups(matches, keepsOrder);
  if (isMerged) {
    warnings.push(
      `webhook ${bucket}: its namespaces have too many sets of rules: some are asked about rules of each other's policies`,
    );
  }
  return groups.flatMap((group) => {
    const suffix = isOwnBucket(bucket) ? '' : `.${groupName(group)}`;
    return webhookOf(bucket, suffix, group.matches, limited(group.rules), selectorOf(group), settings);
  });
}

/** What the name of a bucket's webhook begins with. */
function namedAfter(bucket: string): string {
  return policyOfBucket(bucket) ?? bucket;
}

/** None where rules are for no request at all. */
function webhookOf(
  bucket: string,
  suffix: string,
  matches: readonly PolicyMatch[],
  rules: readonly MatchRule[],
  namespaceSelector: MatchSelector,
  settings: WebhookSettings,
): readonly Webhook[] {
  const isMutating = matches[0]?.isMutating === true;
  const own = isOwnBucket(bucket) ? common(matches.map(({ matchConditions }) => matchConditions)) : [];
  // By what policies say: of rules of which one includes the other, only one is left.
  const exempt = exemptions(distinctRules(matches), { rules, namespaceSelector }, settings);
  const matchConditions = [...own.filter((one) => !isExemption(one)), ...exempt];
  const webhook: Webhook = {
    name: `${namedAfter(bucket)}${suffix}${WEBHOOK_SUFFIX}`,
    admissionReviewVersions: ['v1'],
    clientConfig: clientConfig(settings.target, `${ADMIT_PATH}${bucket}`),
    rules,
    failurePolicy: matches.some(({ failurePolicy }) => failurePolicy === 'Fail') ? 'Fail' : 'Ignore',
    matchPolicy: matches.some(({ matchPolicy }) => matchPolicy === 'Equivalent') ? 'Equivalent' : 'Exact',
    ...(matchConditions.length === 0 ? {} : { matchConditions }),
    objectSelector: widestSelector(matches.map(({ objectSelector }) => objectSelector)),
    namespaceSelector,
    // What a policy would do to the outside it does not do on dry runs: one that would is refused.
    sideEffects: 'NoneOnDryRun',
    timeoutSeconds: Math.max(...matches.map(({ timeoutSeconds }) => timeoutSeconds)),
    ...(isMutating ? { reinvocationPolicy: 'IfNeeded' } : {}),
  };
  return rules.length === 0 ? [] : [webhook];
}

/**
 * The configuration that one policy would have if there were no others: what an API server says to it, it says of the policy.
 * With the exemptions, where the policy is to have a webhook for itself.
 */
export function standaloneConfiguration(
  id: string,
  match: PolicyMatch,
  sideEffects: string,
  settings: WebhookSettings,
): WebhookConfiguration {
  const { namespace, isMutating, rules } = match;
  const namespaceSelector = namespace === undefined ? match.namespaceSelector : inNamespaces([namespace]);
  const ofOwn = isOwnBucket(match.bucket) ? exemptions(rules, { rules, namespaceSelector }, settings) : [];
  const matchConditions = [...match.matchConditions, ...ofOwn];
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

export function inNamespaces(namespaces: readonly string[]): MatchSelector {
  return { matchExpressions: [{ key: NAMESPACE_NAME_LABEL, operator: 'In', values: namespaces }] };
}

/** Whether the policies of a bucket share their rules, whose order decides in which version a request comes. */
function isOrdered(bucket: string): boolean {
  return bucket.slice(bucket.lastIndexOf('.') + 1).startsWith('x');
}

function distinctRules(matches: readonly PolicyMatch[]): readonly MatchRule[] {
  return distinct(matches.flatMap(({ rules }) => rules));
}

function selectorOf({ namespaces }: NamespaceGroup): MatchSelector {
  return inNamespaces(namespaces);
}

/** Told apart by what they ask: a namespace that comes or goes renames no webhook of others. */
function groupName({ rules, part }: NamespaceGroup): string {
  const hash = createHash('sha256').update(JSON.stringify(rules)).digest('hex').slice(0, GROUP_DIGITS);
  return part === 0 ? hash : `${hash}-${part}`;
}

/**
 * As much as the rules ask and more, in few: operations and scopes are as they are, and versions where requests are converted
 * to them, which all rules of a bucket name alike.
 */
function ofAllResources(rules: readonly MatchRule[], isExact: boolean): readonly MatchRule[] {
  const wide = { apiGroups: ['*'], resources: ['*/*'], ...(isExact ? { apiVersions: ['*'] } : {}) };
  return unionRules(rules.map((rule) => ({ ...rule, ...wide })));
}

/** As the API server takes it. */
export function bodyOf(configuration: WebhookConfiguration): JsonObject {
  return configuration as unknown as JsonObject;
}
