// Match rules of policies, and their buckets. Used by the controller, which writes webhook configurations, and by
// policy servers, which match reviews themselves: both must agree.
import { createHash } from 'node:crypto';
import type { MatchRule } from '../admission-rules/match-rule.ts';
import type { KubernetesObject } from '../kubernetes-object.ts';
import { type AdmissionPolicySpec, isGroupSpec, isNamespacedPolicyId, policyId } from './policy-names.ts';
import { POLICIES_GROUP, PORTCULLIS_GROUP } from '../kind-declarations/common-schemas.ts';

/** The label of every namespace with its name (KEP-2161). */
export const NAMESPACE_NAME_LABEL = 'kubernetes.io/metadata.name';
/** The default timeout of webhooks. */
const DEFAULT_WEBHOOK_TIMEOUT_SECONDS = 10;

/** `metav1.LabelSelector`. */
export interface MatchSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }[];
}

export interface MatchCondition {
  readonly name: string;
  readonly expression: string;
}

/** Match rules of a policy: plain data, which is sent to worker threads. */
export interface PolicyMatch {
  /** Names the policy's webhook: see {@link bucketOf} and {@link ownBucket}. */
  readonly bucket: string;
  readonly isMutating: boolean;
  readonly failurePolicy: 'Fail' | 'Ignore';
  readonly matchPolicy: 'Exact' | 'Equivalent';
  /** The namespace of a namespaced policy. */
  readonly namespace?: string;
  readonly rules: readonly MatchRule[];
  /** In addition to `namespace`; excludes the namespace of the product. */
  readonly namespaceSelector: MatchSelector;
  readonly objectSelector: MatchSelector;
  /**
   * For an own bucket evaluated only by API servers, which may have facts that a policy server lacks (`authorizer`).
   */
  readonly matchConditions: readonly MatchCondition[];
  readonly timeoutSeconds: number;
  /** Whether the policy checks pod templates, see `webhookMatches`. */
  readonly podTemplates?: PodTemplatesAction;
}

/** What a policy for pods does about pod templates that it would reject: warns, or rejects the workload. */
export type PodTemplatesAction = 'Warn' | 'Enforce';

/** The action of a policy; undefined when it does not check pod templates, or in a way that only a newer version knows. */
export function podTemplatesAction({
  podTemplates,
}: {
  readonly podTemplates?: unknown;
}): PodTemplatesAction | undefined {
  return podTemplates === 'Warn' || podTemplates === 'Enforce' ? podTemplates : undefined;
}

export interface MatchOptions {
  /** The namespace that cluster-wide policies match only if their specs say so. */
  readonly productNamespace: string;
  /** Whether the policy requests its own webhook: see ANNOTATIONS.webhook. */
  readonly ownWebhook: boolean;
}

/** The failurePolicy in a cluster: a policy in monitor mode rejects nothing, whatever fails. */
export function effectiveFailurePolicy({
  failurePolicy,
  mode,
}: Pick<AdmissionPolicySpec, 'failurePolicy' | 'mode'>): 'Fail' | 'Ignore' {
  return failurePolicy === 'Ignore' || mode === 'monitor' ? 'Ignore' : 'Fail';
}

/** The match rules of a policy. `spec` may be that of a revision. */
export function policyMatch(
  policy: Pick<KubernetesObject, 'kind' | 'metadata'> & { readonly spec: AdmissionPolicySpec },
  { productNamespace, ownWebhook }: MatchOptions,
): PolicyMatch {
  const { metadata, spec } = policy;
  const { namespace } = metadata;
  const podTemplates = podTemplatesAction(spec);
  const match = {
    isMutating: !isGroupSpec(spec) && spec.mutating,
    failurePolicy: effectiveFailurePolicy(spec),
    matchPolicy: spec.matchPolicy === 'Exact' ? 'Exact' : 'Equivalent',
    ...(namespace === undefined ? {} : { namespace }),
    rules: spec.rules.map((rule) => completeRule(rule)),
    namespaceSelector: namespace === undefined ? clusterSelector(spec, productNamespace) : {},
    objectSelector: (spec.objectSelector ?? {}) as MatchSelector,
    matchConditions: (spec.matchConditions ?? []) as readonly MatchCondition[],
    timeoutSeconds: spec.timeoutSeconds ?? DEFAULT_WEBHOOK_TIMEOUT_SECONDS,
    ...(podTemplates === undefined ? {} : { podTemplates }),
  } as const;
  const isAlone = ownWebhook || needsOwnWebhook(match);
  return { ...match, bucket: isAlone ? ownBucket(match.isMutating, policyId(policy)) : bucketOf(match) };
}

/** Prefix of a bucket's name: the type of its webhook. Only mutating webhooks may change objects. */
function kindOfWebhooks(isMutating: boolean): string {
  return isMutating ? 'mutating' : 'validating';
}

/**
 * The bucket of a policy with its own webhook: `mutating.kw.cap.default-seccomp`. Shared buckets have a failurePolicy
 * in the place of `kw`, so that names differ.
 */
export function ownBucket(isMutating: boolean, id: string): string {
  return `${kindOfWebhooks(isMutating)}.${id}`;
}

/** Names of own buckets, see {@link ownBucket}. */
const OWN_BUCKET = /^(?:validating|mutating)\.(kw\..+)$/;

/** The policy of an own bucket; undefined for a shared bucket. */
export function policyOfBucket(bucket: string): string | undefined {
  return OWN_BUCKET.exec(bucket)?.[1];
}

/** Whether a bucket belongs to one policy. */
export function isOwnBucket(bucket: string): boolean {
  return policyOfBucket(bucket) !== undefined;
}

/** Whether a bucket contains namespaced policies. */
export function isNamespacedBucket(bucket: string): boolean {
  const owner = policyOfBucket(bucket);
  return owner === undefined ? bucket.split('.').includes(NAMESPACED) : isNamespacedPolicyId(owner);
}

/** In the names of shared buckets of namespaced policies. */
const NAMESPACED = 'namespaced';

/** Properties that all policies of a webhook share in API servers. */
type Shared = Pick<PolicyMatch, 'isMutating' | 'failurePolicy' | 'matchPolicy' | 'namespace' | 'rules'>;

/**
 * The bucket of policies that may share a webhook: `validating.fail.equivalent.cluster.v1`.
 *
 * With matchPolicy Equivalent, an API server sends a request unchanged if any rule of the webhook names its version,
 * and otherwise converts it to the version of the first matching rule. So policies share a webhook only if their rules
 * name the same versions: then the version that a policy gets does not depend on the others. The same applies to
 * events, which two groups serve.
 */
function bucketOf({ isMutating, failurePolicy, matchPolicy, namespace, rules }: Shared): string {
  return [
    kindOfWebhooks(isMutating),
    failurePolicy.toLowerCase(),
    matchPolicy.toLowerCase(),
    namespace === undefined ? 'cluster' : NAMESPACED,
    ...(matchPolicy === 'Equivalent' ? [versionClass(rules)] : []),
  ].join('.');
}

/** A resource whose objects several groups serve. Other such resources are gone since Kubernetes 1.22. */
const SHARED_RESOURCE = 'events';
const SHARED_GROUPS: readonly string[] = ['', 'events.k8s.io'];

/**
 * The groups that serve a resource's objects, including its own: with matchPolicy Equivalent, a rule for one of them
 * matches requests for the others. A star stands for all resources.
 */
export function equivalentGroups(group: string, resource: string): readonly string[] {
  const isShared = [SHARED_RESOURCE, '*'].includes(resource) && SHARED_GROUPS.includes(group);
  return isShared ? SHARED_GROUPS : [group];
}

/** Length of the hash for rules without a simple common class. */
const CLASS_DIGITS = 16;
/** Stands for all versions, unless rules name versions in Kubernetes' format: `v1`, `v2beta1`. */
const ALL_VERSIONS = 'any';
const USUAL_VERSION = /^v[0-9][a-z0-9]{0,15}$/;

/** Equal for rules that do not change the version in which requests reach each other's policies. */
function versionClass(rules: readonly MatchRule[]): string {
  const lists = new Set(rules.map(({ apiVersions }) => versionsText(apiVersions)));
  const [only = '', ...others] = lists;
  const isMixed = others.length > 0 || rules.some(namesOneGroupOfEvents);
  if (isMixed) {
    // The version to convert to depends on the order of rules, and on their operations and scope.
    return `x${digest(JSON.stringify(rules))}`;
  }
  return only;
}

function versionsText(versions: readonly string[]): string {
  if (versions.includes('*')) {
    return ALL_VERSIONS;
  }
  const [only = '', ...others] = [...new Set(versions)].toSorted();
  return others.length === 0 && USUAL_VERSION.test(only) ? only : `h${digest([only, ...others].join('\n'))}`;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, CLASS_DIGITS);
}

function namesOneGroupOfEvents({ apiGroups, resources }: MatchRule): boolean {
  const isOfEvents = resources.some((resource) => ['*', SHARED_RESOURCE].includes(resource.split('/', 1)[0] ?? ''));
  const named = SHARED_GROUPS.filter((group) => apiGroups.includes(group));
  return isOfEvents && !apiGroups.includes('*') && named.length === 1;
}

/**
 * Groups that no wildcard of a policy matches, because they are needed to repair a cluster with a policy that rejects
 * everything: our own kinds, Leases, and reviews of authentication and authorization. A policy that names one gets its
 * own webhook.
 */
export const GUARDED_GROUPS: readonly string[] = [
  POLICIES_GROUP,
  PORTCULLIS_GROUP,
  'coordination.k8s.io',
  'authentication.k8s.io',
  'authorization.k8s.io',
];

function needsOwnWebhook({ rules, matchConditions }: Pick<PolicyMatch, 'rules' | 'matchConditions'>): boolean {
  return (
    rules.some(({ apiGroups }) => apiGroups.some((group) => GUARDED_GROUPS.includes(group))) ||
    matchConditions.some(({ expression }) => usesAuthorizer(expression))
  );
}

/**
 * Whether a match condition may use the authorizer. Also true if only a string contains the word, which is harmless.
 */
export function usesAuthorizer(expression: string): boolean {
  return expression.includes('authorizer');
}

function completeRule({
  operations,
  apiGroups,
  apiVersions,
  resources,
  scope,
}: AdmissionPolicySpec['rules'][number]): MatchRule {
  return {
    operations: operations ?? [],
    apiGroups: apiGroups ?? [],
    apiVersions: apiVersions ?? [],
    resources: resources ?? [],
    scope: scope ?? '*',
  };
}

/** For cluster-wide policies: the selected namespaces without the product's. */
function clusterSelector(spec: AdmissionPolicySpec, productNamespace: string): MatchSelector {
  const own = (('namespaceSelector' in spec ? spec.namespaceSelector : undefined) ?? {}) as MatchSelector;
  if ('allowInsideAdmissionControllerNamespace' in spec && spec.allowInsideAdmissionControllerNamespace) {
    return own;
  }
  const elsewhere = { key: NAMESPACE_NAME_LABEL, operator: 'NotIn', values: [productNamespace] };
  return { ...own, matchExpressions: [...(own.matchExpressions ?? []), elsewhere] };
}
