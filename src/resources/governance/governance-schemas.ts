// Schemas that several governance kinds have, as permissive as those of Open Cluster Management.
import { choice, integer, list, object, optional, text } from '../schema-builder.ts';
import { CONDITIONS, LABEL_SELECTOR_FIELDS, OBSERVED_GENERATION } from '../kind-declarations/common-schemas.ts';
import { GOVERNANCE_LABELS } from './governance-names.ts';

/** Ends the description of a field that Open Cluster Management does not have. */
export const EXTENSION = 'An extension of Portcullis.';

export const GOVERNANCE_CATEGORIES = ['governance', 'portcullis'] as const;

/** Labels of the CustomResourceDefinitions of kinds that Policies may have as templates. */
export const TEMPLATE_KIND_LABELS = { [GOVERNANCE_LABELS.policyType]: 'template' } as const;

/** Compliance of a Policy, and compliance that a dependency may require. */
export const COMPLIANCE_STATES = ['Compliant', 'Pending', 'NonCompliant'] as const;

export type ComplianceState = (typeof COMPLIANCE_STATES)[number];

export const REMEDIATION_ACTIONS = ['Inform', 'inform', 'Enforce', 'enforce'] as const;

export const SEVERITY = optional(
  choice('The severity of a violation.', ['low', 'Low', 'medium', 'Medium', 'high', 'High', 'critical', 'Critical']),
);

/** RFC 3339 with fractions of a second. */
const preciseTime = (description: string) => text(description, { format: 'date-time' });

/** Fields of the status of all governance kinds that Open Cluster Management does not have. */
export const COMMON_STATUS = {
  conditions: optional({ ...CONDITIONS, description: `Conditions of the object. ${EXTENSION}` }),
  observedGeneration: optional({
    ...OBSERVED_GENERATION.schema,
    description: `${OBSERVED_GENERATION.schema.description} ${EXTENSION}`,
  }),
} as const;

/** Entries of a history; older ones are dropped, as by Open Cluster Management. */
export const MAX_HISTORY = 10;

/** Fields of an entry of a history. */
export const HISTORY_FIELDS = {
  lastTimestamp: optional(preciseTime('When the message was reported, the last time.')),
  message: optional(text('The message, as in `NonCompliant; violation - …`.')),
  firstTimestamp: optional(preciseTime(`When it was first reported, if more than once. ${EXTENSION}`)),
  count: optional(
    integer(`How often it was reported between the two times, if more than once. ${EXTENSION}`, { minimum: 1 }),
  ),
} as const;

/** The history of a template's own status. */
export const TEMPLATE_HISTORY = list(
  `The last ${MAX_HISTORY} messages, newest first.`,
  object('One message.', HISTORY_FIELDS),
);

const NAMESPACE_PATTERNS = (description: string) => list(description, text('A pattern: `kube-*`.', { minLength: 1 }));

/** Fields of a namespace selector. */
export const NAMESPACE_SELECTOR_FIELDS = {
  include: optional(
    NAMESPACE_PATTERNS('Patterns of names to select. Default: all, if `matchLabels` or `matchExpressions` is set.'),
  ),
  exclude: optional(NAMESPACE_PATTERNS('Patterns of names to leave out.')),
  ...LABEL_SELECTOR_FIELDS,
} as const;
