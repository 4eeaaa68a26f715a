import { choice, list, object, optional, text } from '../schema-builder.ts';
import { UNSEEN } from '../kind-declarations/common-schemas.ts';
import { AGE_COLUMN, column, ownKind } from '../kind-declarations/own-kind.ts';
import type { KindDeclaration, ObjectOfKind } from '../kind-declarations/own-kind.ts';
import { GOVERNANCE_GROUP } from './governance-names.ts';
import { COMMON_STATUS, COMPLIANCE_STATES, GOVERNANCE_CATEGORIES } from './governance-schemas.ts';

const NAME = { minLength: 1 } as const;

const policySet = {
  group: GOVERNANCE_GROUP,
  version: 'v1beta1',
  kind: 'PolicySet',
  plural: 'policysets',
  shortNames: ['plcset'],
  categories: GOVERNANCE_CATEGORIES,
  scope: 'Namespaced',
  description:
    'Policies of one namespace that are placed together. A dependency on it is one on each of them. A kind of Open Cluster Management.',
  spec: object('The Policies.', {
    description: optional(text('What the set is for.')),
    policies: list('The Policies, in the namespace of the set.', text('The name of a Policy.', NAME)),
    exclusions: optional(
      list(
        'Policies that are left out on some clusters.',
        object('One Policy.', {
          policyName: text('The Policy, one of `policies`.', NAME),
          reason: optional(text('Why it is left out.')),
          clusterNames: list('The clusters.', text('The name of a cluster.', NAME), { minItems: 1 }),
        }),
      ),
    ),
  }),
  status: object(
    'The state of the set. Written by the controller.',
    {
      compliant: optional(
        choice(
          'NonCompliant if a Policy is, else Pending if a Policy is. Absent while a Policy has no state or does not exist.',
          COMPLIANCE_STATES,
        ),
      ),
      statusMessage: optional(text('Policies that are pending, disabled, deleted or without a state.')),
      placement: optional(
        list(
          'What places the set.',
          object('One placement.', {
            placementBinding: optional(text('The PlacementBinding.')),
            placement: optional(text('The Placement.')),
            placementRule: optional(text('The PlacementRule.')),
          }),
        ),
      ),
      exclusions: optional(
        list(
          'Policies that are left out.',
          object('One Policy.', {
            policyName: text('The Policy.', NAME),
            clusters: list('The clusters.', text('The name of a cluster.', NAME), { minItems: 1 }),
          }),
        ),
      ),
      ...COMMON_STATUS,
    },
    { default: UNSEEN },
  ),
  columns: [column('Compliance state', '.status.compliant'), AGE_COLUMN, column('Message', '.status.statusMessage')],
  example: {
    metadata: { name: 'kafka', namespace: 'policies' },
    spec: { description: 'Kafka, and the operator that it needs.', policies: ['kafka-operator', 'kafka-cluster'] },
  },
} as const satisfies KindDeclaration;

export type PolicySet = ObjectOfKind<typeof policySet>;
export const POLICY_SETS = ownKind(policySet);
