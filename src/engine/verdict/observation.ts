import type { Review } from '../review/admission-review.ts';
import type { PolicyMode } from '../definition/policy-definition.ts';
import type { Verdict } from './verdict.ts';

/** The route of a request: `audit` returns verdicts without the policy's mode, mutation rules and message applied. */
export type Route = 'validate' | 'audit' | 'validate_raw';

/** Replaces kinds, namespaces and operations that are no valid names. */
export const OTHER_NAME = 'other';

/** How an evaluation came to its verdict. */
type Outcome =
  /** The policy gave a verdict. */
  | 'verdict'
  /** The request is for the namespace whose requests are always accepted. */
  | 'exempt'
  /** The policy would reject or change the object, and an exception applies. */
  | 'excepted'
  /** The guest trapped, or its answer was invalid. */
  | 'failed'
  /** The guest used up its time. */
  | 'timeout'
  /** The policy has no version that could be loaded. */
  | 'not-initialized';

/**
 * Data about one evaluation for metrics: the policy's own verdict, before its settings apply. Contains no per-request
 * values, so that the number of time series stays small.
 */
export interface Observation {
  readonly policy: string;
  readonly mode: PolicyMode;
  readonly route: Route;
  readonly outcome: Outcome;
  /** Kind in the client's request, without group and version. Absent for raw requests, like the next two. */
  readonly kind?: string;
  readonly namespace?: string;
  readonly operation?: string;
  /** The policy's own verdict, which monitor mode does not change. */
  readonly accepted: boolean;
  readonly mutated: boolean;
  /** Code of the policy's own verdict. */
  readonly errorCode?: number;
  /** The exception that applies, `namespace/name`. */
  readonly exception?: string;
}

/** A policy's own verdict: before its failurePolicy, mode, mutation rules and message apply. */
export interface Judgement {
  readonly outcome: Outcome;
  readonly verdict: Verdict;
  /** With the outcome `excepted`: `namespace/name`. */
  readonly exception?: string;
  /** With the outcome `excepted`: the `metadata.uid` of each exception that it takes. */
  readonly used?: readonly string[];
}

/** Valid names in Kubernetes: a review may contain any text of any length. */
const KIND = /^[A-Za-z][A-Za-z0-9]{0,62}$/;
const NAMESPACE = /^[a-z0-9][a-z0-9.-]{0,62}$/;
const OPERATION = /^(?:CREATE|UPDATE|DELETE|CONNECT)$/;

function named(name: string, form: RegExp): string {
  return form.test(name) ? name : OTHER_NAME;
}

/** The observation of a policy's own verdict. */
export function observe(
  policy: { readonly id: string; readonly mode: PolicyMode },
  review: Review,
  route: Route,
  { outcome, verdict, exception }: Judgement,
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
    ...(exception === undefined ? {} : { exception }),
  };
}
