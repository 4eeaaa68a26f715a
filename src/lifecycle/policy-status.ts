// What a policy's status says, from what its policy server says. Upstream's fields (contract 2.3) with ours beside them.
import { type PolicyStatus, setCondition } from '../resources/index.ts';
import type { ServedPolicy } from './policy-set.ts';

/** Requests are answered by the policy. */
export const POLICY_ACTIVE = 'PolicyActive';
/** The version that serves is the one that is declared. */
export const POLICY_UP_TO_DATE = 'UpToDate';

/** Nobody has told the policy server yet. */
const SCHEDULED = {
  phase: 'Pending',
  reason: 'Scheduled',
  message: 'the policy server has not been told of it yet',
} as const;

/** The reason of a policy that the API server cannot be told to ask about. */
export const WEBHOOK_REFUSED = 'WebhookRefused';

/** What is known of a policy. */
export interface PolicyFacts {
  /** The one that is declared. */
  readonly generation: number;
  readonly served: ServedPolicy | undefined;
  /** Whether the API server asks about it, if only as it was declared before. */
  readonly isAsked: boolean;
  /** Why the API server does not ask as it is declared, in its words. */
  readonly refusal: string | undefined;
}

/** The status to be written; conditions keep their times where nothing changed. `now` in milliseconds since 1970. */
export function policyStatus(facts: PolicyFacts, before: PolicyStatus | undefined, now: number): PolicyStatus {
  const { served, isAsked, refusal } = facts;
  const generation = served?.generation ?? facts.generation;
  const { phase, reason, message } =
    refusal === undefined
      ? (served?.status ?? SCHEDULED)
      : ({ phase: isAsked ? 'Degraded' : 'Error', reason: WEBHOOK_REFUSED, message: refusal } as const);
  const isServing = isAsked && served !== undefined && served.status.serving !== null;
  const isUpToDate = phase === 'Active';
  const about = { observedGeneration: generation, reason, message };
  let conditions: PolicyStatus['conditions'] = before?.conditions ?? [];
  conditions = setCondition(conditions, { ...about, type: POLICY_ACTIVE, status: isServing ? 'True' : 'False' }, now);
  conditions = setCondition(
    conditions,
    { ...about, type: POLICY_UP_TO_DATE, status: isUpToDate ? 'True' : 'False' },
    now,
  );
  return {
    policyStatus: isServing ? 'active' : served === undefined ? 'scheduled' : 'pending',
    mode: isServing ? served.status.mode : 'unknown',
    phase,
    reason,
    message,
    observedGeneration: generation,
    readyReplicas: isUpToDate ? 1 : 0,
    totalReplicas: 1,
    conditions,
  };
}
