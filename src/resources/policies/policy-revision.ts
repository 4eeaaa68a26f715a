import { anything, choice, flag, integer, listByKey, object, optional, text, time } from '../schema-builder.ts';
import { PORTCULLIS_GROUP } from './common-schemas.ts';
import { AGE_COLUMN, column, ownKind } from './own-kind.ts';
import type { KindDeclaration, ObjectOfKind } from './own-kind.ts';

/** States of a revision, in the order of a rollout; the last two are ends of their own. */
export const REVISION_STATES = [
  'Candidate',
  'Validated',
  'Staged',
  'Serving',
  'Retired',
  'Failed',
  'Superseded',
] as const;

export type RevisionState = (typeof REVISION_STATES)[number];

const policyRevision = {
  group: PORTCULLIS_GROUP,
  version: 'v1',
  kind: 'PolicyRevision',
  plural: 'policyrevisions',
  shortNames: ['prev'],
  categories: ['portcullis'],
  scope: 'Namespaced',
  description:
    'What a policy was at one time: its spec, with its modules pinned by digest. Written by the controller only, in its own namespace.',
  spec: object(
    'What the revision holds. It never changes.',
    {
      policy: object('The policy that it is of.', {
        apiVersion: text('`policies.kubewarden.io/v1`', { maxLength: 317 }),
        kind: text('`ClusterAdmissionPolicy`', { maxLength: 63 }),
        name: text('The name of the policy.', { maxLength: 253 }),
        namespace: optional(text('The namespace of the policy, where it has one.', { maxLength: 63 })),
        uid: text('The uid of the policy: one of the same name later is another.', { maxLength: 128 }),
      }),
      policyId: text('The id of the policy: its path on policy servers, and the name of its webhook configuration.', {
        maxLength: 512,
      }),
      policyServer: text('The PolicyServer that runs it.', { maxLength: 63 }),
      revision: integer('Its number: 1 is the first of the policy.', { format: 'int64', minimum: 1 }),
      policyGeneration: integer('The `metadata.generation` of the policy that it was made of.', {
        format: 'int64',
        minimum: 1,
      }),
      rollbackOf: optional(
        integer('The revision whose spec was written back, where this one is a rollback.', {
          format: 'int64',
          minimum: 1,
        }),
      ),
      ownWebhook: optional(flag('Whether the API server asks about it by itself: the policy asked for that.')),
      snapshot: anything("The policy's spec. It never changes either, which the webhook for this kind sees to."),
    },
    {
      rules: ['revision', 'policy', 'policyId', 'policyServer', 'policyGeneration'].map((field) => ({
        rule: `self.${field} == oldSelf.${field}`,
        message: 'the field is immutable',
        fieldPath: `.${field}`,
      })),
    },
  ),
  status: object('How far the revision got. Written by the controller.', {
    state: optional(choice('Where it is in its rollout.', REVISION_STATES)),
    stateSince: optional(time('Since when it is there: what the progress deadline counts from.')),
    attempts: optional(integer('How often it was tried to be validated.', { minimum: 0 })),
    order: optional(
      integer('Of the revisions of a policy that serve, the one with the highest number here does.', {
        format: 'int64',
        minimum: 0,
      }),
    ),
    reason: optional(text('Why, in one word for programs.', { maxLength: 1024 })),
    message: optional(text('Why, for people.', { maxLength: 32_768 })),
    modules: optional(
      listByKey(
        'The modules, as they were found: a tag that moves later does not matter.',
        ['name'],
        object('One module.', {
          name: text('The name of the member of a group; the same as that of the policy where there is but one.'),
          module: text('Where it is, as the policy says.'),
          digest: text('What it is: `sha256:…`, or the version of a builtin module.', {
            pattern: '^(sha256:[0-9a-f]{64}|builtin:[a-z-]+@.{1,64})$',
          }),
        }),
      ),
    ),
    observedGeneration: optional(
      integer('The `metadata.generation` that the status is about.', { format: 'int64', minimum: 0 }),
    ),
    servingSince: optional(time('Since when it serves, or when it last began to.')),
    retiredAt: optional(time('When it ceased to serve.')),
    nextRetry: optional(time('When what failed is tried again.')),
  }),
  columns: [
    column('Kind', '.spec.policy.kind'),
    column('Policy', '.spec.policy.name'),
    column('Revision', '.spec.revision', { type: 'integer' }),
    column('State', '.status.state'),
    column('Reason', '.status.reason'),
    AGE_COLUMN,
    column('Policy Namespace', '.spec.policy.namespace', { isWide: true }),
    column('Policy Server', '.spec.policyServer', { isWide: true }),
    column('Message', '.status.message', { isWide: true }),
  ],
  example: {
    metadata: { name: 'kw.cap.no-privileged-pods-3', namespace: 'portcullis' },
    spec: {
      policy: {
        apiVersion: 'policies.kubewarden.io/v1',
        kind: 'ClusterAdmissionPolicy',
        name: 'no-privileged-pods',
        uid: '7a1d3c2e-5b0f-4a8e-9d57-3f6b1c0e2d94',
      },
      policyId: 'kw.cap.no-privileged-pods',
      policyServer: 'default',
      revision: 3,
      policyGeneration: 5,
      snapshot: {
        module: 'builtin:pod-security',
        settings: { enforce: 'baseline' },
        mutating: false,
        rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE', 'UPDATE'] }],
      },
    },
  },
} as const satisfies KindDeclaration;

export type PolicyRevision = ObjectOfKind<typeof policyRevision>;

/** What decides which one of several revisions that read Serving serves. */
export interface ServingTurn {
  /** `status.order`; 0 when it never served. */
  readonly order: number;
  /** `spec.revision` */
  readonly number: number;
}

/**
 * Whether a revision serves rather than another one, where both read Serving: the order decides, and the number where that
 * does not. Controllers, replicas and people go by this one rule.
 */
export function servesRather(one: ServingTurn, other: ServingTurn): boolean {
  return one.order > other.order || (one.order === other.order && one.number > other.number);
}
export const POLICY_REVISIONS = ownKind(policyRevision);
