import { choice, defaulted, integer, list, listByKey, object, optional, text, time } from '../schema-builder.ts';
import {
  CONDITIONS,
  LABEL_SELECTOR_FIELDS,
  OBSERVED_GENERATION,
  PORTCULLIS_GROUP,
  UNSEEN,
} from '../kind-declarations/common-schemas.ts';
import { MAX_AUDIT_MESSAGE } from '../kind-declarations/audit-status.ts';
import { AGE_COLUMN, column, ownKind } from '../kind-declarations/own-kind.ts';
import type { KindDeclaration, ObjectOfKind } from '../kind-declarations/own-kind.ts';

/**
 * Policies of one exception. API servers ask for the right to each, at 350,000 units of cost: 28 are the limit of a
 * ValidatingAdmissionPolicy, 10,000,000.
 */
export const MAX_EXCEPTION_POLICIES = 16;
const MAX_KINDS = 32;
const MAX_NAMES = 100;
/** Few, because the author of an exception need not be the author of the policy, and requests wait for them. */
const MAX_CONDITIONS = 8;
const MAX_EXPRESSION = 2_048;
const MAX_NAME = 253;
const MAX_UID = 64;
const MAX_TIME = 64;
/** Processes that a status lists: all replicas of the controller, most of which never answer about one namespace's exceptions. */
export const MAX_USED_BY = 1_000;

const EXCEPTED_POLICY = object(
  'A policy.',
  {
    kind: choice(
      'The kind of the policy. An AdmissionPolicy and a group of these are in the namespace of the exception.',
      ['ClusterAdmissionPolicy', 'ClusterAdmissionPolicyGroup', 'AdmissionPolicy', 'AdmissionPolicyGroup'],
    ),
    name: text('The name of the policy.', {
      minLength: 1,
      maxLength: MAX_NAME,
      pattern: '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$',
    }),
    members: optional(
      list(
        'Members of a group that count as fulfilled. Default: the whole policy is excepted.',
        text('The name of a member.', { minLength: 1, maxLength: 63 }),
        { minItems: 1, maxItems: 32, 'x-kubernetes-list-type': 'set' },
      ),
    ),
  },
  { rules: [{ rule: "!has(self.members) || self.kind.endsWith('Group')", message: 'only groups have members' }] },
);

const EXCEPTED_OBJECTS = object(
  'Objects of the namespace: those of one of the kinds, with one of the names, and with the labels.',
  {
    kinds: list(
      'Kinds of the objects.',
      object('A kind, in all of its versions.', {
        apiGroup: defaulted(
          text('The group of the kind: `apps`. Default: the core group.', { maxLength: MAX_NAME }),
          '',
        ),
        kind: text('The kind: `Pod`.', { minLength: 1, maxLength: 63 }),
      }),
      { minItems: 1, maxItems: MAX_KINDS, 'x-kubernetes-list-type': 'atomic' },
    ),
    names: optional(
      list(
        'Names of the objects; `*` at the end stands for any rest. An object whose name the API server is to generate has the name that this begins with.',
        text('A name, or `prefix-*`.', { minLength: 1, maxLength: MAX_NAME, pattern: String.raw`^[^*]+\*?$` }),
        { minItems: 1, maxItems: MAX_NAMES, 'x-kubernetes-list-type': 'atomic' },
      ),
    ),
    labelSelector: optional(
      object('Labels of the objects. An empty selector is refused.', LABEL_SELECTOR_FIELDS, {
        'x-kubernetes-map-type': 'atomic',
        rules: [
          {
            rule: '(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)',
            message: 'an empty selector matches nothing: name labels',
          },
        ],
      }),
    ),
  },
  {
    rules: [{ rule: 'has(self.names) || has(self.labelSelector)', message: 'expected names, labelSelector, or both' }],
  },
);

const policyException = {
  group: PORTCULLIS_GROUP,
  version: 'v1',
  kind: 'PolicyException',
  plural: 'policyexceptions',
  shortNames: ['pex'],
  categories: ['portcullis'],
  scope: 'Namespaced',
  description:
    'Objects of its namespace that policies do not reject or change until a given time. Whoever writes one needs the verb `exempt` on each of its policies.',
  spec: object('Which policies do not apply to which objects, why, and until when.', {
    policies: listByKey('The policies.', ['kind', 'name'], EXCEPTED_POLICY, {
      minItems: 1,
      maxItems: MAX_EXCEPTION_POLICIES,
    }),
    objects: EXCEPTED_OBJECTS,
    matchConditions: optional(
      listByKey(
        'Expressions in CEL about `object`, `oldObject` and `request`, all of which must be true. One that fails excepts nothing.',
        ['name'],
        object('One condition.', {
          name: text('The name, for messages.', { minLength: 1, maxLength: 63 }),
          expression: text('An expression in CEL with a boolean result.', {
            minLength: 1,
            maxLength: MAX_EXPRESSION,
          }),
        }),
        { maxItems: MAX_CONDITIONS },
      ),
    ),
    reason: text('Why, for those who read it later.', { minLength: 1, maxLength: 1024 }),
    ticket: optional(text('Where it was decided: a number or an address.', { maxLength: 1024 })),
    owner: optional(text('Who answers for it: a person or a team.', { maxLength: 253 })),
    expiresAt: {
      ...time('When it ends, in UTC: `2027-01-31T12:00:00Z`. At most 366 days after it is written.'),
      pattern: String.raw`^\d{4}-\d\d-\d\dT\d\d:\d\d:[0-5]\dZ$`,
    },
  }),
  status: object(
    'Whether it is in force, and used. Written by the controller; `matched` by the auditor.',
    {
      observedGeneration: OBSERVED_GENERATION,
      state: optional(
        choice('Its state.', ['Pending', 'Active', 'Unused', 'ExpiringSoon', 'Expired', 'Orphaned', 'Refused']),
      ),
      accepted: optional(
        object('What the controller has accepted: nothing else is in force.', {
          uid: text('The `metadata.uid` of the exception.', { maxLength: MAX_UID }),
          generation: integer('The `metadata.generation` of the exception.', { format: 'int64', minimum: 1 }),
          since: optional(time('When it was accepted, and uses began to be counted.')),
          policies: list(
            'The policies, in the order of the spec.',
            object('A policy.', {
              kind: text('The kind of the policy.', { maxLength: 63 }),
              name: text('The name of the policy.', { maxLength: MAX_NAME }),
              uid: text('The `metadata.uid` of the policy.', { maxLength: MAX_UID }),
            }),
            { maxItems: MAX_EXCEPTION_POLICIES, 'x-kubernetes-list-type': 'atomic' },
          ),
        }),
      ),
      used: optional(
        integer(
          'How many requests it let through that a policy would have rejected or changed; dry runs do not count.',
          {
            format: 'int64',
            minimum: 0,
          },
        ),
      ),
      lastUsed: optional(time('When the last of them was, by the clock of the policy server.')),
      usedBy: optional(
        list(
          'What was counted from each replica of a policy server.',
          object('One process.', {
            name: text('The name of its PolicyServerReplica.', { maxLength: MAX_NAME }),
            since: text('When it began to count.', { maxLength: MAX_TIME }),
            count: integer('Number of requests.', { format: 'int64', minimum: 0 }),
          }),
          { maxItems: MAX_USED_BY, 'x-kubernetes-list-type': 'atomic' },
        ),
      ),
      matched: optional(
        object(
          'Existing objects of its namespace that a policy would reject or change without it. Written by the auditor; absent: not known.',
          {
            summary: text('How many: `3`; `3+` or `Unknown` where not all of them are judged.', { maxLength: 16 }),
            count: integer('How many of those that are judged.', { format: 'int64', minimum: 0 }),
            observedGeneration: integer('The `metadata.generation` of the exception.', { format: 'int64', minimum: 1 }),
            message: optional(text('Why not all of them are judged.', { maxLength: MAX_AUDIT_MESSAGE })),
          },
        ),
      ),
      conditions: optional(CONDITIONS),
    },
    { default: UNSEEN },
  ),
  columns: [
    column('Policy', '.spec.policies[*].name'),
    column('State', '.status.state'),
    column('Expires', '.spec.expiresAt'),
    column('Objects', '.status.matched.summary'),
    column('Used', '.status.used', { type: 'integer' }),
    column('Last-Used', '.status.lastUsed', { type: 'date' }),
    AGE_COLUMN,
    column('Reason', '.spec.reason', { isWide: true }),
    column('Owner', '.spec.owner', { isWide: true }),
    column('Message', '.status.conditions[?(@.type=="Ready")].message', { isWide: true }),
  ],
  example: {
    metadata: { name: 'legacy-importer', namespace: 'shop' },
    spec: {
      policies: [{ kind: 'ClusterAdmissionPolicy', name: 'pinned-images' }],
      objects: { kinds: [{ apiGroup: '', kind: 'Pod' }], labelSelector: { matchLabels: { app: 'importer' } } },
      reason: 'The vendor publishes only the tag latest until the next release.',
      ticket: 'OPS-4711',
      owner: 'team-shop',
      expiresAt: '2027-01-31T12:00:00Z',
    },
  },
} as const satisfies KindDeclaration;

export type PolicyException = ObjectOfKind<typeof policyException>;
export const POLICY_EXCEPTIONS = ownKind(policyException);
