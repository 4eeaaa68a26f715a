// The webhook configuration that makes an API server ask about a policy (contract section 6).
import { isDeepStrictEqual } from 'node:util';
import type { KubernetesObject, ObjectKey } from '../resources/index.ts';
import { isGroupSpec, policyId } from '../resources/index.ts';
import type { AdmissionPolicyObject } from '../resources/index.ts';

/** Found on everything that we write for a policy. */
export const MANAGED_BY = { 'app.kubernetes.io/managed-by': 'portcullis' } as const;

export interface WebhookTarget {
  /** Base URL of the policy server's admission port. */
  readonly url: string;
  /** PEM of the CA that its certificate comes from. */
  readonly ca: string;
}

/** Whether the API server asks the policy before objects are complete. */
export function isMutating({ spec }: Pick<AdmissionPolicyObject, 'spec'>): boolean {
  return !isGroupSpec(spec) && spec.mutating;
}

/** `admissionregistration.k8s.io/v1`, validating or mutating. */
export interface WebhookConfiguration extends KubernetesObject {
  readonly webhooks?: readonly object[];
}

/**
 * The configuration for one policy, named by its id. Nothing is left to the API server's defaults: a field that a policy no
 * longer sets, or that somebody set by hand, is seen to differ.
 */
export function webhookConfiguration(policy: AdmissionPolicyObject, target: WebhookTarget): WebhookConfiguration {
  const { spec } = policy;
  const id = policyId(policy);
  const { namespace } = policy.metadata;
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: isMutating(policy) ? 'MutatingWebhookConfiguration' : 'ValidatingWebhookConfiguration',
    metadata: {
      name: id,
      labels: MANAGED_BY,
      annotations: {
        kubewardenPolicyName: policy.metadata.name ?? '',
        ...(namespace === undefined ? {} : { kubewardenPolicyNamespace: namespace }),
      },
    },
    webhooks: [
      {
        name: `${id}.kubewarden.admission`,
        admissionReviewVersions: ['v1'],
        clientConfig: {
          url: `${target.url}/validate/${id}`,
          caBundle: Buffer.from(target.ca).toString('base64'),
        },
        rules: spec.rules.map((rule) => ({ ...rule, scope: rule.scope ?? '*' })),
        failurePolicy: spec.failurePolicy ?? 'Fail',
        matchPolicy: spec.matchPolicy ?? 'Equivalent',
        ...(spec.matchConditions === undefined || spec.matchConditions.length === 0
          ? {}
          : { matchConditions: spec.matchConditions }),
        objectSelector: spec.objectSelector ?? {},
        namespaceSelector: namespaceSelector(policy),
        sideEffects: spec.sideEffects ?? 'None',
        timeoutSeconds: spec.timeoutSeconds,
        ...(isMutating(policy) ? { reinvocationPolicy: 'Never' } : {}),
      },
    ],
  };
}

/** A policy of a namespace is for that namespace only. */
function namespaceSelector({ metadata, spec }: AdmissionPolicyObject): object {
  if (metadata.namespace !== undefined) {
    return { matchLabels: { 'kubernetes.io/metadata.name': metadata.namespace } };
  }
  return ('namespaceSelector' in spec ? spec.namespaceSelector : undefined) ?? {};
}

/** What two revisions of a policy may select differently, so that only what selects nothing covers both. */
const SELECTORS = ['objectSelector', 'namespaceSelector', 'matchConditions'] as const;

/**
 * One configuration for all requests that any of them is for: more is asked about than each of them says, for as long as one
 * revision takes another's place. What cannot be united is as in the last.
 */
export function widened(last: WebhookConfiguration, others: readonly WebhookConfiguration[]): WebhookConfiguration {
  const webhooks = [...others, last].flatMap(({ webhooks: [webhook] = [] }) => webhook ?? []) as readonly Webhook[];
  const own = webhooks.at(-1);
  if (own === undefined || webhooks.length === 1) {
    return last;
  }
  const wide: Record<string, unknown> = { ...own };
  wide['rules'] = webhooks
    .flatMap(({ rules }) => rules)
    .filter((rule, index, all) => all.findIndex((other) => isDeepStrictEqual(other, rule)) === index);
  wide['timeoutSeconds'] = Math.max(...webhooks.map(({ timeoutSeconds }) => timeoutSeconds));
  for (const field of SELECTORS) {
    if (!webhooks.every((webhook) => isDeepStrictEqual(webhook[field], own[field]))) {
      if (field === 'matchConditions') {
        delete wide[field];
      } else {
        wide[field] = {};
      }
    }
  }
  if (webhooks.some(({ matchPolicy }) => matchPolicy === 'Equivalent')) {
    wide['matchPolicy'] = 'Equivalent';
  }
  if (webhooks.some(({ failurePolicy }) => failurePolicy === 'Fail')) {
    wide['failurePolicy'] = 'Fail';
  }
  return { ...last, webhooks: [wide] };
}

interface Webhook extends Readonly<Record<(typeof SELECTORS)[number], unknown>> {
  readonly rules: readonly object[];
  readonly timeoutSeconds: number;
  readonly matchPolicy: string;
  readonly failurePolicy: string;
}

/** What is in the cluster, put right; undefined when it is right. Labels and annotations of others stay. */
export function corrected(
  actual: WebhookConfiguration,
  { metadata, webhooks }: WebhookConfiguration,
): WebhookConfiguration | undefined {
  const labels = { ...actual.metadata.labels, ...metadata.labels };
  const annotations = { ...actual.metadata.annotations, ...metadata.annotations };
  const wanted = { ...actual, metadata: { ...actual.metadata, labels, annotations }, webhooks: webhooks ?? [] };
  return isDeepStrictEqual(wanted, actual) ? undefined : wanted;
}

/** The policy that a configuration was made for; undefined when it was made for none. */
export function policyOf({ metadata }: KubernetesObject): ObjectKey | undefined {
  const { kubewardenPolicyName: name, kubewardenPolicyNamespace: namespace } = metadata.annotations ?? {};
  return name === undefined ? undefined : namespace === undefined ? { name } : { namespace, name };
}
