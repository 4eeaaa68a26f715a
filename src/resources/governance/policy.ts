import { anything, choice, flag, integer, list, object, optional, text, time } from '../schema-builder.ts';
import type { Infer } from '../schema-builder.ts';
import { REVISION_STATUS, UNSEEN } from '../kind-declarations/common-schemas.ts';
import { AGE_COLUMN, column, ownKind } from '../kind-declarations/own-kind.ts';
import type { KindDeclaration, ObjectOfKind } from '../kind-declarations/own-kind.ts';
import { GOVERNANCE_GROUP, GOVERNANCE_LABELS } from './governance-names.ts';
import {
  COMMON_STATUS,
  COMPLIANCE_STATES,
  EXTENSION,
  GOVERNANCE_CATEGORIES,
  HISTORY_FIELDS,
  MAX_HISTORY,
  REMEDIATION_ACTIONS,
} from './governance-schemas.ts';

/** Limits of a Policy. API servers estimate the rule for dependencies at 19 for each, and allow 10 million. */
const MAX_POLICY_TEMPLATES = 1000;
/** Of the Policy, and of each of its templates. */
export const MAX_DEPENDENCIES = 500;

/** Why a dependency is not met. */
const PENDING_REASONS = [
  'NoSuchKind',
  'NotFound',
  'NoStatus',
  'Mismatch',
  'NotPlaced',
  'Cycle',
  'Stale',
  'Forbidden',
  'GetFailed',
] as const;

/** States of a template, finer than its compliance. */
const TEMPLATE_STATES = ['Applied', 'Waiting', 'Suspended', 'Removing', 'Removed', 'Failed'] as const;

export type TemplateState = (typeof TEMPLATE_STATES)[number];

const DEPENDENCY = object(
  'An object with a required state.',
  {
    apiVersion: text('Its API version.'),
    kind: text('Its kind.'),
    name: text('Its name.'),
    namespace: optional(
      text(
        'Its namespace. Default: for a Policy or a PolicySet that of the Policy, for other governance kinds that of the cluster. Other kinds need it, unless they are cluster-scoped.',
      ),
    ),
    compliance: choice(
      'The required state. For a kind without compliance that of kstatus: Current is `Compliant` (a Deployment that is available, a ClusterAdmissionPolicy that is Active), InProgress is `Pending`, Failed is `NonCompliant`.',
      COMPLIANCE_STATES,
    ),
  },
  {
    rules: [
      {
        rule: "!(self.kind in ['CertificatePolicy', 'ConfigurationPolicy']) || !has(self.__namespace__) || self.__namespace__ == ''",
        message:
          'namespace must be empty for the kinds CertificatePolicy and ConfigurationPolicy, which are in the namespace of the cluster',
        fieldPath: '.namespace',
        reason: 'FieldValueForbidden',
      },
    ],
  },
);

export type PolicyDependency = Infer<typeof DEPENDENCY>;

const dependencies = (description: string) => optional(list(description, DEPENDENCY, { maxItems: MAX_DEPENDENCIES }));

const POLICY_TEMPLATE = object('One object.', {
  objectDefinition: anything('The object: a ConfigurationPolicy, or another kind that Policies may apply.'),
  extraDependencies: dependencies('Dependencies of this template, in addition to those of the Policy.'),
  ignorePending: optional(
    flag('Whether the template counts as compliant while its dependencies are not met. Default: false.'),
  ),
});

export type PolicyTemplate = Infer<typeof POLICY_TEMPLATE>;

const PENDING_DEPENDENCY = object('One dependency.', {
  apiVersion: text('Its API version.'),
  kind: text('Its kind.'),
  namespace: optional(text('Its namespace.')),
  name: text('Its name.'),
  required: choice('Its required state.', COMPLIANCE_STATES),
  actual: optional(text('Its state, if it has one.')),
  reason: choice('Why it is not met.', PENDING_REASONS),
  since: time('Since when it is not met for this reason.'),
  message: optional(text('The reason, for users.')),
});

export type PendingDependency = Infer<typeof PENDING_DEPENDENCY>;

const POLICY_HISTORY_ENTRY = object('One message.', {
  ...HISTORY_FIELDS,
  eventName: optional(text('The event with the message.')),
});

export type PolicyHistoryEntry = Infer<typeof POLICY_HISTORY_ENTRY>;

const TEMPLATE_DETAILS = object('One template.', {
  templateMeta: optional(
    object('Its metadata.', { name: optional(text('Its name.')) }, { 'x-kubernetes-preserve-unknown-fields': true }),
  ),
  compliant: optional(choice('Its compliance.', COMPLIANCE_STATES)),
  history: optional(list(`Its last ${MAX_HISTORY} messages, newest first.`, POLICY_HISTORY_ENTRY)),
  state: optional(
    choice(
      `\`Waiting\` for dependencies, and not applied yet. \`Suspended\`: a dependency is no longer met, nothing is evaluated or deleted. \`Removed\`: a dependency is no longer met, and its object was deleted as \`pruneObjectBehavior\` says. \`Failed\`: it cannot be applied. ${EXTENSION}`,
      TEMPLATE_STATES,
    ),
  ),
  observedGeneration: optional(
    integer(`The \`metadata.generation\` of its object that the compliance is about. ${EXTENSION}`, {
      format: 'int64',
      minimum: 0,
    }),
  ),
  pending: optional(list(`Dependencies that are not met. ${EXTENSION}`, PENDING_DEPENDENCY)),
});

export type TemplateDetails = Infer<typeof TEMPLATE_DETAILS>;

const PENDING_TEMPLATE = object('One template.', {
  template: text('Its name.'),
  reason: choice('Why its first dependency is not met.', PENDING_REASONS),
  message: text('The reason, for users.'),
});

export type PendingTemplate = Infer<typeof PENDING_TEMPLATE>;

const PLACEMENT = object('One placement.', {
  placementBinding: optional(text('The PlacementBinding.')),
  placement: optional(text('The Placement.')),
  placementRule: optional(text('The PlacementRule.')),
  policySet: optional(text('The PolicySet that is placed, if it is not the Policy itself.')),
  decisions: optional(
    list(
      'Clusters that were selected.',
      object('One cluster.', {
        clusterName: optional(text('Its name.')),
        clusterNamespace: optional(text('Its namespace.')),
      }),
    ),
  ),
  exclusions: optional(
    list(
      'Clusters that the PolicySet leaves out.',
      object('One cluster.', { clusterName: optional(text('Its name.')) }),
    ),
  ),
});

const CLUSTER_STATUS = object('One cluster.', {
  clustername: optional(text('Its name.')),
  clusternamespace: optional(text('Its namespace.')),
  compliant: optional(choice('The compliance on it.', COMPLIANCE_STATES)),
  remainingBindings: optional(
    list(
      'PlacementBindings that would make the Policy compliant.',
      object('One binding.', { placementBinding: optional(text('Its name.')) }),
    ),
  ),
});

const policy = {
  group: GOVERNANCE_GROUP,
  version: 'v1',
  kind: 'Policy',
  plural: 'policies',
  shortNames: ['plc'],
  categories: GOVERNANCE_CATEGORIES,
  scope: 'Namespaced',
  description:
    'Templates of objects that are applied to a cluster when their dependencies are met. Each cluster has a copy with the results. A kind of Open Cluster Management.',
  spec: object('The templates, and what they depend on.', {
    disabled: flag('Whether the Policy is applied nowhere.'),
    remediationAction: optional(
      choice(
        'Takes the place of `remediationAction` in all templates. Default: that of each template.',
        REMEDIATION_ACTIONS,
      ),
    ),
    copyPolicyMetadata: optional(
      flag(
        'Whether copies have all labels and annotations, or only those with the prefix `policy.open-cluster-management.io/`. Default: true.',
      ),
    ),
    dependencies: dependencies('Objects with states that all templates wait for.'),
    hubTemplateOptions: optional(
      object('Options of templates of the hub.', {
        serviceAccountName: optional(
          text('The service account that looks objects up, in the namespace of the Policy.'),
        ),
      }),
    ),
    'policy-templates': list('The objects.', POLICY_TEMPLATE, { maxItems: MAX_POLICY_TEMPLATES }),
  }),
  status: object(
    'The results: of each cluster on the Policy, of each template on a copy. Written by the controller.',
    {
      compliant: optional(
        choice('NonCompliant if a template is, else Pending if a template is, else Compliant.', COMPLIANCE_STATES),
      ),
      message: optional(text(`Why the Policy is not compliant, in one line. ${EXTENSION}`)),
      pending: optional(list(`Templates whose dependencies are not met. ${EXTENSION}`, PENDING_TEMPLATE)),
      details: optional(list('On a copy: the results of the templates.', TEMPLATE_DETAILS)),
      placement: optional(list('What places the Policy.', PLACEMENT)),
      status: optional(list('The results of the clusters.', CLUSTER_STATUS)),
      ...REVISION_STATUS,
      ...COMMON_STATUS,
    },
    { default: UNSEEN },
  ),
  // The order of the first three is that of Open Cluster Management. The longest one is last.
  columns: [
    column('Remediation action', '.spec.remediationAction'),
    column('Compliance state', '.status.compliant'),
    AGE_COLUMN,
    column('Phase', '.status.phase'),
    column('Serving', '.status.servingRevision', { type: 'integer' }),
    column('Copy on', labelPath(GOVERNANCE_LABELS.clusterName)),
    column('Message', '.status.message'),
    column('Root policy', labelPath(GOVERNANCE_LABELS.rootPolicy), { isWide: true }),
  ],
  example: {
    metadata: { name: 'kafka-cluster', namespace: 'policies' },
    spec: {
      disabled: false,
      remediationAction: 'enforce',
      dependencies: [
        {
          apiVersion: `${GOVERNANCE_GROUP}/v1`,
          kind: 'Policy',
          name: 'kafka-operator',
          compliance: 'Compliant',
        },
      ],
      'policy-templates': [
        {
          objectDefinition: {
            apiVersion: `${GOVERNANCE_GROUP}/v1`,
            kind: 'ConfigurationPolicy',
            metadata: { name: 'kafka-cluster' },
            spec: {
              remediationAction: 'inform',
              'object-templates': [
                {
                  complianceType: 'musthave',
                  objectDefinition: {
                    apiVersion: 'kafka.strimzi.io/v1beta2',
                    kind: 'Kafka',
                    metadata: { name: 'events', namespace: 'kafka' },
                  },
                },
              ],
            },
          },
        },
      ],
    },
  },
} as const satisfies KindDeclaration;

/** The JSON path of a label. */
function labelPath(label: string): string {
  return `.metadata.labels['${label.replaceAll('.', String.raw`\.`)}']`;
}

export type Policy = ObjectOfKind<typeof policy>;
export type PolicyStatus = NonNullable<Policy['status']>;
export const POLICIES = ownKind(policy);
