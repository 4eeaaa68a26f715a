import { isJsonObject, labelSelector, SelectorError, textOf, textsOf } from '../../../resources/index.ts';
import type { JsonObject, JsonValue, KubernetesObject, MatchRule, Selector } from '../../../resources/index.ts';

/** The `clientConfig.service` of a webhook, with its defaults. */
export interface WebhookService {
  readonly namespace: string;
  readonly name: string;
  readonly path: string;
  readonly port: number;
}

/** The `clientConfig` of a webhook. */
export interface ClientConfig {
  readonly url: string | undefined;
  readonly service: WebhookService | undefined;
  /** PEM. Empty: the CAs that Node.js trusts. */
  readonly caBundle: string;
}

/** A CEL expression that must be true for a webhook to be called. */
interface MatchCondition {
  readonly name: string;
  readonly expression: string;
}

/** One webhook of a configuration, with its defaults. */
export interface ConfiguredWebhook {
  readonly kind: 'mutating' | 'validating';
  /** Unique among all webhooks of its kind: `configuration/name/n`, where `n` counts webhooks of the same name. */
  readonly id: string;
  /** The name in messages. */
  readonly name: string;
  readonly target: ClientConfig;
  readonly rules: readonly MatchRule[];
  readonly ignoresFailures: boolean;
  readonly matchesEquivalents: boolean;
  /** For a malformed selector, its error. */
  readonly namespaceSelector: Selector | SelectorError;
  readonly objectSelector: Selector | SelectorError;
  readonly matchConditions: readonly MatchCondition[];
  readonly timeoutSeconds: number;
  readonly supportsDryRun: boolean;
  readonly isReinvocable: boolean;
  readonly reviewVersions: readonly string[];
}

const DEFAULT_TIMEOUT_SECONDS = 10;
const HTTPS_PORT = 443;

/** All webhooks, in the order of the names of their configurations. */
export function webhooksOf(
  kind: ConfiguredWebhook['kind'],
  configurations: Iterable<KubernetesObject>,
): readonly ConfiguredWebhook[] {
  return [...configurations]
    .toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
    .flatMap((configuration) => {
      const counts = new Map<string, number>();
      return listOf(configuration.webhooks)
        .filter(isJsonObject)
        .map((webhook) => {
          const name = textOf(webhook.name);
          const count = counts.get(name) ?? 0;
          counts.set(name, count + 1);
          return readWebhook(kind, `${nameOf(configuration)}/${name}/${count}`, webhook);
        });
    });
}

function readWebhook(kind: ConfiguredWebhook['kind'], id: string, webhook: JsonObject): ConfiguredWebhook {
  const { timeoutSeconds, sideEffects } = webhook;
  return {
    kind,
    id,
    name: textOf(webhook.name),
    target: readTarget(webhook.clientConfig),
    rules: listOf(webhook.rules).filter(isJsonObject).map(readRule),
    ignoresFailures: webhook.failurePolicy === 'Ignore',
    matchesEquivalents: webhook.matchPolicy !== 'Exact',
    namespaceSelector: readSelector(webhook.namespaceSelector),
    objectSelector: readSelector(webhook.objectSelector),
    matchConditions: listOf(webhook.matchConditions)
      .filter(isJsonObject)
      .map(({ name, expression }) => ({ name: textOf(name), expression: textOf(expression) })),
    timeoutSeconds: typeof timeoutSeconds === 'number' ? timeoutSeconds : DEFAULT_TIMEOUT_SECONDS,
    supportsDryRun: sideEffects === 'None' || sideEffects === 'NoneOnDryRun',
    isReinvocable: webhook.reinvocationPolicy === 'IfNeeded',
    reviewVersions: textsOf(webhook.admissionReviewVersions),
  };
}

/** An absent selector matches everything. */
function readSelector(value: JsonValue | undefined): Selector | SelectorError {
  try {
    return labelSelector(value ?? {});
  } catch (error) {
    if (error instanceof SelectorError) {
      return error;
    }
    throw error;
  }
}

function readTarget(value: JsonValue | undefined): ClientConfig {
  const { url, service, caBundle } = isJsonObject(value) ? value : {};
  return {
    url: typeof url === 'string' ? url : undefined,
    service: isJsonObject(service) ? readService(service) : undefined,
    caBundle: Buffer.from(textOf(caBundle), 'base64').toString(),
  };
}

function readService({ namespace, name, path, port }: JsonObject): WebhookService {
  return {
    namespace: textOf(namespace),
    name: textOf(name),
    path: textOf(path) || '/',
    port: typeof port === 'number' ? port : HTTPS_PORT,
  };
}

function readRule({ operations, apiGroups, apiVersions, resources, scope }: JsonObject): MatchRule {
  return {
    operations: textsOf(operations),
    apiGroups: textsOf(apiGroups),
    apiVersions: textsOf(apiVersions),
    resources: textsOf(resources),
    scope: textOf(scope) || '*',
  };
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function nameOf(object: KubernetesObject): string {
  return object.metadata.name ?? '';
}
