// What an exception exempts, for those who evaluate it, and what is wrong with one.
import { createHash } from 'node:crypto';
import type { FieldError } from '../field-error.ts';
import { labelSelectorErrors } from '../selectors.ts';
import type { PolicyException } from './policy-exception.ts';
import type { MatchCondition } from './policy-match.ts';
import { usesAuthorizer } from './policy-match.ts';
import { policyId } from './policy-names.ts';

const DAY_MS = 86_400_000;
/** An exception that lasts longer is a decision about the policy. */
const MAX_EXCEPTION_DAYS = 366;
/** For how long before its end an exception warns. Milliseconds. */
export const EXPIRING_SOON_MS: number = 7 * DAY_MS;

/** An exception as evaluation reads it. */
export interface ExceptionTerms {
  readonly namespace: string;
  readonly name: string;
  /** `metadata.uid`; empty in files. */
  readonly uid: string;
  /** Differs where the exception differs. */
  readonly version: string;
  readonly policies: readonly ExceptedPolicy[];
  readonly objects: PolicyException['spec']['objects'];
  readonly matchConditions: readonly MatchCondition[];
  readonly expiresAt: string;
}

/** A policy by its id; of a group maybe only some members. */
export interface ExceptedPolicy {
  readonly id: string;
  readonly members?: readonly string[];
}

/** The instant of `expiresAt` in milliseconds since 1970; undefined when it is none. */
export function expiryOf(expiresAt: string): number | undefined {
  const instant = Date.parse(expiresAt);
  // Dates such as February 30 are read as another day.
  const isExact = Number.isFinite(instant) && new Date(instant).toISOString() === expiresAt.replace('Z', '.000Z');
  return isExact ? instant : undefined;
}

/** The id of a policy that an exception in a namespace names. */
export function exceptedPolicyId(
  { kind, name }: { readonly kind: string; readonly name: string },
  namespace: string,
): string {
  return policyId({ kind, metadata: kind.startsWith('Cluster') ? { name } : { namespace, name } });
}

/** The terms of an exception that needs no acceptance: one in a file. */
export function exceptionTerms({ metadata, spec }: PolicyException): ExceptionTerms {
  const { namespace = 'default', name = '' } = metadata;
  return {
    namespace,
    name,
    uid: metadata.uid ?? '',
    version: createHash('sha256')
      .update(JSON.stringify([metadata.uid, spec]))
      .digest('hex'),
    policies: spec.policies.map(({ kind, name: policy, members }) => ({
      id: exceptedPolicyId({ kind, name: policy }, namespace),
      ...(members === undefined ? {} : { members }),
    })),
    objects: spec.objects,
    matchConditions: spec.matchConditions ?? [],
    expiresAt: spec.expiresAt,
  };
}

/**
 * The terms of an exception in a cluster: those that the controller has accepted, for the policies that it has accepted it for.
 * @param uidOf the `metadata.uid` of a policy by its id; undefined: there is no such policy
 * @returns undefined when nothing is accepted
 */
export function acceptedTerms(
  exception: PolicyException,
  uidOf: (policyId: string) => string | undefined,
): ExceptionTerms | undefined {
  const { metadata, status } = exception;
  const { accepted } = status ?? {};
  // Others are of a copy, or of an older spec.
  const isCurrent = accepted?.uid === metadata.uid && accepted?.generation === metadata.generation;
  if (accepted === undefined || !isCurrent || metadata.deletionTimestamp !== undefined) {
    return undefined;
  }
  const terms = exceptionTerms(exception);
  const accepts = new Map(accepted.policies.map((one) => [exceptedPolicyId(one, terms.namespace), one.uid]));
  const policies = terms.policies.filter(({ id }) => isSame(accepts.get(id), uidOf(id)));
  return policies.length === 0 ? undefined : { ...terms, policies };
}

/** Unknown uids are never the same. */
function isSame(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && one !== '' && one === other;
}

/** Problems that no schema can find. `now`: the instant at which it is written, in milliseconds since 1970. */
export function exceptionProblems({ spec }: Pick<PolicyException, 'spec'>, now: number): readonly FieldError[] {
  const selector = spec.objects.labelSelector;
  return [
    ...expiryProblem(spec.expiresAt, now),
    ...(selector === undefined ? [] : labelSelectorErrors(selector, 'spec.objects.labelSelector')),
    ...(spec.matchConditions ?? []).flatMap(({ expression }, index) =>
      usesAuthorizer(expression)
        ? [problem(`spec.matchConditions[${index}].expression`, 'an exception cannot ask the authorizer')]
        : [],
    ),
  ];
}

function expiryProblem(expiresAt: string, now: number): readonly FieldError[] {
  const end = expiryOf(expiresAt);
  const field = 'spec.expiresAt';
  if (end === undefined) {
    return [problem(field, `expected a time in UTC such as 2027-01-31T12:00:00Z, got ${expiresAt}`)];
  }
  if (end <= now) {
    return [problem(field, `expected a time in the future, got ${expiresAt}`)];
  }
  const last = now + MAX_EXCEPTION_DAYS * DAY_MS;
  return end <= last ? [] : [problem(field, `expected at most ${MAX_EXCEPTION_DAYS} days from now, got ${expiresAt}`)];
}

function problem(field: string, message: string): FieldError {
  return { reason: 'FieldValueInvalid', field, message };
}
