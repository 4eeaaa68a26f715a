import { choice, integer, list, object, optional, text, time } from '../schema-builder.ts';
import { CONDITIONS, PORTCULLIS_GROUP } from '../kind-declarations/common-schemas.ts';
import { AGE_COLUMN, column, ownKind } from '../kind-declarations/own-kind.ts';
import type { KindDeclaration, ObjectOfKind } from '../kind-declarations/own-kind.ts';

/** Maximum number of deviations in a report, which limits the size of the object. */
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
    'A process of a PolicyServer, and its state. Written by the process itself, and owned by its Pod or Lease.',
  spec: object('The process.', {
    policyServer: text('The PolicyServer of the process.', { maxLength: 63 }),
    podName: optional(text('The pod of the process, if any.', { maxLength: 253 })),
    nodeName: optional(text('The node of the pod.', { maxLength: 253 })),
    controlAddress: optional(
      text('`host:port` where controllers and other replicas reach it, over mutual TLS.', { maxLength: 300 }),
    ),
    version: optional(text('The version of the product.', { maxLength: 64 })),
  }),
  status: object('The state of the process.', {
    setHash: optional(
      text('Hash of all serving revisions: equal on replicas that serve the same.', { maxLength: 128 }),
    ),
    servingRevisions: count('Number of serving revisions.'),
    stagedRevisions: count('Number of staged revisions.'),
    failedRevisions: count('Number of revisions that failed to load.'),
    deviations: optional(
      list(
        'Differences from the desired state; the first hundred.',
        object('One revision that is not in the desired state.', {
          policy: text('The id of the policy.', { maxLength: 512 }),
          revision: integer('The number of the revision.', { format: 'int64', minimum: 1 }),
          state: choice('The state of the revision in this process.', ['Loading', 'Missing', 'Failed', 'Stale']),
          reason: text('The reason, in CamelCase for programs.', { maxLength: 1024 }),
          message: optional(text('The reason, for users.', { maxLength: 4096 })),
        }),
        { maxItems: MAX_DEVIATIONS, 'x-kubernetes-list-type': 'atomic' },
      ),
    ),
    deviationCount: count('Number of deviations, listed or not.'),
    observedGeneration: optional(integer('The `metadata.generation` of the status.', { format: 'int64', minimum: 0 })),
    startedAt: optional(time('When the process started.')),
    lastReported: optional(time('When the status was written.')),
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
