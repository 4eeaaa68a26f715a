import { anything, choice, defaulted, flag, integer, list, object, optional, text } from '../schema-builder.ts';
import type { Infer } from '../schema-builder.ts';
import { LABEL_SELECTOR, UNSEEN } from '../kind-declarations/common-schemas.ts';
import { AGE_COLUMN, column, ownKind } from '../kind-declarations/own-kind.ts';
import type { KindDeclaration, ObjectOfKind } from '../kind-declarations/own-kind.ts';
import { GOVERNANCE_GROUP } from './governance-names.ts';
import {
  COMMON_STATUS,
  COMPLIANCE_STATES,
  EXTENSION,
  GOVERNANCE_CATEGORIES,
  NAMESPACE_SELECTOR_FIELDS,
  REMEDIATION_ACTIONS,
  SEVERITY,
  TEMPLATE_HISTORY,
  TEMPLATE_KIND_LABELS,
} from './governance-schemas.ts';

/** Compliance of a ConfigurationPolicy: `Terminating` while it deletes its objects. */
const STATES = [...COMPLIANCE_STATES, 'Terminating'] as const;

const MUST_HAVE = ['MustHave', 'Musthave', 'musthave', 'MustOnlyHave', 'Mustonlyhave', 'mustonlyhave'] as const;
const MUST_NOT_HAVE = ['MustNotHave', 'Mustnothave', 'mustnothave'] as const;

const interval = (state: string) =>
  optional(
    text(`While it is ${state}: a duration of Go, \`watch\`, or \`never\`. Default: \`watch\`.`, {
      pattern: '^(?:[0-9]+(?:.[0-9])?(?:h|m|s|ms|us|ns)|never|watch)+$',
    }),
  );

const NAMESPACE_SELECTOR = object(
  'Namespaces of objects that name none. Selects nothing without `include`, `matchLabels` or `matchExpressions`.',
  {
    ...NAMESPACE_SELECTOR_FIELDS,
    terminatingInclusion: optional(
      choice('Whether namespaces that are being deleted are selected. `Default` is `IfMatch`.', [
        'IfMatch',
        'Never',
        'Default',
      ]),
    ),
  },
  { 'x-kubernetes-map-type': 'atomic' },
);

const LIST_KEY = object('One list.', {
  path: text('The path of the list in the object, as in `spec.ports`; lists on the way need no index.', {
    minLength: 1,
  }),
  key: text('The field that identifies its elements, as in `containerPort`.', { minLength: 1 }),
});

const OBJECT_TEMPLATE = object('One object.', {
  complianceType: choice('Whether the object must have these fields, must have only these, or must not exist.', [
    ...MUST_HAVE,
    ...MUST_NOT_HAVE,
  ]),
  metadataComplianceType: optional(choice('The same for its metadata. Default: `complianceType`.', MUST_HAVE)),
  recreateOption: defaulted(
    choice(
      'Whether the object is deleted and created again: when an immutable field differs (`IfRequired`), or when any does (`Always`).',
      ['None', 'IfRequired', 'Always'],
    ),
    'None',
  ),
  recordDiff: optional(
    choice('Where differences are reported. Default: `InStatus`, without values for kinds with confidential data.', [
      'Log',
      'InStatus',
      'None',
    ]),
  ),
  objectSelector: optional(
    LABEL_SELECTOR('Labels of the objects, if `objectDefinition` has no name. An empty selector selects all.'),
  ),
  listKeys: optional(
    list(
      `Lists whose elements are identified by another field than \`name\`, so that they are changed and not appended. ${EXTENSION}`,
      LIST_KEY,
    ),
  ),
  objectDefinition: anything('The object, or a part of it.'),
});

const TEMPLATE_STATUS = object('The result of one object template.', {
  Compliant: optional(choice('Its compliance.', STATES)),
  Validity: optional(
    object('Deprecated.', { valid: optional(flag('Deprecated.')), reason: optional(text('Deprecated.')) }),
  ),
  conditions: optional(
    list(
      'The result of the last evaluation.',
      object('The result.', {
        type: text('`violation` or `notification`.'),
        status: optional(text('`True`')),
        lastTransitionTime: optional(text('When the result last changed.', { format: 'date-time' })),
        reason: optional(text('The reason, for programs.')),
        message: optional(text('The reason, for users.')),
      }),
    ),
  ),
});

export type ObjectTemplateStatus = Infer<typeof TEMPLATE_STATUS>;

const RELATED_OBJECT = object('One object.', {
  object: optional(
    object('The object.', {
      apiVersion: optional(text('Its API version.')),
      kind: optional(text('Its kind.')),
      metadata: optional(
        object('Its name.', {
          name: optional(text('Its name; `-` for objects that are not named.')),
          namespace: optional(text('Its namespace.')),
        }),
      ),
    }),
  ),
  compliant: optional(text('Its compliance.')),
  reason: optional(text('Why it is compliant or not.')),
  properties: optional(
    object('What the controller needs to know of the object.', {
      createdByPolicy: optional(flag('Whether the policy created it, for `pruneObjectBehavior: DeleteIfCreated`.')),
      uid: optional(text('Its uid, which distinguishes recreated objects.')),
      recreating: optional(
        flag(
          'Whether the policy deletes the object, which it did not create, to create it again, and has not done so yet.',
        ),
      ),
      diff: optional(text('Differences of the object from the policy.')),
      matchesAfterDryRun: optional(
        flag('Whether the object differs from the policy only until the API server has applied its defaults.'),
      ),
    }),
  ),
});

export type RelatedObject = Infer<typeof RELATED_OBJECT>;

const configurationPolicy = {
  group: GOVERNANCE_GROUP,
  version: 'v1',
  kind: 'ConfigurationPolicy',
  plural: 'configurationpolicies',
  shortNames: [],
  categories: GOVERNANCE_CATEGORIES,
  labels: TEMPLATE_KIND_LABELS,
  scope: 'Namespaced',
  description:
    'Objects as they should be: it reports differences, or corrects them. Usually a template of a Policy. A kind of Open Cluster Management.',
  spec: object(
    'The objects, and what happens when they differ.',
    {
      remediationAction: defaulted(
        choice('Whether differences are only reported, or corrected.', REMEDIATION_ACTIONS),
        'inform',
      ),
      severity: SEVERITY,
      evaluationInterval: optional(
        object('When the policy is evaluated again.', {
          compliant: interval('compliant'),
          noncompliant: interval('not compliant'),
        }),
      ),
      namespaceSelector: optional(NAMESPACE_SELECTOR),
      pruneObjectBehavior: defaulted(
        choice(
          'What is deleted with the policy, or when it no longer contains an object: `DeleteIfCreated` deletes objects that it created, `DeleteAll` all that it enforced.',
          ['None', 'DeleteIfCreated', 'DeleteAll'],
        ),
        'None',
      ),
      customMessage: optional(
        object('Messages in place of the default ones: templates of Go with `.DefaultMessage` and `.Policy`.', {
          compliant: optional(text('The message while it is compliant.')),
          noncompliant: optional(text('The message while it is not, or its state is unknown.')),
        }),
      ),
      'object-templates': optional(list('The objects. Values may be templates of Go.', OBJECT_TEMPLATE)),
      'object-templates-raw': optional(text('A template of Go with a list of object templates in YAML as output.')),
    },
    {
      rules: [
        {
          rule: 'has(self.object__dash__templates) != has(self.object__dash__templates__dash__raw)',
          message: 'exactly one of object-templates and object-templates-raw must be set',
        },
      ],
    },
  ),
  status: object(
    'The result of the last evaluation. Written by the controller.',
    {
      compliant: optional(choice('The compliance of all objects together.', STATES)),
      compliancyDetails: optional(list('The results of the object templates, in their order.', TEMPLATE_STATUS)),
      lastEvaluated: optional(text('When it was last evaluated.')),
      lastEvaluatedGeneration: optional(
        integer('The `metadata.generation` that was last evaluated.', { format: 'int64' }),
      ),
      relatedObjects: optional(list('Objects that were evaluated.', RELATED_OBJECT)),
      history: optional(TEMPLATE_HISTORY),
      ...COMMON_STATUS,
    },
    { default: UNSEEN },
  ),
  columns: [
    column('Compliance state', '.status.compliant'),
    column('Remediation action', '.spec.remediationAction'),
    AGE_COLUMN,
    column('Severity', '.spec.severity', { isWide: true }),
    column('Message', '.status.history[0].message', { isWide: true }),
  ],
  example: {
    metadata: { name: 'kafka-namespace', namespace: 'local-cluster' },
    spec: {
      remediationAction: 'enforce',
      severity: 'low',
      pruneObjectBehavior: 'None',
      'object-templates': [
        {
          complianceType: 'musthave',
          recreateOption: 'None',
          objectDefinition: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kafka' } },
        },
      ],
    },
  },
} as const satisfies KindDeclaration;

export type ConfigurationPolicy = ObjectOfKind<typeof configurationPolicy>;
export const CONFIGURATION_POLICIES = ownKind(configurationPolicy);
