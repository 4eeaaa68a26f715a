// Pod templates of workloads, which policies for pods may check as well. Used by the controller, which writes webhook
// configurations, and by policy servers, which review the templates: both must agree.
import type { GroupVersionResource } from '../resource-type.ts';
import { ruleMatches } from '../admission-rules/rule-match.ts';
import type { MatchRule } from '../admission-rules/match-rule.ts';
import type { PolicyMatch } from './policy-match.ts';

/** A kind whose objects contain a pod template. */
export interface Workload {
  readonly group: string;
  readonly kind: string;
  readonly resource: string;
  /** Keys from the object to the template. */
  readonly path: readonly string[];
  /** The kind, of the same group, of the objects that own the pods. Absent where no controller creates pods. */
  readonly podOwner?: string;
  /** The service account of `kube-system` that creates the pods. */
  readonly podCreator?: string;
  /** The kind, of the same group, whose controller creates such objects with a copy of its own template. */
  readonly createdBy?: string;
}

const TEMPLATE = ['spec', 'template'] as const;

/** Kubernetes' own workloads (k8s.io/kubernetes 1.34, pkg/controller). */
export const WORKLOADS: readonly Workload[] = [
  {
    group: 'apps',
    kind: 'Deployment',
    resource: 'deployments',
    path: TEMPLATE,
    podOwner: 'ReplicaSet',
    podCreator: 'replicaset-controller',
  },
  {
    group: 'apps',
    kind: 'StatefulSet',
    resource: 'statefulsets',
    path: TEMPLATE,
    podOwner: 'StatefulSet',
    podCreator: 'statefulset-controller',
  },
  {
    group: 'apps',
    kind: 'DaemonSet',
    resource: 'daemonsets',
    path: TEMPLATE,
    podOwner: 'DaemonSet',
    podCreator: 'daemon-set-controller',
  },
  {
    group: 'apps',
    kind: 'ReplicaSet',
    resource: 'replicasets',
    path: TEMPLATE,
    podOwner: 'ReplicaSet',
    podCreator: 'replicaset-controller',
    createdBy: 'Deployment',
  },
  {
    group: '',
    kind: 'ReplicationController',
    resource: 'replicationcontrollers',
    path: TEMPLATE,
    podOwner: 'ReplicationController',
    podCreator: 'replication-controller',
  },
  {
    group: 'batch',
    kind: 'Job',
    resource: 'jobs',
    path: TEMPLATE,
    podOwner: 'Job',
    podCreator: 'job-controller',
    createdBy: 'CronJob',
  },
  {
    group: 'batch',
    kind: 'CronJob',
    resource: 'cronjobs',
    path: ['spec', 'jobTemplate', ...TEMPLATE],
    podOwner: 'Job',
    podCreator: 'job-controller',
  },
  { group: '', kind: 'PodTemplate', resource: 'podtemplates', path: ['template'] },
];

/** The resource whose rules decide which pod templates a policy is for. */
export const PODS: GroupVersionResource = { group: '', version: 'v1', resource: 'pods' };

const BY_RESOURCE = new Map(WORKLOADS.map((workload) => [keyOf(workload), workload]));

/** The workload of a resource in any version. */
export function workloadOf(resource: Pick<GroupVersionResource, 'group' | 'resource'>): Workload | undefined {
  return BY_RESOURCE.get(keyOf(resource));
}

function keyOf({ group, resource }: Pick<GroupVersionResource, 'group' | 'resource'>): string {
  return `${group}/${resource}`;
}

/**
 * The workloads that policies of a namespace check: those from which a controller creates pods. Their author needs rights to
 * them, and Kubernetes' role `edit` has none to PodTemplates.
 */
export const NAMESPACED_WORKLOADS: readonly Workload[] = WORKLOADS.filter(({ podCreator }) => podCreator !== undefined);

/** Rules for requests that may change pod templates. Subresources, such as `scale`, do not. */
function rulesFor(workloads: readonly Workload[]): readonly MatchRule[] {
  return [...Map.groupBy(workloads, ({ group }) => group)].map(([group, ofGroup]) => ({
    operations: ['CREATE', 'UPDATE'],
    apiGroups: [group],
    apiVersions: ['v1'],
    resources: ofGroup.map(({ resource }) => resource),
    scope: 'Namespaced',
  }));
}

const RULES = rulesFor(WORKLOADS);
const NAMESPACED_RULES = rulesFor(NAMESPACED_WORKLOADS);

/** In the name of a bucket in the place of the versions, see `bucketOf`. */
const TEMPLATES = 'templates';

/**
 * The bucket for the pod templates of a policy. One of the few whose names earlier policy servers know as names of shared
 * buckets: they have no policies in it, and admit.
 */
export function podTemplatesBucket({ isMutating, namespace }: Pick<PolicyMatch, 'isMutating' | 'namespace'>): string {
  const kind = isMutating ? 'mutating' : 'validating';
  return `${kind}.ignore.equivalent.${namespace === undefined ? 'cluster' : 'namespaced'}.${TEMPLATES}`;
}

/** Whether reviews for a bucket are of workloads, to be checked by their pod templates. */
export function isPodTemplatesBucket(bucket: string): boolean {
  return bucket.endsWith(`.${TEMPLATES}`) && /^(?:validating|mutating)\.ignore\./.test(bucket);
}

/** Whether any of the rules matches the creation of pods. */
function matchesNewPods(rules: readonly MatchRule[]): boolean {
  const request = { operation: 'CREATE', subresource: '', namespace: 'any' };
  return rules.some((rule) => ruleMatches(rule, request, PODS));
}

/**
 * The matches that webhooks must cover for a policy: its own, and that of workloads if it checks pod templates. The latter
 * has no selector by labels and no match conditions, which are for the pods; and with failurePolicy Ignore, workloads do not
 * depend on policy servers: their pods are checked in any case.
 */
export function webhookMatches(match: PolicyMatch): readonly PolicyMatch[] {
  const { podTemplates, ...own } = match;
  if (podTemplates === undefined || !matchesNewPods(match.rules)) {
    return [match];
  }
  const ofWorkloads: PolicyMatch = {
    ...own,
    bucket: podTemplatesBucket(match),
    failurePolicy: 'Ignore',
    matchPolicy: 'Equivalent',
    rules: match.namespace === undefined ? RULES : NAMESPACED_RULES,
    objectSelector: {},
    matchConditions: [],
  };
  return [match, ofWorkloads];
}
