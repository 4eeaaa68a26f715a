// Webhook configurations as Kubernetes objects.
import { isDeepStrictEqual } from 'node:util';
import type { KubernetesObject, MatchCondition, MatchRule, MatchSelector } from '../../resources/index.ts';

/** Where an API server reaches a policy server, and its CA certificates as PEM. */
export type WebhookTarget = { readonly ca: string } & (
  | { /** Base URL of the admission port. */ readonly url: string }
  | { readonly service: { readonly namespace: string; readonly name: string; readonly port: number } }
);

/** `admissionregistration.k8s.io/v1`, validating or mutating. */
export interface WebhookConfiguration extends KubernetesObject {
  readonly webhooks?: readonly object[];
}

/** One webhook of a configuration, with every field set: a difference from an omitted field could not be detected. */
export interface Webhook {
  readonly name: string;
  readonly admissionReviewVersions: readonly string[];
  readonly clientConfig: object;
  readonly rules: readonly MatchRule[];
  readonly failurePolicy: 'Fail' | 'Ignore';
  readonly matchPolicy: 'Exact' | 'Equivalent';
  /** Never empty: API servers drop empty lists. */
  readonly matchConditions?: readonly MatchCondition[];
  readonly objectSelector: MatchSelector;
  readonly namespaceSelector: MatchSelector;
  readonly sideEffects: string;
  readonly timeoutSeconds: number;
  /** Mutating webhooks only. */
  readonly reinvocationPolicy?: 'Never' | 'IfNeeded';
}

export function kindOfConfiguration(isMutating: boolean): string {
  return isMutating ? 'MutatingWebhookConfiguration' : 'ValidatingWebhookConfiguration';
}

/** `admissionregistration.k8s.io/v1` WebhookClientConfig for a path of a policy server. */
export function clientConfig(target: WebhookTarget, path: string): object {
  const caBundle = Buffer.from(target.ca).toString('base64');
  return 'url' in target
    ? { url: `${target.url}${path}`, caBundle }
    : { service: { ...target.service, path }, caBundle };
}

/** The actual object with the wanted webhooks, labels and annotations; undefined if it has them. Keeps labels and annotations of others. */
export function corrected(
  actual: WebhookConfiguration,
  { metadata, webhooks }: WebhookConfiguration,
): WebhookConfiguration | undefined {
  const labels = { ...actual.metadata.labels, ...metadata.labels };
  const annotations = { ...actual.metadata.annotations, ...metadata.annotations };
  const wanted = {
    ...actual,
    metadata: {
      ...actual.metadata,
      labels,
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    },
    webhooks: webhooks ?? [],
  };
  return isDeepStrictEqual(wanted, actual) ? undefined : wanted;
}
