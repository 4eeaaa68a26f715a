// Changes webhook configurations without a controller: for policies that are disarmed, or armed again, while none runs. A controller
// that runs computes them anew.
import { type PolicyMatch, unionRules, webhookMatches } from '../../resources/index.ts';
import { type ParsedWebhook, parsedWebhook } from './configuration-coverage.ts';
import { insideNamespaces } from './namespace-groups.ts';
import { keepsOrder } from './webhook-configurations.ts';
import type { Webhook, WebhookConfiguration } from './webhook-object.ts';
import { distinct } from './widest-selector.ts';

/** No request meets this condition, so API servers do not call the webhook. The webhook itself stays, to be armed again. */
const DISARMED = { name: 'disarmed.portcullis.dev', expression: 'false' } as const;

/** The configuration with no webhook that API servers call; undefined if it is that already. */
export function disarmedConfiguration(configuration: WebhookConfiguration): WebhookConfiguration | undefined {
  return changed(configuration, disarmed);
}

/** The configuration with all of its webhooks called again; undefined if they are. */
export function armedConfiguration(configuration: WebhookConfiguration): WebhookConfiguration | undefined {
  return changed(configuration, armed);
}

/** Whether API servers call no webhook of a configuration, because of {@link disarmedConfiguration}. */
export function isDisarmed({ webhooks = [] }: WebhookConfiguration): boolean {
  return webhooks.length > 0 && webhooks.every((webhook) => isDisarmedWebhook(webhook as Webhook));
}

/**
 * The configuration as one policy needs it after it was disarmed or armed again; undefined if it is that already. Only webhooks that
 * are for the policy change: their rules become those of all policies that are armed.
 *
 * @param policy the match of the policy
 * @param others the matches of all armed policies of the same PolicyServer, with that of the policy if it is armed
 */
export function reducedConfiguration(
  configuration: WebhookConfiguration,
  policy: PolicyMatch,
  others: readonly PolicyMatch[],
): WebhookConfiguration | undefined {
  const isMutating = configuration.kind === 'MutatingWebhookConfiguration';
  const concerned = webhookMatches(policy);
  const all = others.flatMap(webhookMatches);
  return changed(configuration, (webhook) => {
    const [parsed] = parsedWebhook(webhook);
    if (parsed === undefined || !concerned.some((match) => isFor(parsed, match, isMutating))) {
      return webhook;
    }
    const matches = all.filter((match) => isFor(parsed, match, isMutating));
    const rules = unionRules(distinct(matches.flatMap(rulesOf)), { keepsOrder: keepsOrder(parsed.bucket) });
    return rules.length === 0 ? disarmed(webhook) : { ...armed(webhook), rules };
  });
}

function isFor({ bucket, namespaces }: ParsedWebhook, match: PolicyMatch, isMutating: boolean): boolean {
  return (
    match.isMutating === isMutating &&
    match.bucket === bucket &&
    (namespaces === undefined || namespaces.includes(match.namespace ?? ''))
  );
}

function rulesOf({ namespace, rules }: PolicyMatch): PolicyMatch['rules'] {
  return namespace === undefined ? rules : rules.flatMap(insideNamespaces);
}

function changed(
  configuration: WebhookConfiguration,
  change: (webhook: Webhook) => Webhook,
): WebhookConfiguration | undefined {
  const before = (configuration.webhooks ?? []) as readonly Webhook[];
  const webhooks = before.map(change);
  return webhooks.every((webhook, index) => webhook === before[index]) ? undefined : { ...configuration, webhooks };
}

function disarmed(webhook: Webhook): Webhook {
  return isDisarmedWebhook(webhook)
    ? webhook
    : { ...webhook, matchConditions: [...(webhook.matchConditions ?? []), DISARMED] };
}

function armed(webhook: Webhook): Webhook {
  if (!isDisarmedWebhook(webhook)) {
    return webhook;
  }
  const { matchConditions = [], ...others } = webhook;
  const kept = matchConditions.filter(({ name }) => name !== DISARMED.name);
  return kept.length === 0 ? others : { ...others, matchConditions: kept };
}

function isDisarmedWebhook({ matchConditions = [] }: Webhook): boolean {
  return matchConditions.some(({ name }) => name === DISARMED.name);
}
