import { choice, integer, list, object, optional, text, time } from '../schema-builder.ts';
import { CONDITIONS, PORTCULLIS_GROUP } from './common-schemas.ts';
import { AGE_COLUMN, column, ownKind } from './own-kind.ts';
import type { KindDeclaration, ObjectOfKind } from './own-kind.ts';

/** Deviations that a replica reports: the object stays small however much is wrong. */
export const MAX_DEVIATIONS = 100;

const count = (description: string) => optional(integer(description, { minimum: 0 }));

const policyServerReplica = {
  group: PORTCULLIS_GROUP,
  version: 'v1',
  kind: 'PolicyServerReplica',
  plural: 'policyserverreplicas',
  shortNames: ['psr'],
  categories: ['portcullis'],
  scope: 'Namespaced',
  description:
    'One process of a PolicyServer and what it serves. Written by the process itself; it goes with the Pod or the Lease that owns it.',
  spec: object('What the process is.', {
    policyServer: text('The PolicyServer that it belongs to.', { maxLength: 63 }),
    podName: optional(text('The pod that it runs in, where there is one.', { maxLength: 253 })),
    controlAddress: optional(
      text('`host:port` where controllers and other replicas reach it, over mutual TLS.', { maxLength: 300 }),
    ),
    version: optional(text('The version of the product.', { maxLength: 64 })),
  }),
  status: object('What the process serves.', {
    setHash: optional(
      text('The hash of all revisions that it serves: equal on replicas that serve the same.', { maxLength: 128 }),
    ),
    servingRevisions: count('Revisions that it serves.'),
    stagedRevisions: count('Revisions that it has loaded beside.'),
    failedRevisions: count('Revisions that it could not load.'),
    deviations: optional(
      list(
        'Where it differs from what is to be served; the first hundred.',
        object('One revision that the process does not have as it should.', {
          policy: text('The id of the policy.', { maxLength: 512 }),
          revision: integer('The number of the revision.', { format: 'int64', minimum: 1 }),
          state: choice('What it is here.', ['Loading', 'Missing', 'Failed', 'Stale']),
          reason: text('Why, in one word for programs.', { maxLength: 1024 }),
          message: optional(text('Why, for people.', { maxLength: 4096 })),
        }),
        { maxItems: MAX_DEVIATIONS, 'x-kubernetes-list-type': 'atomic' },
      ),
    ),
    deviationCount: count('How many deviations there are, listed or not.'),
    observedGeneration: optional(
      integer('The `metadata.generation` that the status is about.', { format: 'int64', minimum: 0 }),
    ),
    startedAt: optional(time('When the process began.')),
    lastReported: optional(time('When this was written.')),
    conditions: optional(CONDITIONS),
  }),
  columns: [
    column('Policy Server', '.spec.policyServer'),
    column('Serving', '.status.servingRevisions', { type: 'integer' }),
    column('Failed', '.status.failedRevisions', { type: 'integer' }),
    column('Deviations', '.status.deviationCount', { type: 'integer' }),
    column('Reported', '.status.lastReported', { type: 'date' }),
    AGE_COLUMN,
    column('Set', '.status.setHash', { isWide: true }),
    column('Version', '.spec.version', { isWide: true }),
  ],
  example: {
    metadata: { name: 'policy-server-default-6c9f7d5b8-x2x7k', namespace: 'portcullis' },
    spec: { policyServer: 'default', podName: 'policy-server-default-6c9f7d5b8-x2x7k' },
  },
} as const satisfies KindDeclaration;

export type PolicyServerReplica = ObjectOfKind<typeof policyServerReplica>;
export const POLICY_SERVER_REPLICAS = ownKind(policyServerReplica);
