// What is known of one policy now, gathered from caches and replicas: what its rollout is planned from.
import {
  type AdmissionPolicyObject,
  type AdmissionPolicySpec,
  ANNOTATIONS,
  type ObjectKey,
  type PolicyRevision,
  type PolicyServer,
} from '../resources/index.ts';
import type { PolicyWebhooks } from './policy-webhooks.ts';
import type { KnownReplica, ReplicaDirectory } from './replicas/replica-directory.ts';
import { revisionFacts } from './revision-store.ts';
import type { ReplicaFacts, RolloutSettings, RolloutView } from './rollout/rollout-view.ts';
import { type AnnotationProblem, parseRevisionNumber, parseRolloutAnnotations } from './rollout-settings.ts';

export interface ViewSources {
  readonly policyServers: { get(key: ObjectKey): PolicyServer | undefined };
  readonly replicas: Pick<ReplicaDirectory, 'replicas'>;
  readonly webhooks: Pick<PolicyWebhooks, 'isAsked'>;
  /** Where annotations say nothing else. */
  readonly settings: RolloutSettings;
}

/** @param revisions those of this very policy; @param now milliseconds since 1970 */
export function policyView(
  sources: ViewSources,
  policy: AdmissionPolicyObject,
  id: string,
  revisions: readonly PolicyRevision[],
  now: number,
): RolloutView {
  const { policyServers, replicas, settings, webhooks } = sources;
  const { generation = 0, annotations = {} } = policy.metadata;
  const server = policy.spec.policyServer ?? 'default';
  const policyServer = policyServers.get({ name: server });
  const pin = annotations[ANNOTATIONS.pin];
  const newest = revisions.at(-1)?.spec;
  return {
    now,
    generation,
    // What a revision was made of is what it holds, even where it reads differently (-0, defaults of a newer schema): if it
    // did not count as declared, revisions would be made without end.
    spec: newest?.policyGeneration === generation ? (newest.snapshot as unknown as AdmissionPolicySpec) : policy.spec,
    pin: pin === undefined ? undefined : parseRevisionNumber(pin),
    settings: {
      ...settings,
      ...parseRolloutAnnotations(policyServer?.metadata.annotations).settings,
      ...parseRolloutAnnotations(annotations).settings,
    },
    revisions: revisions.map((revision) => revisionFacts(revision)),
    replicas: replicas.replicas(server)?.map((replica) => replicaFacts(replica, id, revisions)),
    hasPolicyServer: policyServer !== undefined,
    isAsked: webhooks.isAsked(id),
    phase: policy.status?.phase,
  };
}

/** What the annotations of a policy do not say as they have to. */
export function annotationProblems({ metadata }: AdmissionPolicyObject): readonly AnnotationProblem[] {
  const { annotations = {} } = metadata;
  const pin = annotations[ANNOTATIONS.pin];
  return [
    ...parseRolloutAnnotations(annotations).problems,
    ...(pin === undefined || parseRevisionNumber(pin) !== undefined
      ? []
      : [{ annotation: ANNOTATIONS.pin, message: 'expected the number of a revision, such as "3"' }]),
  ];
}

/** What a replica says of the revisions of a policy: not of others that had the same names before. */
function replicaFacts(replica: KnownReplica, id: string, revisions: readonly PolicyRevision[]): ReplicaFacts {
  const uids = new Map(revisions.map(({ metadata }) => [metadata.name, metadata.uid]));
  const reports = replica.reports(id).filter(({ name, uid }) => uids.get(name) === uid);
  return {
    name: replica.name,
    state: replica.state,
    revisions: new Map(
      reports.map(({ revision, state, order, reason = '', message = '', nextRetry }) => [
        revision,
        { state, order, reason, message, nextRetry: nextRetry === undefined ? undefined : Date.parse(nextRetry) },
      ]),
    ),
  };
}
