// The webhook configuration that makes an API server ask about a policy (contract section 6).
import { isDeepStrictEqual } from 'node:util';
import {
  type AdmissionPolicyObject,
  type AdmissionPolicySpec,
  isGroupSpec,
  type KubernetesObject,
  type ObjectKey,
  POLICIES_GROUP,
  policyId,
  PORTCULLIS_GROUP,
} from '../resources/index.ts';

/** Found on everything that we write for a policy. */
export const MANAGED_BY = { 'app.kubernetes.io/managed-by': 'portcullis' } as const;

/** What all namespaces have: a label with their name (KEP-2161). */
const NAMESPACE_NAME = 'kubernetes.io/metadata.name';

/** Of reviews: who is this? A controller asks before it works. */
const AUTHENTICATION_GROUP = 'authentication.k8s.io';
/** Groups of our own kinds. */
const OWN_GROUPS = [POLICIES_GROUP, PORTCULLIS_GROUP] as const;
/** The condition that keeps a policy away from what it takes to mend it. */
const RECOVERY_CONDITION = 'portcullis.dev/recovery';
/** Conditions that an API server takes for one webhook. */
const MAX_MATCH_CONDITIONS = 64;

/** Where an API server reaches a policy server, and the PEM of the CAs that its certificate may come from. */
export type WebhookTarget = { readonly ca: string } & (
  | { /** Base URL of the admission port. */ readonly url: string }
  | { readonly service: { readonly namespace: string; readonly name: string; readonly port: number } }
);

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
 *
 * @param productNamespace where a policy of the whole cluster asks nothing, unless it says that it does: replicas that are
 *   all gone could not come back there
 */
export function webhookConfiguration(
  policy: AdmissionPolicyObject,
  target: WebhookTarget,
  productNamespace: string,
): WebhookConfiguration {
  const { spec } = policy;
  const id = policyId(policy);
  const matchConditions = [...(spec.matchConditions ?? []), ...recoveryConditions(spec)];
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
        clientConfig: clientConfig(target, `/validate/${id}`),
        rules: spec.rules.map((rule) => ({ ...rule, scope: rule.scope ?? '*' })),
        failurePolicy: spec.failurePolicy ?? 'Fail',
        matchPolicy: spec.matchPolicy ?? 'Equivalent',
        ...(matchConditions.length === 0 ? {} : { matchConditions }),
        objectSelector: spec.objectSelector ?? {},
        namespaceSelector: namespaceSelector(policy, productNamespace),
        sideEffects: spec.sideEffects ?? 'None',
        timeoutSeconds: spec.timeoutSeconds,
        ...(isMutating(policy) ? { reinvocationPolicy: 'Never' } : {}),
      },
    ],
  };
}

/** `admissionregistration.k8s.io/v1` WebhookClientConfig for a path of a policy server. */
export function clientConfig(target: WebhookTarget, path: string): object {
  const caBundle = Buffer.from(target.ca).toString('base64');
  return 'url' in target
    ? { url: `${target.url}${path}`, caBundle }
    : { service: { ...target.service, path }, caBundle };
}

/** A policy of a namespace is for that namespace only; one of the cluster for all but the product's (contract section 6). */
function namespaceSelector({ metadata, spec }: AdmissionPolicyObject, productNamespace: string): LabelSelector {
  if (metadata.namespace !== undefined) {
    return { matchLabels: { [NAMESPACE_NAME]: metadata.namespace } };
  }
  const own: LabelSelector = ('namespaceSelector' in spec ? spec.namespaceSelector : undefined) ?? {};
  if ('allowInsideAdmissionControllerNamespace' in spec && spec.allowInsideAdmissionControllerNamespace) {
    return own;
  }
  const elsewhere = { key: NAMESPACE_NAME, operator: 'NotIn', values: [productNamespace] };
  return { ...own, matchExpressions: [...(own.matchExpressions ?? []), elsewhere] };
}

/**
 * Keeps a policy whose rules are for our own kinds away from what it takes to mend it. Always: statuses, and what only the
 * product writes. Where it names the kinds by a wildcard only: all of our kinds, so that it can be edited, rolled back and
 * deleted although it rejects everything, and reviews of who a controller is.
 */
function recoveryConditions({ rules, matchConditions = [] }: AdmissionPolicySpec): readonly object[] {
  const names = (group: string): boolean => rules.some(({ apiGroups = [] }) => apiGroups.includes(group));
  const isWild = names('*');
  // One that has all the conditions that there may be looks after itself.
  if ((!isWild && !OWN_GROUPS.some(names)) || matchConditions.length >= MAX_MATCH_CONDITIONS) {
    return [];
  }
  const isOf = (group: string): string => `request.resource.group == "${group}"`;
  const isStatus = 'has(request.subResource) && request.subResource == "status"';
  const exempt = [
    isOf(PORTCULLIS_GROUP),
    names(POLICIES_GROUP) ? `(${isOf(POLICIES_GROUP)} && ${isStatus})` : isOf(POLICIES_GROUP),
    ...(isWild && !names(AUTHENTICATION_GROUP) ? [isOf(AUTHENTICATION_GROUP)] : []),
  ];
  return [{ name: RECOVERY_CONDITION, expression: `!(${exempt.join(' || ')})` }];
}

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
  for (const field of ['objectSelector', 'namespaceSelector'] as const) {
    wide[field] = widestSelector(webhooks.map((webhook) => webhook[field]));
  }
  const conditions = common(webhooks.map(({ matchConditions = [] }) => matchConditions));
  if (conditions.length > 0) {
    wide['matchConditions'] = conditions;
  } else {
    delete wide['matchConditions'];
  }
  if (webhooks.some(({ matchPolicy }) => matchPolicy === 'Equivalent')) {
    wide['matchPolicy'] = 'Equivalent';
  }
  if (webhooks.some(({ failurePolicy }) => failurePolicy === 'Fail')) {
    wide['failurePolicy'] = 'Fail';
  }
  return { ...last, webhooks: [wide] };
}

/** What all of them demand: each selects less than that. */
function widestSelector(selectors: readonly LabelSelector[]): LabelSelector {
  const labels = common(selectors.map(({ matchLabels = {} }) => Object.entries(matchLabels)));
  const expressions = common(selectors.map(({ matchExpressions = [] }) => matchExpressions));
  return {
    ...(labels.length === 0 ? {} : { matchLabels: Object.fromEntries(labels) }),
    ...(expressions.length === 0 ? {} : { matchExpressions: expressions }),
  };
}

/** What is in every list. */
function common<T>([first = [], ...others]: readonly (readonly T[])[]): readonly T[] {
  return first.filter((one) => others.every((other) => other.some((another) => isDeepStrictEqual(another, one))));
}

/** As far as it matters here; what is in it is the API server's to check. */
interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly object[];
}

interface Webhook {
  readonly objectSelector: LabelSelector;
  readonly namespaceSelector: LabelSelector;
  readonly matchConditions?: readonly object[];
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
