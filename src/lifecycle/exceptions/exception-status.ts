// The status of a PolicyException, from the exception, its policies, and the time.
import {
  type Condition,
  type ConditionUpdate,
  exceptionProblems,
  EXPIRING_SOON_MS,
  expiryOf,
  findCondition,
  type PolicyException,
  removeCondition,
  setCondition,
  setReadiness,
  timeText,
} from '../../resources/index.ts';

import type { ExceptionUsesStatus } from './exception-uses.ts';
import { type SilentReplicas, unusedAt, USE_REASONS, USED, type UseUpdate, useUpdate } from './use-condition.ts';

type Status = NonNullable<PolicyException['status']>;
type Accepted = NonNullable<Status['accepted']>;
type State = NonNullable<Status['state']>;
/** States in which it excepts objects. */
const IN_FORCE: ReadonlySet<State> = new Set(['Active', 'Unused', 'ExpiringSoon']);
/** Delay before it is found out again whether an exception is used that is not known to be. Milliseconds. */
const UNKNOWN_RETRY_MS = 600_000;

/** Reasons of the condition `Ready`. */
const EXCEPTION_REASONS = {
  /** It is in force. */
  active: 'Active',
  /** It is in force, and nothing has used it for a long time. */
  unused: USE_REASONS.unused,
  /** It is in force, and ends in less than a week. */
  expiringSoon: 'ExpiringSoon',
  /** It has ended. */
  expired: 'Expired',
  /** None of the policies that it was accepted for is there any more. */
  orphaned: 'PolicyReplaced',
  /** A policy that it names is not there yet. */
  noPolicy: 'PolicyNotFound',
  /** It is not known yet whether API servers ask who may except. */
  noGuard: 'GuardNotFound',
  /** API servers did not ask yet who may except when it was created. */
  unguarded: 'CreatedUnguarded',
  /** It breaks a rule. */
  invalid: 'Invalid',
} as const;

/** Whether API servers ask for the right to except. */
export type GuardState =
  /** Since an instant, in milliseconds since 1970. */
  | { readonly since: number }
  | 'missing'
  /** Nobody else has access to this cluster. */
  | 'not-needed';

interface NamedPolicy {
  readonly kind: string;
  readonly name: string;
}

export interface ExceptionFacts {
  /** The `metadata.uid` of a policy; undefined: there is none. @param namespace of the exception */
  readonly uidOf: (policy: NamedPolicy, namespace: string) => string | undefined;
  readonly guard: GuardState;
  /** How often it was used. */
  readonly uses: ExceptionUsesStatus;
  /** Those that answer for its policies. */
  readonly silent: SilentReplicas;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** Whether the controller has accepted this exception as it is. */
function isAccepted({ metadata, status }: PolicyException): boolean {
  const { accepted } = status ?? {};
  return accepted !== undefined && accepted.uid === metadata.uid && accepted.generation === metadata.generation;
}

/**
 * The status that an exception has now. What was accepted once stays accepted, and nothing is accepted late. Of what was created before
 * the guard, anybody may have written that it is accepted.
 */
export function exceptionStatus(exception: PolicyException, facts: ExceptionFacts): Status {
  const { metadata, status } = exception;
  const { generation = 1 } = metadata;
  const { now, uses, silent } = facts;
  const kept = isAccepted(exception) ? status?.accepted : undefined;
  const obstacle = kept === undefined ? obstacleOf(exception, facts) : unguarded(exception, facts);
  const accepted =
    obstacle === undefined ? { since: timeText(now), ...(kept ?? acceptance(exception, facts)) } : undefined;
  const use = (accepted && useUpdate({ ...accepted, ...uses }, silent, now)) ?? findCondition(status?.conditions, USED);
  const verdict = obstacle ?? stateOf(exception, accepted, use, facts);
  const isInForce = IN_FORCE.has(verdict.state);
  const readiness = {
    state: isInForce ? 'ready' : verdict.state === 'Pending' ? 'reconciling' : 'stalled',
    reason: verdict.reason,
    message: verdict.message ?? '',
  } as const;
  return {
    observedGeneration: generation,
    state: verdict.state,
    ...(accepted === undefined ? {} : { accepted }),
    ...uses,
    conditions: withUse(setReadiness(status?.conditions, readiness, generation, now), isInForce ? use : undefined, now),
  };
}

function withUse(conditions: readonly Condition[], use: UseUpdate | undefined, now: number): readonly Condition[] {
  return use === undefined ? removeCondition(conditions, USED) : setCondition(conditions, { ...use, type: USED }, now);
}

/** When the status of an exception next changes by itself, in milliseconds since 1970; undefined: never. */
export function nextChange({ spec }: PolicyException, status: Status, now: number): number | undefined {
  const end = expiryOf(spec.expiresAt) ?? -Infinity;
  const { accepted, lastUsed } = status;
  const unused = accepted?.since === undefined ? -Infinity : unusedAt({ since: accepted.since, lastUsed });
  const isUnknown = status.state === 'Active' && unused <= now;
  const changes = [end - EXPIRING_SOON_MS, end, unused, isUnknown ? now + UNKNOWN_RETRY_MS : -Infinity];
  return changes.filter((instant) => instant > now).toSorted((one, other) => one - other)[0];
}

type StateVerdict = Pick<ConditionUpdate, 'reason' | 'message'> & { readonly state: State };

/** Why an exception is not accepted. */
function obstacleOf(exception: PolicyException, { uidOf, guard, now }: ExceptionFacts): StateVerdict | undefined {
  const { metadata, spec } = exception;
  if ((expiryOf(spec.expiresAt) ?? Infinity) <= now) {
    return ended(spec.expiresAt);
  }
  const problems = exceptionProblems(exception, now);
  if (problems.length > 0) {
    const message = problems.map((problem) => `${problem.field}: ${problem.message}`).join('; ');
    return { state: 'Refused', reason: EXCEPTION_REASONS.invalid, message };
  }
  const missing = spec.policies.filter((one) => uidOf(one, metadata.namespace ?? '') === undefined);
  if (missing.length > 0) {
    const names = missing.map(({ kind, name }) => `${kind} ${name}`).join(', ');
    return { state: 'Pending', reason: EXCEPTION_REASONS.noPolicy, message: `there is no ${names}` };
  }
  if (guard === 'missing') {
    const message =
      'the ValidatingAdmissionPolicies portcullis-exceptions and portcullis-exception-status, by which API servers ask who may except, and who accepts, are not both there: install the product again';
    return { state: 'Pending', reason: EXCEPTION_REASONS.noGuard, message };
  }
  return unguarded(exception, { guard });
}

/** Why an exception cannot be accepted whatever its status says. */
function unguarded({ metadata }: PolicyException, { guard }: Pick<ExceptionFacts, 'guard'>): StateVerdict | undefined {
  // A time that cannot be read is not after it.
  if (typeof guard === 'string' || Date.parse(metadata.creationTimestamp ?? '') > guard.since) {
    return undefined;
  }
  const message = 'it was created before API servers asked who may except: delete it, and create it again';
  return { state: 'Refused', reason: EXCEPTION_REASONS.unguarded, message };
}

function acceptance({ metadata, spec }: PolicyException, { uidOf }: ExceptionFacts): Accepted {
  return {
    uid: metadata.uid ?? '',
    generation: metadata.generation ?? 1,
    policies: spec.policies.map(({ kind, name }) => ({
      kind,
      name,
      uid: uidOf({ kind, name }, metadata.namespace ?? '') ?? '',
    })),
  };
}

function stateOf(
  { metadata, spec }: PolicyException,
  accepted: Accepted | undefined,
  use: UseUpdate | undefined,
  { uidOf, now }: ExceptionFacts,
): StateVerdict {
  const end = expiryOf(spec.expiresAt) ?? -Infinity;
  if (end <= now) {
    return ended(spec.expiresAt);
  }
  const gone = (accepted?.policies ?? []).filter((one) => uidOf(one, metadata.namespace ?? '') !== one.uid);
  const names = gone.map(({ kind, name }) => `${kind} ${name}`).join(', ');
  const isGone = `${names} was deleted, or is another one now: change the spec to except from that`;
  if (gone.length === accepted?.policies.length) {
    return { state: 'Orphaned', reason: EXCEPTION_REASONS.orphaned, message: isGone };
  }
  const message = gone.length === 0 ? `it ends at ${spec.expiresAt}` : `it ends at ${spec.expiresAt}; ${isGone}`;
  if (end - now <= EXPIRING_SOON_MS) {
    return { state: 'ExpiringSoon', reason: EXCEPTION_REASONS.expiringSoon, message };
  }
  return use?.status === 'False'
    ? { state: 'Unused', reason: EXCEPTION_REASONS.unused, message: `${use.message ?? ''}; ${message}` }
    : { state: 'Active', reason: EXCEPTION_REASONS.active, message };
}

function ended(expiresAt: string): StateVerdict {
  return { state: 'Expired', reason: EXCEPTION_REASONS.expired, message: `it ended at ${expiresAt}` };
}
