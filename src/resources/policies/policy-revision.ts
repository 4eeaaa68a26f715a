import { anything, choice, flag, integer, list, listByKey, object, optional, text, time } from '../schema-builder.ts';
import type { AdmissionPolicySpec } from './policy-names.ts';
import { POLICY_WARNINGS, PORTCULLIS_GROUP } from '../kind-declarations/common-schemas.ts';
import { AGE_COLUMN, column, ownKind } from '../kind-declarations/own-kind.ts';
import type { KindDeclaration, ObjectOfKind } from '../kind-declarations/own-kind.ts';
import { REVISION_PREVIEW } from '../kind-declarations/revision-preview.ts';
import { REVISION_STATES } from '../kind-declarations/revision-states.ts';

/** Longest fingerprint of parameters: a digest, and the names of 32 namespaces. Characters. */
export const MAX_PARAMETERS_FINGERPRINT = 2_176;

const policyRevision = {
  group: PORTCULLIS_GROUP,
  version: 'v1',
  kind: 'PolicyRevision',
  plural: 'policyrevisions',
  shortNames: ['prev'],
  categories: ['portcullis'],
  scope: 'Namespaced',
  description:
    'A snapshot of a policy: its spec, with its modules pinned by digest. Written by the controller, in its own namespace.',
  spec: object(
    'The snapshot. Immutable.',
    {
      policy: object('The policy of the revision.', {
        apiVersion: text('`policies.kubewarden.io/v1`', { maxLength: 317 }),
        kind: text('`ClusterAdmissionPolicy`', { maxLength: 63 }),
        name: text('The name of the policy.', { maxLength: 253 }),
        namespace: optional(text('The namespace of the policy, where it has one.', { maxLength: 63 })),
        uid: text('The uid of the policy, which distinguishes recreated policies.', { maxLength: 128 }),
      }),
      policyId: text('The id of the policy: its path on policy servers, and the name of its webhook configuration.', {
        maxLength: 512,
      }),
      policyServer: text('The PolicyServer that runs it. Empty for a governance policy, which none runs.', {
        maxLength: 63,
      }),
      revision: integer('The number of the revision, from 1.', { format: 'int64', minimum: 1 }),
      policyGeneration: integer('The `metadata.generation` of the policy in the snapshot.', {
        format: 'int64',
        minimum: 1,
      }),
      rollbackOf: optional(
        integer('The revision whose spec was restored, if this one is a rollback.', {
          format: 'int64',
          minimum: 1,
        }),
      ),
      ownWebhook: optional(flag('Whether the policy requested its own webhook.')),
      refresh: optional(
        text('The annotation `portcullis.dev/refresh` of the policy when the revision was made.', { maxLength: 64 }),
      ),
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
  status: object('The state of the revision. Written by the controller, but for its preview.', {
    state: optional(choice('The state in its rollout.', REVISION_STATES)),
    stateSince: optional(time('When it entered the state. The progress deadline counts from here.')),
    attempts: optional(integer('Number of validation attempts.', { minimum: 0 })),
    order: optional(
      integer('Of several revisions in state Serving, the one with the highest order serves.', {
        format: 'int64',
        minimum: 0,
      }),
    ),
    reason: optional(text('The reason, in CamelCase for programs.', { maxLength: 1024 })),
    message: optional(text('The reason, for users.', { maxLength: 32_768 })),
    modules: optional(
      listByKey(
        'The modules at validation time, independent of later changes of tags.',
        ['name'],
        object('One module.', {
          name: text('The name of the group member; for a single policy its own name.'),
          module: text('The reference in the policy.'),
          digest: text('`sha256:…`, or the version of a builtin module.', {
            pattern: '^(sha256:[0-9a-f]{64}|builtin:[a-z-]+@.{1,64})$',
          }),
          manifest: optional(
            text('Of a module from a registry: the digest of its manifest, as in `registry://…@sha256:…`.', {
              pattern: '^sha256:[0-9a-f]{64}$',
            }),
          ),
          verifiedBy: optional(
            text(
              'The verification that its signatures satisfied: a hash of the PolicyServer’s verification config and trust root.',
              { pattern: '^sha256:[0-9a-f]{64}$' },
            ),
          ),
        }),
      ),
    ),
    templates: optional(
      list(
        'Of a governance policy: its templates, in their order.',
        object('One template.', {
          name: text('The name of its object.'),
          kind: text('The kind of its object.'),
          digest: text('The digest of the template.', { pattern: '^sha256:[0-9a-f]{64}$' }),
        }),
        { 'x-kubernetes-list-type': 'atomic' },
      ),
    ),
    warnings: optional(POLICY_WARNINGS),
    refreshed: optional(
      text('The annotation `portcullis.dev/refresh` for which the modules were resolved again, and had not changed.', {
        maxLength: 64,
      }),
    ),
    observedGeneration: optional(integer('The `metadata.generation` of the status.', { format: 'int64', minimum: 0 })),
    servingSince: optional(time('When it last began to serve.')),
    retiredAt: optional(time('When it stopped serving.')),
    enforced: optional(
      flag(
        'False on a revision that failed, or that no replica can load, and whose policy is not enforced meanwhile; true on one that never served, that no replica can load, and whose policy is enforced. Otherwise the failurePolicy answers while nothing serves, unless the revision is on its way for the first time.',
      ),
    ),
    nextRetry: optional(
      time('Time of the next attempt; of one that failed for parameters, before which it is not tried again.'),
    ),
    preview: optional(REVISION_PREVIEW),
    triedParameters: optional(
      text(
        'The fingerprint of the parameters for which it failed, with the names of the namespaces that have them, where they are few. It is tried again when these parameters are others.',
        { maxLength: MAX_PARAMETERS_FINGERPRINT },
      ),
    ),
  }),
  columns: [
    column('Kind', '.spec.policy.kind'),
    column('Policy', '.spec.policy.name'),
    column('Revision', '.spec.revision', { type: 'integer' }),
    column('State', '.status.state'),
    column('Reason', '.status.reason'),
    column('Newly Rejected', '.status.preview.summary'),
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

/** What a revision consists of, as its pre-validation found: its modules, or the templates of a governance policy, with their kinds. */
export function revisionParts({
  status,
}: Pick<PolicyRevision, 'status'>): NonNullable<NonNullable<PolicyRevision['status']>['modules']> {
  return status?.modules ?? status?.templates?.map(({ name, kind, digest }) => ({ name, module: kind, digest })) ?? [];
}

/** The spec of the policy in a revision. The schema of the kind does not validate it: its controller wrote it. */
export function snapshotOf({ spec }: Pick<PolicyRevision, 'spec'>): AdmissionPolicySpec {
  return spec.snapshot as unknown as AdmissionPolicySpec;
}

/** Decides which of several revisions in state Serving serves. */
export interface ServingTurn {
  /** `status.order`; 0 when it never served. */
  readonly order: number;
  /** `spec.revision` */
  readonly number: number;
}

/**
 * Whether a revision serves instead of another one that is also in state Serving: the higher order decides, then the
 * higher number. The same rule for controllers, replicas and users.
 */
export function servesInsteadOf(one: ServingTurn, other: ServingTurn): boolean {
  return one.order > other.order || (one.order === other.order && one.number > other.number);
}
export const POLICY_REVISIONS = ownKind(policyRevision);
