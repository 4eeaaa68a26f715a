import type { Review } from './admission-review.ts';
import type { PolicyMode } from './policy-definition.ts';
import type { Verdict } from './verdict.ts';

/** By which route a request came: `audit` gets verdicts without mode, mutation rules and message of the policy. */
export type Route = 'validate' | 'audit' | 'validate_raw';

/** What an {@link Observation} says for a kind, namespace or operation that has no such name's form. */
export const OTHER_NAME = 'other';

/** How an evaluation came to its answer. */
export type Outcome =
  /** The policy gave a verdict. */
  | 'verdict'
  /** The request is for the namespace whose requests are always accepted. */
  | 'exempt'
  /** The guest trapped, or answered garbage. */
  | 'failed'
  /** The guest used up its time. */
  | 'timeout'
  /** The policy has no version that could be loaded. */
  | 'not-initialized';

/**
 * What metrics need of one evaluation: what the policy said, not what was made of it. Nothing that differs
 * from request to request, so that few of them are told apart.
 */
export interface Observation {
  readonly policy: string;
  readonly mode: PolicyMode;
  readonly route: Route;
  readonly outcome: Outcome;
  /** Kind that the client asked for, without group and version. Absent for raw requests, as the next two. */
  readonly kind?: string;
  readonly namespace?: string;
  readonly operation?: string;
  /** The policy's own verdict: monitor mode does not change it. */
  readonly accepted: boolean;
  readonly mutated: boolean;
  /** Code of the policy's own answer. */
  readonly errorCode?: number;
}

/** What a policy said by itself: before its mode, mutation rules and message apply. */
export interface Judgement {
  readonly outcome: Outcome;
  readonly verdict: Verdict;
}

/** Forms of Kubernetes' names: whoever writes a review could write anything, of any length. */
const KIND = /^[A-Za-z][A-Za-z0-9]{0,62}$/;
const NAMESPACE = /^[a-z0-9][a-z0-9.-]{0,62}$/;
const OPERATION = /^(?:CREATE|UPDATE|DELETE|CONNECT)$/;

function named(name: string, form: RegExp): string {
  return form.test(name) ? name : OTHER_NAME;
}

/** What is noted of a policy's own answer to a review. */
export function observe(
  policy: { readonly id: string; readonly mode: PolicyMode },
  review: Review,
  route: Route,
  { outcome, verdict }: Judgement,
): Observation {
  const { admission } = review;
  return {
    policy: policy.id,
    mode: policy.mode,
    route,
    outcome,
    ...(admission === undefined
      ? {}
      : { kind: named(admission.kind.kind, KIND), operation: named(admission.operation, OPERATION) }),
    ...(admission?.namespace === undefined ? {} : { namespace: named(admission.namespace, NAMESPACE) }),
    accepted: verdict.allowed,
    mutated: verdict.patch !== undefined,
    ...(verdict.code === undefined ? {} : { errorCode: verdict.code }),
  };
}
