// Why an admission policy does not serve as it is declared.
import {
  type AdmissionPolicyObject,
  type Condition,
  DEFAULT_POLICY_SERVER,
  findCondition,
  MODULES_KEPT,
  POLICY_ENFORCED,
  type PolicyRevision,
  READY,
  RECONCILING,
  type RevisionSummary,
  STALLED,
} from '../resources/index.ts';
import { admissionPolicySteps } from './admission-policy-steps.ts';
import { commandNameOf } from './command-name.ts';
import { existingObjects } from './existing-objects.ts';
import type { Asked, Explanation, RootCause } from './explanation.ts';
import type { Read } from './read.ts';
import { reasonAnswer } from './reason-answers.ts';

export interface AdmissionPolicyFacts {
  readonly policy: AdmissionPolicyObject;
  readonly server: Read<object>;
  readonly revisions: Read<readonly PolicyRevision[]>;
  /** The namespace of PolicyRevisions. */
  readonly productNamespace: string;
}

/** Conditions that only sum up others. */
const SUMMARIES: ReadonlySet<string> = new Set([READY, RECONCILING, STALLED]);

export function explainAdmissionPolicy(facts: AdmissionPolicyFacts, asked: Asked): Explanation {
  const { policy } = facts;
  const { status } = policy;
  const object = commandNameOf(policy);
  const unread = unreadOf(facts);
  const isSeen = status?.phase !== undefined;
  const ready = findCondition(status?.conditions, READY);
  const causes = isSeen ? causesOf(facts) : unseenCauses(facts);
  const evidence = evidenceOf(status?.conditions ?? []);
  const because = [
    ...staleText(policy),
    ...causes.map(causeText),
    ...servingText(policy),
    ...outcomeText(policy, causes),
  ];
  const existing = existingObjects(policy, asked);
  return {
    object,
    state: status?.phase ?? 'Unknown',
    ...(ready === undefined ? {} : { ready: ready.status, since: ready.lastTransitionTime }),
    because: [...(because.length === 0 ? ['It serves as declared.'] : because), ...existing.because],
    ...(causes.length === 0 ? {} : { rootCauses: causes }),
    ...(evidence.length === 0 ? {} : { evidence }),
    ...(unread.length === 0 ? {} : { unread }),
    toDo: [...stepsOf(facts, causes, asked), ...existing.toDo],
  };
}

/** The status is about an older spec. */
function staleText({ metadata: { generation = 0 }, status }: AdmissionPolicyObject): readonly string[] {
  return isBehind(status?.observedGeneration, generation) && status?.phase !== undefined
    ? [`The controller has not seen generation ${generation} yet: this is about an older spec.`]
    : [];
}

function isBehind(observed: number | undefined, generation: number): boolean {
  return (observed ?? 0) < generation;
}

/** Why there is no status. */
function unseenCauses({ server, policy }: AdmissionPolicyFacts): readonly RootCause[] {
  const message = 'no controller has seen the policy yet, so what it does is not known';
  return [
    { reason: NOT_SEEN, message },
    ...(server === 'absent' ? [{ reason: 'PolicyServerNotFound', message: serverText(policy) }] : []),
  ];
}

function serverText({ spec }: AdmissionPolicyObject): string {
  return `PolicyServer ${spec.policyServer ?? DEFAULT_POLICY_SERVER} does not exist`;
}

/** Phases in which the reason of the status is that of a problem, or of what is waited for. */
const UNSETTLED: ReadonlySet<string> = new Set(['Pending', 'Updating', 'Degraded', 'Error', 'RolledBack']);

/** What the status says is not as declared, the reason of the phase first. */
function causesOf({ policy, revisions }: Pick<AdmissionPolicyFacts, 'policy' | 'revisions'>): readonly RootCause[] {
  const { phase = '', reason = '', message = '', issues = [], conditions = [], desiredRevision } = policy.status ?? {};
  const ready = findCondition(conditions, READY);
  // The reason of the status may be that of an issue, which follows.
  const isPhase = UNSETTLED.has(phase) || (ready?.status === 'False' && !issues.some((one) => one.reason === reason));
  const since = failureSince(revisions, desiredRevision ?? 0);
  const first = isPhase && reason !== '' ? [cause(reason, message, since)] : [];
  const declared = issues.map((issue) =>
    cause(issue.reason, issue.field === undefined ? issue.message : `${issue.field}: ${issue.message}`),
  );
  const further = conditions
    .filter(({ type, status }) => status !== 'True' && (type === MODULES_KEPT || type === POLICY_ENFORCED))
    .filter((one) => one.reason !== reason && reasonAnswer(one.reason)?.toDo !== undefined)
    .map((one) => cause(one.reason, `${one.type} is ${one.status}: ${one.message}`, one.lastTransitionTime));
  return [...first, ...declared, ...further];
}

function cause(reason: string, message: string, since?: string): RootCause {
  return { reason, message, ...(since === undefined || since === '' ? {} : { since }) };
}

/** When the desired revision failed, for one that did. */
function failureSince(revisions: Read<readonly PolicyRevision[]>, desired: number): string | undefined {
  const found = Array.isArray(revisions)
    ? (revisions as readonly PolicyRevision[]).find(({ spec }) => spec.revision === desired)
    : undefined;
  return found?.status?.state === 'Failed' ? found.status.stateSince : undefined;
}

function causeText({ reason, message, since }: RootCause): string {
  const time = since === undefined ? '' : ` since ${since}`;
  const text = message === '' ? (reasonAnswer(reason)?.meaning ?? '') : message;
  return `${reason}${time}: ${text}`;
}

/** The revision that serves instead of the desired one. */
function servingText({ status }: AdmissionPolicyObject): readonly string[] {
  const { serving, desiredRevision = 0, revisions = [] } = status ?? {};
  if (serving === undefined || serving.revision === desiredRevision || desiredRevision === 0) {
    return [];
  }
  const failed = revisions.find(({ revision }: RevisionSummary) => revision === desiredRevision);
  const state = failed === undefined ? '' : ` is ${failed.state}`;
  return [
    `Revision ${serving.revision}, the last good one, serves since ${serving.since}; revision ${desiredRevision}${state}.`,
  ];
}

/** What requests get, where no other sentence says it. */
function outcomeText({ status }: AdmissionPolicyObject, causes: readonly RootCause[]): readonly string[] {
  const enforced = findCondition(status?.conditions, POLICY_ENFORCED);
  if (enforced === undefined) {
    return status?.phase === undefined ? [] : ['What requests get is not known: the condition Enforced is absent.'];
  }
  const isSaid = causes.some(({ message }) => message.includes(enforced.message));
  const prefix = enforced.status === 'Unknown' ? 'What requests get is Unknown' : 'What requests get';
  return isSaid || (causes.length === 0 && enforced.status === 'True') ? [] : [`${prefix}: ${enforced.message}.`];
}

/** Conditions that are not as they should be; those that sum up others only where there are no others. */
function evidenceOf(conditions: readonly Condition[]): readonly Condition[] {
  const abnormal = conditions.filter(({ type, status }) => status !== 'True' && !SUMMARIES.has(type));
  return abnormal.length > 0 ? abnormal : conditions.filter(({ type, status }) => type === READY && status !== 'True');
}

function unreadOf({ revisions, server, policy, productNamespace }: AdmissionPolicyFacts): readonly string[] {
  const name = policy.spec.policyServer ?? DEFAULT_POLICY_SERVER;
  return [
    ...(revisions === 'unreadable'
      ? [`You may not read PolicyRevisions in namespace ${productNamespace}: what is here is from the status alone.`]
      : []),
    ...(server === 'unreadable'
      ? [`You may not read PolicyServer ${name}: whether it exists and is ready is Unknown.`]
      : []),
  ];
}

function stepsOf(
  { policy, server }: AdmissionPolicyFacts,
  causes: readonly RootCause[],
  asked: Asked,
): readonly string[] {
  const reasons = causes.map(({ reason }) => reason);
  const { program } = asked;
  return [
    ...(reasons.includes(NOT_SEEN) ? [`To find out why no controller has seen it: ${program} doctor`] : []),
    ...admissionPolicySteps(
      policy,
      reasons.filter((reason) => reason !== NOT_SEEN),
      asked,
    ),
    ...(reasons.some((reason) => SERVER_REASONS.has(reason)) && typeof server === 'object'
      ? [`See the state of its PolicyServer: ${program} explain policyserver/${serverName(policy)}`]
      : []),
  ];
}

/** The cause of a policy without a status. */
const NOT_SEEN = 'NotSeen';
const SERVER_REASONS: ReadonlySet<string> = new Set(['NoReplicas', 'ReplicaUnreachable', 'ReplicaFailed']);

function serverName({ spec }: AdmissionPolicyObject): string {
  return spec.policyServer ?? DEFAULT_POLICY_SERVER;
}
