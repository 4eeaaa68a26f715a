import { choice, entries, integer, list, listByKey, object, optional, text, time } from '../schema-builder.ts';
import type { Infer } from '../schema-builder.ts';

/** The group of the kinds that Kubewarden has, too. */
export const POLICIES_GROUP = 'policies.kubewarden.io';
/** The group of the kinds that only we have. */
export const PORTCULLIS_GROUP = 'portcullis.dev';

/** Lists in specs are bounded so that the cost of their rules is: far above what anybody needs. */
export const MAX_RULES = 128;
const MAX_RULE_ELEMENTS = 128;
/** Kubernetes' limit of match conditions of a webhook. */
export const MAX_MATCH_CONDITIONS = 64;
/** A name of a group or a resource with its subresource: two DNS subdomains. */
const MAX_RULE_TEXT = 512;

const ruleText = (description: string) => text(description, { maxLength: MAX_RULE_TEXT });

/** A bounded list of texts, one of which there must be. */
const ruleTexts = (description: string) =>
  list(description, ruleText('`*` stands for all.'), {
    minItems: 1,
    maxItems: MAX_RULE_ELEMENTS,
    'x-kubernetes-list-type': 'atomic',
  });

/** Which requests a policy is asked about (`admissionregistration.k8s.io/v1`, RuleWithOperations). */
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
    'What is done with them.',
    choice('One operation; `*` stands for all.', ['CREATE', 'UPDATE', 'DELETE', 'CONNECT', '*']),
    { minItems: 1, maxItems: 5, 'x-kubernetes-list-type': 'atomic' },
  ),
  scope: optional(
    choice('Whether the resources are namespaced, cluster-scoped, or either.', ['Cluster', 'Namespaced', '*']),
  ),
});

/** `metav1.LabelSelector` */
export const LABEL_SELECTOR = (description: string) =>
  object(
    description,
    {
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
    },
    { 'x-kubernetes-map-type': 'atomic' },
  );

/** Expressions that decide whether a policy is asked at all. */
export const MATCH_CONDITIONS = listByKey(
  'Expressions in CEL that must all hold for the policy to be asked.',
  ['name'],
  object('One condition.', {
    name: text('The name, for messages and metrics.'),
    expression: text('An expression in CEL with a boolean result.'),
  }),
  { maxItems: MAX_MATCH_CONDITIONS },
);

/** Objects of the cluster that a policy may read. */
export const CONTEXT_AWARE_RESOURCES = list(
  'Kinds whose objects the policy may read from the cluster.',
  object('One kind.', {
    apiVersion: text('As in `apps/v1`.', { minLength: 1 }),
    kind: text('As in `Deployment`.', { minLength: 1 }),
  }),
  { 'x-kubernetes-list-type': 'atomic' },
);

/** `metav1.Condition` */
export const CONDITION = object('One aspect of the state.', {
  type: text('The name of the aspect.', { maxLength: 316 }),
  status: choice('Whether it holds.', ['True', 'False', 'Unknown']),
  observedGeneration: optional(integer('The `metadata.generation` that it is about.', { format: 'int64', minimum: 0 })),
  lastTransitionTime: time('Since when the status is what it is.'),
  reason: text('Why, in one word for programs.', {
    minLength: 1,
    maxLength: 1024,
    pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$',
  }),
  message: text('Why, for people.', { maxLength: 32_768 }),
});

/** Conditions of an object, one of each type. */
export const CONDITIONS = listByKey('The aspects of the state, one by one.', ['type'], CONDITION);

/**
 * The generation that the status is about. -1 is the default of a status: no generation has it, so kstatus reads an object that
 * no controller has seen as InProgress. Flux's kinds do the same.
 */
export const OBSERVED_GENERATION = optional(
  integer('The `metadata.generation` that the status is about; -1 until a controller has seen the object.', {
    format: 'int64',
    minimum: -1,
  }),
);
export const UNSEEN = { observedGeneration: -1 } as const;

/** The state of a policy. */
export const POLICY_STATUS = object(
  'What became of the policy. Written by the controller.',
  {
    policyStatus: optional(
      choice('The state in four words, as other tools read it.', ['unscheduled', 'scheduled', 'pending', 'active']),
    ),
    mode: optional(choice('The mode that is in force.', ['protect', 'monitor', 'unknown'])),
    phase: optional(choice('The state.', ['Pending', 'Updating', 'Active', 'Degraded', 'Error', 'RolledBack'])),
    reason: optional(text('Why, in one word for programs.', { maxLength: 1024 })),
    message: optional(text('Why, for people.', { maxLength: 32_768 })),
    observedGeneration: OBSERVED_GENERATION,
    desiredRevision: optional(integer('The revision that is to serve.', { format: 'int64', minimum: 0 })),
    servingRevision: optional(integer('The revision that serves; 0 while none does.', { format: 'int64', minimum: 0 })),
    readyReplicas: optional(integer('Replicas that serve the desired revision.', { minimum: 0 })),
    totalReplicas: optional(integer('Replicas that there are.', { minimum: 0 })),
    nextRetry: optional(time('When what failed is tried again.')),
    conditions: optional(CONDITIONS),
  },
  { default: UNSEEN },
);

export type PolicyStatus = Infer<typeof POLICY_STATUS>;
