import { choice, entries, flag, integer, list, listByKey, object, optional, text, time } from '../schema-builder.ts';
import type { Infer } from '../schema-builder.ts';
import { AUDIT_STATUS } from './audit-status.ts';
import { REVISION_STATES } from './revision-states.ts';

/** The group of the kinds that Kubewarden has as well. */
export const POLICIES_GROUP = 'policies.kubewarden.io';
/** The group of Portcullis' own kinds. */
export const PORTCULLIS_GROUP = 'portcullis.dev';

/** Lists in specs are limited, which limits the cost of their validation rules. */
export const MAX_RULES = 128;
const MAX_RULE_ELEMENTS = 128;
/** Kubernetes' limit of match conditions of a webhook. */
const MAX_MATCH_CONDITIONS = 64;
/** The name of a group, or of a resource with its subresource: two DNS subdomains. */
const MAX_RULE_TEXT = 512;

const ruleText = (description: string) => text(description, { maxLength: MAX_RULE_TEXT });

/** A bounded list of at least one text. */
const ruleTexts = (description: string) =>
  list(description, ruleText('`*` matches all.'), {
    minItems: 1,
    maxItems: MAX_RULE_ELEMENTS,
    'x-kubernetes-list-type': 'atomic',
  });

/** Requests that a policy matches (`admissionregistration.k8s.io/v1`, RuleWithOperations). */
export const RULE = object('Requests of some resources.', {
  apiGroups: optional(
    list('Groups of the resources: `""` is the core group.', ruleText('`*` stands for all.'), {
      maxItems: MAX_RULE_ELEMENTS,
      'x-kubernetes-list-type': 'atomic',
    }),
  ),
  apiVersions: ruleTexts('Versions of the resources.'),
  resources: ruleTexts('The resources, as `pods` or `pods/ephemeralcontainers`.'),
  operations: list(
    'Operations on the resources.',
    choice('One operation; `*` matches all.', ['CREATE', 'UPDATE', 'DELETE', 'CONNECT', '*']),
    { minItems: 1, maxItems: 5, 'x-kubernetes-list-type': 'atomic' },
  ),
  scope: optional(
    choice('Whether the resources are namespaced, cluster-scoped, or either.', ['Cluster', 'Namespaced', '*']),
  ),
});

/** Fields of a label selector. */
export const LABEL_SELECTOR_FIELDS = {
  matchLabels: optional(entries('Labels that objects must have.', text('The value.'))),
  matchExpressions: optional(
    list(
      'Requirements that labels must meet, all of them.',
      object('One requirement.', {
        key: text('The label.'),
        operator: text('`In`, `NotIn`, `Exists` or `DoesNotExist`.'),
        values: optional(
          list('The values for `In` and `NotIn`.', text('A value.'), { 'x-kubernetes-list-type': 'atomic' }),
        ),
      }),
      { 'x-kubernetes-list-type': 'atomic' },
    ),
  ),
} as const;

/** `metav1.LabelSelector` */
export const LABEL_SELECTOR = (description: string) =>
  object(description, LABEL_SELECTOR_FIELDS, { 'x-kubernetes-map-type': 'atomic' });

/** Expressions that decide whether the policy matches. */
export const MATCH_CONDITIONS = listByKey(
  'Expressions in CEL, all of which must be true for the policy to match.',
  ['name'],
  object('One condition.', {
    name: text('The name, for messages and metrics.'),
    expression: text('An expression in CEL with a boolean result.'),
  }),
  { maxItems: MAX_MATCH_CONDITIONS },
);

/** Kinds that a policy may read from the cluster. */
export const CONTEXT_AWARE_RESOURCES = list(
  'Kinds whose objects the policy may read from the cluster.',
  object('One kind.', {
    apiVersion: text('As in `apps/v1`.', { minLength: 1 }),
    kind: text('As in `Deployment`.', { minLength: 1 }),
  }),
  { 'x-kubernetes-list-type': 'atomic' },
);

/** A kind whose objects a policy may read from the cluster. */
export type ContextAwareResource = Infer<typeof CONTEXT_AWARE_RESOURCES>[number];

/** `metav1.Condition` */
export const CONDITION = object('A condition.', {
  type: text('The type of the condition.', { maxLength: 316 }),
  status: choice('Whether it holds.', ['True', 'False', 'Unknown']),
  observedGeneration: optional(
    integer('The `metadata.generation` that it refers to.', { format: 'int64', minimum: 0 }),
  ),
  lastTransitionTime: time('When the status last changed.'),
  reason: text('The reason, in CamelCase for programs.', {
    minLength: 1,
    maxLength: 1024,
    pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$',
  }),
  message: text('The reason, for users.', { maxLength: 32_768 }),
});

/** Conditions of an object, one per type. */
export const CONDITIONS = listByKey('Conditions of the object.', ['type'], CONDITION);

/**
 * The generation of the status. Its default is -1, which no generation has, so that kstatus reads an object that no
 * controller has seen as InProgress. Flux's kinds do the same.
 */
export const OBSERVED_GENERATION = optional(
  integer('The `metadata.generation` of the status; -1 until a controller has seen the object.', {
    format: 'int64',
    minimum: -1,
  }),
);
export const UNSEEN = { observedGeneration: -1 } as const;

/** Requests that the status of a policy in monitor mode lists. */
export const MAX_MONITORED_REQUESTS = 10;

/** A request that a policy in monitor mode would have rejected. */
const MONITORED_REQUEST = object('One request.', {
  time: time('When the policy was evaluated.'),
  operation: optional(text('`CREATE`, `UPDATE`, `DELETE` or `CONNECT`.')),
  kind: optional(text('The kind of the object.')),
  namespace: optional(text('The namespace of the object.')),
  name: optional(text('The name of the object, with `*` for what the API server was to generate.')),
  user: optional(text('The user who made the request.')),
  message: optional(text('The message of the rejection, shortened.')),
});

export type MonitoredRequest = Infer<typeof MONITORED_REQUEST>;

const MONITORED = object('What the policy would have rejected. Only while a revision serves in monitor mode.', {
  revision: integer('The revision that serves.', { format: 'int64', minimum: 1 }),
  since: time('Since when requests are counted: since this revision serves.'),
  count: integer('Number of requests that the revision would have rejected; dry runs do not count.', {
    format: 'int64',
    minimum: 0,
  }),
  lastReported: optional(time('When the count was last written, at most once a minute.')),
  last: list('The last requests, newest first.', MONITORED_REQUEST, {
    maxItems: MAX_MONITORED_REQUESTS,
    'x-kubernetes-list-type': 'atomic',
  }),
  replicas: list(
    'What was counted from each replica.',
    object('One replica.', {
      name: text('The name of its PolicyServerReplica.'),
      since: text('When its process began to count.'),
      count: integer('Number of requests.', { format: 'int64', minimum: 0 }),
    }),
    { 'x-kubernetes-list-type': 'atomic' },
  ),
});

export type MonitoredStatus = Infer<typeof MONITORED>;

/** Warnings about one policy; further ones are dropped. */
export const MAX_WARNINGS = 8;
/** Length of a warning, whose names come from a module. Characters. */
export const MAX_WARNING_LENGTH = 500;

/** Why a policy may reject requests although it serves: what its modules need, and it does not grant. */
export const POLICY_WARNINGS = list(
  'What the metadata of its modules say that they need, and the policy does not grant: it may reject requests for that.',
  text('What is missing, and what to do.', { maxLength: MAX_WARNING_LENGTH }),
  { 'x-kubernetes-list-type': 'atomic' },
);

/** Issues in the status of one policy; further ones are dropped. */
export const MAX_ISSUES = 20;
/** Length of the message of an issue, which contains names that users wrote. Characters. */
export const MAX_ISSUE_LENGTH = 500;

const ISSUES = list(
  'Why the policy does less than it says, although a revision may serve; the most severe issues first.',
  object('One issue.', {
    reason: text('The reason, in CamelCase for programs.', { maxLength: 1024 }),
    severity: choice('`Error`: the policy is not ready because of it. `Warning`: it is ready.', ['Error', 'Warning']),
    field: optional(text('The field of the policy to correct.', { maxLength: 1024 })),
    message: text('The issue, for users.', { maxLength: 1024 }),
  }),
  { maxItems: MAX_ISSUES, 'x-kubernetes-list-type': 'atomic' },
);

export type PolicyIssue = Infer<typeof ISSUES>[number];

const REFRESHED = object('The last refresh of the modules that was handled.', {
  value: text('The value of the annotation `portcullis.dev/refresh`.', { maxLength: 64 }),
  result: choice(
    '`Unchanged`: no module has changed. `Changed`: the newest revision has the new modules. `Unresolved`: the newest revision was made for it, and does not serve.',
    ['Unchanged', 'Changed', 'Unresolved'],
  ),
  message: text('The result, for users.', { maxLength: 32_768 }),
});

export type RefreshedStatus = Infer<typeof REFRESHED>;

/** Requests are answered by a revision of the policy, or by its failurePolicy; Unknown where that is not known. */
export const POLICY_ENFORCED = 'Enforced';
/** The condition that modules survive the loss of policy servers. Only while the revision that serves has WebAssembly modules. */
export const MODULES_KEPT = 'ModulesKept';

const COPIES = object(
  'Processes that have the modules of the revision that serves, or did last, as they report. Only for WebAssembly.',
  {
    servers: integer('Number of replicas of the PolicyServer.', { minimum: 0 }),
    controllers: integer('Number of controllers.', { minimum: 0 }),
    nodes: optional(
      integer('Number of nodes that these are on. Absent where the node of one is not known.', { minimum: 0 }),
    ),
    durable: optional(
      flag('Whether the module cache of the PolicyServer outlives its pods. Absent where that is not known.'),
    ),
  },
);

export type CopiesStatus = Infer<typeof COPIES>;

const SERVING = object(
  'What the revision that answers requests consists of, for authors, who need not be able to read PolicyRevisions.',
  {
    revision: integer('The number of the revision, as `servingRevision`.', { format: 'int64', minimum: 1 }),
    since: optional(time('When it last began to serve.')),
    modules: listByKey(
      'Its modules; further ones than the status holds are counted in `omittedModules`.',
      ['name'],
      object('One module.', {
        name: text('The name of the group member; for a single policy its own name.'),
        module: text('The reference in the spec of the revision.'),
        digest: optional(text('`sha256:…`, or the version of a builtin module.')),
        settings: optional(text('Its settings, as JSON. Absent if it has none, or they are too large for the status.')),
      }),
    ),
    omittedModules: optional(integer('Number of modules that are not listed.', { minimum: 1 })),
  },
);

export type ServingStatus = Infer<typeof SERVING>;

/** Revisions that the status of a policy lists: as many as are kept by default. */
export const MAX_LISTED_REVISIONS = 10;

const REVISION_SUMMARY = object('One revision.', {
  revision: integer('The number of the revision.', { format: 'int64', minimum: 1 }),
  state: choice('The state in its rollout.', REVISION_STATES),
  reason: optional(text('The reason of its failure, in CamelCase for programs.', { maxLength: 1024 })),
  since: time('When it entered the state.'),
  cause: text('Why it was made: a change of the spec, with the changed fields; a rollback; or a refresh.'),
  digests: list(
    'The digests of its modules, without repetitions.',
    text('`sha256:…`, or the version of a builtin module.'),
    {
      'x-kubernetes-list-type': 'atomic',
    },
  ),
  omittedDigests: optional(integer('Number of digests that are not listed.', { minimum: 1 })),
  declared: optional(flag('Present, and true, if its spec is that of the policy.')),
  spec: optional(
    text(
      'Its spec, as JSON: of the revision that serves and of the newest other ones, unless it is that of the policy.',
    ),
  ),
});

export type RevisionSummary = Infer<typeof REVISION_SUMMARY>;

const PHASE = optional(choice('The state.', ['Pending', 'Updating', 'Active', 'Degraded', 'Error', 'RolledBack']));
const DESIRED_REVISION = optional(integer('The desired revision.', { format: 'int64', minimum: 0 }));
const SERVING_REVISION = optional(
  integer('The serving revision; 0 while none serves.', { format: 'int64', minimum: 0 }),
);
const REVISIONS = optional(
  listByKey(`The last ${MAX_LISTED_REVISIONS} revisions, newest first.`, ['revision'], REVISION_SUMMARY),
);

/** What the status of a policy of any kind says of its revisions. */
export const REVISION_STATUS = {
  phase: PHASE,
  desiredRevision: DESIRED_REVISION,
  servingRevision: SERVING_REVISION,
  revisions: REVISIONS,
} as const;

/** The status of a policy. */
export const POLICY_STATUS = object(
  'The state of the policy. Written by the controller, but for `audit`.',
  {
    policyStatus: optional(
      choice('The state for tools of Kubewarden.', ['unscheduled', 'scheduled', 'pending', 'active']),
    ),
    mode: optional(choice('The effective mode.', ['protect', 'monitor', 'unknown'])),
    phase: PHASE,
    reason: optional(text('The reason, in CamelCase for programs.', { maxLength: 1024 })),
    message: optional(text('The reason, for users.', { maxLength: 32_768 })),
    observedGeneration: OBSERVED_GENERATION,
    desiredRevision: DESIRED_REVISION,
    servingRevision: SERVING_REVISION,
    readyReplicas: optional(integer('Number of replicas that serve the desired revision.', { minimum: 0 })),
    totalReplicas: optional(integer('Number of replicas.', { minimum: 0 })),
    nextRetry: optional(time('Time of the next attempt.')),
    monitored: optional(MONITORED),
    refreshed: optional(REFRESHED),
    serving: optional(SERVING),
    copies: optional(COPIES),
    revisions: REVISIONS,
    issues: optional(ISSUES),
    audit: optional(AUDIT_STATUS),
    conditions: optional(CONDITIONS),
  },
  { default: UNSEEN },
);

export type AdmissionPolicyStatus = Infer<typeof POLICY_STATUS>;

/** The state of a policy in its life. */
export type PolicyPhase = NonNullable<AdmissionPolicyStatus['phase']>;
