// Which requests a policy is for, and with which other policies an API server may ask about it at once. One function for the
// controller, which tells API servers, and for policy servers, which look for themselves: both must come to the same.
import { createHash } from 'node:crypto';
import type { KubernetesObject } from '../kubernetes-object.ts';
import { type AdmissionPolicySpec, isGroupSpec, policyId } from './policy-names.ts';
import { POLICIES_GROUP, PORTCULLIS_GROUP } from './common-schemas.ts';

/** What all namespaces have: a label with their name (KEP-2161). */
export const NAMESPACE_NAME_LABEL = 'kubernetes.io/metadata.name';
/** What webhooks have that say nothing else. */
export const DEFAULT_WEBHOOK_TIMEOUT_SECONDS = 10;

/** `admissionregistration.k8s.io/v1` RuleWithOperations, complete. */
export interface MatchRule {
  readonly operations: readonly string[];
  readonly apiGroups: readonly string[];
  readonly apiVersions: readonly string[];
  // As `pods`, `pods/log`, `*`, or one of these for all resources.
  readonly resources: readonly string[];
  readonly scope: string;
}

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

/** Plain data: it is sent to the threads that evaluate. */
export interface PolicyMatch {
  /** Names the webhook that asks about the policy: see {@link bucketOf} and {@link ownBucket}. */
  readonly bucket: string;
  readonly isMutating: boolean;
  readonly failurePolicy: 'Fail' | 'Ignore';
  readonly matchPolicy: 'Exact' | 'Equivalent';
  /** Of a policy of a namespace. */
  readonly namespace?: string;
  readonly rules: readonly MatchRule[];
  /** What is not said by `namespace`; with what leaves out the namespace of the product. */
  readonly namespaceSelector: MatchSelector;
  readonly objectSelector: MatchSelector;
  /** In a webhook of its own only the API server evaluates them: it may know what a server does not (`authorizer`). */
  readonly matchConditions: readonly MatchCondition[];
  readonly timeoutSeconds: number;
}

export interface MatchOptions {
  /** Where a policy of the whole cluster asks nothing unless it says that it does. */
  readonly productNamespace: string;
  /** Whether the policy asks for a webhook of its own: see ANNOTATIONS.webhook. */
  readonly ownWebhook: boolean;
}

/** What requests a policy is for. `spec` may be that of a revision. */
export function policyMatch(
  policy: Pick<KubernetesObject, 'kind' | 'metadata'> & { readonly spec: AdmissionPolicySpec },
  { productNamespace, ownWebhook }: MatchOptions,
): PolicyMatch {
  const { metadata, spec } = policy;
  const { namespace } = metadata;
  const match = {
    isMutating: !isGroupSpec(spec) && spec.mutating,
    failurePolicy: spec.failurePolicy === 'Ignore' ? 'Ignore' : 'Fail',
    matchPolicy: spec.matchPolicy === 'Exact' ? 'Exact' : 'Equivalent',
    ...(namespace === undefined ? {} : { namespace }),
    rules: spec.rules.map((rule) => completeRule(rule)),
    namespaceSelector: namespace === undefined ? clusterSelector(spec, productNamespace) : {},
    objectSelector: (spec.objectSelector ?? {}) as MatchSelector,
    matchConditions: (spec.matchConditions ?? []) as readonly MatchCondition[],
    timeoutSeconds: spec.timeoutSeconds ?? DEFAULT_WEBHOOK_TIMEOUT_SECONDS,
  } as const;
  const isAlone = ownWebhook || needsOwnWebhook(match);
  return { ...match, bucket: isAlone ? ownBucket(match.isMutating, policyId(policy)) : bucketOf(match) };
}

/** What the name of a bucket begins with: which webhooks ask there. Only answers to mutating ones may change objects. */
function kindOfWebhooks(isMutating: boolean): string {
  return isMutating ? 'mutating' : 'validating';
}

/**
 * The bucket of a policy that has a webhook for itself: `mutating.kw.cap.default-seccomp`. No policies share one of that name:
 * where ids begin, those have their failurePolicy.
 */
export function ownBucket(isMutating: boolean, id: string): string {
  return `${kindOfWebhooks(isMutating)}.${id}`;
}

/** What {@link ownBucket} makes, and the id by itself, which is what the version before this one calls the bucket. */
const OWN_BUCKET = /^(?:(?:validating|mutating)\.)?(kw\..+)$/;

/** The id of the policy that a bucket is of alone; undefined when it is one that policies share. */
export function policyOfBucket(bucket: string): string | undefined {
  return OWN_BUCKET.exec(bucket)?.[1];
}

/** Whether a bucket is that of one policy alone. */
export function isOwnBucket(bucket: string): boolean {
  return policyOfBucket(bucket) !== undefined;
}

/** What only an API server can do for all policies of a webhook alike. */
type Shared = Pick<PolicyMatch, 'isMutating' | 'failurePolicy' | 'matchPolicy' | 'namespace' | 'rules'>;

/**
 * The bucket of policies that may share a webhook: `validating.fail.equivalent.cluster.v1`.
 *
 * Where other versions of a resource count as the same (matchPolicy Equivalent), the API server sends a request as it came if
 * any rule of the webhook names its version, and otherwise converted to the first that one does. So only policies share a
 * webhook whose rules name the same versions: then what each is sent does not depend on the others. The same for events, which
 * are served by two groups.
 */
function bucketOf({ isMutating, failurePolicy, matchPolicy, namespace, rules }: Shared): string {
  return [
    kindOfWebhooks(isMutating),
    failurePolicy.toLowerCase(),
    matchPolicy.toLowerCase(),
    namespace === undefined ? 'cluster' : 'namespaced',
    ...(matchPolicy === 'Equivalent' ? [versionClass(rules)] : []),
  ].join('.');
}

/** Resources that more than one group serves the same objects of. Others are gone from Kubernetes since 1.22. */
const SHARED_RESOURCE = 'events';
const SHARED_GROUPS: readonly string[] = ['', 'events.k8s.io'];

/**
 * The groups that serve the objects of a resource of a group, itself among them: with matchPolicy Equivalent a rule that names one
 * is for requests for the others too. A star stands for all resources.
 */
export function equivalentGroups(group: string, resource: string): readonly string[] {
  const isShared = [SHARED_RESOURCE, '*'].includes(resource) && SHARED_GROUPS.includes(group);
  return isShared ? SHARED_GROUPS : [group];
}

/** Hexadecimal digits for rules that share nothing simple. */
const CLASS_DIGITS = 16;
/** What stands for all versions, where others are as Kubernetes' are: `v1`, `v2beta1`. */
const ALL_VERSIONS = 'any';
const USUAL_VERSION = /^v[0-9][a-z0-9]{0,15}$/;

/** Equal for rules of which none can change in which version a request reaches the others. */
function versionClass(rules: readonly MatchRule[]): string {
  const lists = new Set(rules.map(({ apiVersions }) => versionsText(apiVersions)));
  const [only = '', ...others] = lists;
  const isMixed = others.length > 0 || rules.some(namesOneGroupOfEvents);
  if (isMixed) {
    // The order of rules says to which version a request is converted, and operations and scope which of them it meets.
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
 * Groups that no policy is asked about by a wildcard, because it takes them to mend a policy that rejects everything: our own
 * kinds, Leases, and reviews of who somebody is and what they may. A policy that names one gets a webhook of its own.
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
    matchConditions.some(({ expression }) => asksAuthorizer(expression))
  );
}

/** Whether a match condition may ask what users may do. Also where it only says so in a text: that does no harm. */
export function asksAuthorizer(expression: string): boolean {
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

/** Of a policy of the cluster: all namespaces that it selects but the product's. */
function clusterSelector(spec: AdmissionPolicySpec, productNamespace: string): MatchSelector {
  const own = (('namespaceSelector' in spec ? spec.namespaceSelector : undefined) ?? {}) as MatchSelector;
  if ('allowInsideAdmissionControllerNamespace' in spec && spec.allowInsideAdmissionControllerNamespace) {
    return own;
  }
  const elsewhere = { key: NAMESPACE_NAME_LABEL, operator: 'NotIn', values: [productNamespace] };
  return { ...own, matchExpressions: [...(own.matchExpressions ?? []), elsewhere] };
}
