// Gathers the current facts about one policy from caches and replicas, to plan its rollout.
import {
  type AdmissionPolicyObject,
  type AdmissionPolicySpec,
  ANNOTATIONS,
  keyOf,
  type ObjectKey,
  type PolicyMatch,
  policyMatch,
  type PolicyRevision,
  type PolicyServerObject,
  refreshRequest,
  snapshotOf,
} from '../resources/index.ts';
import type { PolicyCopies } from './copies/policy-copies.ts';
import type { KnownReplica, ReplicaDirectory } from './replicas/replica-directory.ts';
import {
  type AnnotationProblem,
  hasFailed,
  isFailurePolicyInForce,
  lastServedRevision,
  parseRevisionNumber,
  parseRolloutAnnotations,
  REASONS,
  type ReplicaFacts,
  revisionFacts,
  type RolloutSettings,
  servingRevision,
} from '../rollout/index.ts';
import type { AdmissionRevision, AdmissionRolloutView } from './rollout/admission-rollout-view.ts';
import { ADMISSION_RULES } from './rollout/inherited-validation.ts';
import { POLICY_ACTIVE } from './rollout/admission-policy-status.ts';
import { refreshAnnotationProblems } from './rollout/refresh-request.ts';
import type { TypeCheckReports } from './type-checks/type-check-reports.ts';
import { wantsOwnWebhook, webhookAnnotationProblems } from './webhooks/own-webhook.ts';
import type { PolicyReference } from './webhooks/enforcement-records.ts';
import type { PolicyWebhooks } from './webhooks/policy-webhooks.ts';

export interface ViewSources {
  readonly policyServers: { get(key: ObjectKey): PolicyServerObject | undefined };
  readonly replicas: Pick<ReplicaDirectory, 'replicas' | 'monitored'>;
  readonly webhooks: Pick<PolicyWebhooks, 'stateOf'>;
  /** Default: policies are not compared with the kinds of the cluster. */
  readonly typeChecks?: Pick<TypeCheckReports, 'of'> | undefined;
  /** Where modules are, besides on replicas. Default: that is not known. */
  readonly copies?: Pick<PolicyCopies, 'of'> | undefined;
  /** The namespace of the product. */
  readonly namespace: string;
  /** Defaults for annotations that are absent. */
  readonly settings: RolloutSettings;
}

/** @param revisions of this policy, not of a deleted one of the same name; @param now milliseconds since 1970 */
export function gatherRolloutView(
  sources: ViewSources,
  policy: AdmissionPolicyObject,
  id: string,
  revisions: readonly PolicyRevision[],
  now: number,
): AdmissionRolloutView {
  const { policyServers, replicas, settings, webhooks } = sources;
  const { generation = 0, annotations = {} } = policy.metadata;
  const newest = revisions.at(-1);
  // A policy stays where its revisions are, see checkSchema.
  const server = newest?.spec.policyServer ?? policy.spec.policyServer ?? 'default';
  const policyServer = policyServers.get({ name: server });
  const pin = annotations[ANNOTATIONS.pin];
  const typeCheck = sources.typeChecks?.of(id, policy);
  const ownWebhook = wantsOwnWebhook(annotations);
  const facts = revisions.map((revision) => revisionFacts<AdmissionPolicySpec>(revision));
  // A revision under way does not count: its match may be covered in advance.
  const rolloutSettings = {
    ...settings,
    ...parseRolloutAnnotations(policyServer?.metadata.annotations).settings,
    ...parseRolloutAnnotations(annotations).settings,
  };
  const isAnsweredByFailurePolicy = isFailurePolicyInForce({ revisions: facts, settings: rolloutSettings });
  const inForce =
    servingRevision({ revisions: facts }) ??
    (isAnsweredByFailurePolicy
      ? (lastServedRevision({ revisions: facts }) ?? failed(facts.at(-1), policy, ownWebhook))
      : undefined);
  const reference = { ...policyReference(policy, id), policyServer: server };
  const matchInForce = inForce && matchOf(policy, inForce.snapshot, inForce.ownWebhook, sources.namespace);
  return {
    now,
    generation,
    // The snapshot of a revision counts as the spec of its generation, even if it reads differently (-0, defaults of a newer
    // schema): otherwise each reconciliation would create another revision.
    spec: newest?.spec.policyGeneration === generation ? snapshotOf(newest) : policy.spec,
    ownWebhook,
    refresh: refreshRequest(annotations),
    pin: pin === undefined ? undefined : parseRevisionNumber(pin),
    settings: rolloutSettings,
    revisions: facts,
    replicas: replicas.replicas(server)?.map((replica) => replicaFacts(replica, id, revisions)),
    // A replica counts for policies of its own PolicyServer only.
    monitored: replicas.monitored
      .of(id)
      .filter(({ name, uid, policyServer: from }) => from === server && isOneOf(revisions, name, uid)),
    hasPolicyServer: policyServer !== undefined,
    copies: sources.copies?.of(server, policyServer, facts),
    typeCheck,
    isTypeCheckPending: sources.typeChecks !== undefined && typeCheck === undefined,
    invalidAnnotations: annotationProblems(policy),
    webhook: webhooks.stateOf(reference, matchInForce),
    phase: policy.status?.phase,
    rules: ADMISSION_RULES,
  };
}

/** The declared spec of a policy whose newest revision failed: with no revision that ever served, webhooks cover the spec. */
function failed(
  newest: AdmissionRevision | undefined,
  { spec }: AdmissionPolicyObject,
  ownWebhook: boolean,
): Pick<AdmissionRevision, 'snapshot' | 'ownWebhook'> | undefined {
  const isInForce = newest !== undefined && hasFailed(newest) && newest.reason !== REASONS.webhookRefused;
  return isInForce ? { snapshot: spec, ownWebhook } : undefined;
}

/** The match of a policy with the spec of one of its revisions. @param namespace of the product */
export function matchOf(
  policy: AdmissionPolicyObject,
  spec: AdmissionPolicySpec,
  ownWebhook: boolean,
  namespace: string,
): PolicyMatch {
  return policyMatch(
    { kind: policy.kind, metadata: policy.metadata, spec },
    { productNamespace: namespace, ownWebhook },
  );
}

export function policyReference(policy: AdmissionPolicyObject, id: string): PolicyReference {
  const isActive =
    policy.status?.conditions?.some(({ type, status }) => type === POLICY_ACTIVE && status === 'True') === true;
  const policyServer = policy.spec.policyServer ?? 'default';
  return { id, kind: policy.kind, key: keyOf(policy), policyServer, isActive };
}

/** Invalid annotations of a policy. */
export function annotationProblems({ metadata }: AdmissionPolicyObject): readonly AnnotationProblem[] {
  const { annotations = {} } = metadata;
  const pin = annotations[ANNOTATIONS.pin];
  return [
    ...parseRolloutAnnotations(annotations).problems,
    ...refreshAnnotationProblems(annotations),
    ...webhookAnnotationProblems(annotations),
    ...(pin === undefined || parseRevisionNumber(pin) !== undefined
      ? []
      : [{ annotation: ANNOTATIONS.pin, message: 'expected the number of a revision, such as "3"' }]),
  ];
}

function isOneOf(revisions: readonly PolicyRevision[], name: string, uid: string): boolean {
  return revisions.some(({ metadata }) => metadata.name === name && metadata.uid === uid);
}

/** A replica's reports on these revisions, without those on deleted revisions of the same names. */
function replicaFacts(replica: KnownReplica, id: string, revisions: readonly PolicyRevision[]): ReplicaFacts {
  const uids = new Map(revisions.map(({ metadata }) => [metadata.name, metadata.uid]));
  const reports = replica.reports(id).filter(({ name, uid }) => uids.get(name) === uid);
  return {
    name: replica.name,
    state: replica.state,
    ...(replica.isUnready === true && { isUnready: true }),
    nodeName: replica.nodeName,
    revisions: new Map(
      reports.map(
        ({
          revision,
          state,
          answers,
          order,
          reason = '',
          message = '',
          nextRetry,
          isUncached,
          parameters,
          areParametersTried,
          refused,
        }) => [
          revision,
          {
            state,
            answers,
            order,
            reason,
            message,
            nextRetry: nextRetry === undefined ? undefined : Date.parse(nextRetry),
            ...(isUncached && { isUncached }),
            ...(parameters && { parameters }),
            ...(areParametersTried && { areParametersTried }),
            ...(refused && { refused }),
          },
        ],
      ),
    ),
  };
}
