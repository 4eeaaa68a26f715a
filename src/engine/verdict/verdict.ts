import { diff } from './json-patch.ts';
import type { JsonValue } from '../values/json-text.ts';
import type { GuestVerdict } from './guest-verdict.ts';

/** One reason of a denial: a member of a group, or the text that the policy's message replaced. */
export interface VerdictCause {
  readonly message?: string;
  /** Path of a field of the policy. */
  readonly field?: string;
}

/** The decision of a policy, or of all policies of a bucket, about one request. */
export interface Verdict {
  readonly allowed: boolean;
  /** JSON Patch (RFC 6902) as JSON text; never empty. */
  readonly patch?: string;
  readonly message?: string;
  /** Status code for the client, any 16-bit number. */
  readonly code?: number;
  readonly causes?: readonly VerdictCause[];
  readonly auditAnnotations: Readonly<Record<string, string>> | null;
  readonly warnings: readonly string[] | null;
}

export const TIMEOUT_MESSAGE = 'Policy execution interrupted because it exceeded the allowed execution time';
const MUTATION_OF_NOTHING_MESSAGE =
  'Incoming object is null, which happens only with DELETE operations, but the policy is attempting a mutation. This is not allowed';
export const MEMBER_MUTATION_MESSAGE = 'mutation is not allowed inside of policy group';

/** Status code of failures. */
const INTERNAL_ERROR_CODE = 500;

export function allowed(warnings: readonly string[] | null = null): Verdict {
  return { allowed: true, auditAnnotations: null, warnings };
}

export function denied(reason: Pick<Verdict, 'message' | 'code' | 'causes'>): Verdict {
  return { allowed: false, ...reason, auditAnnotations: null, warnings: null };
}

/** A denial because the policy failed. */
export function errored(message: string): Verdict {
  return denied({ message, code: INTERNAL_ERROR_CODE });
}

/** Adds the patch that turns `before` into `after`; none when they are equal. */
export function patched(verdict: Verdict, before: JsonValue, after: JsonValue): Verdict {
  const operations = diff(before, after);
  return operations.length === 0 ? verdict : { ...verdict, patch: JSON.stringify(operations) };
}

/**
 * A policy's own verdict, before its settings apply. A mutation of a DELETE request, which has no object, is a denial.
 * `review.object` is read only when the policy changed it, because reading parses it.
 */
export function fromGuest(review: { readonly object: JsonValue | undefined }, verdict: GuestVerdict): Verdict {
  const { accepted, message, code, mutatedObject, patch, auditAnnotations, warnings } = verdict;
  const object = mutatedObject === undefined ? undefined : review.object;
  if (mutatedObject !== undefined && object === undefined) {
    return denied({ message: MUTATION_OF_NOTHING_MESSAGE });
  }
  const own: Verdict = {
    allowed: accepted,
    ...(patch === undefined ? {} : { patch }),
    ...(message === undefined ? {} : { message }),
    ...(code === undefined ? {} : { code }),
    auditAnnotations,
    warnings,
  };
  return patch !== undefined || mutatedObject === undefined || object === undefined
    ? own
    : patched(own, object, mutatedObject);
}

/** The guest trapped, or its answer was invalid. */
export function guestFailed(message: string): Verdict {
  return errored(`internal server error: ${message}`);
}

/** The guest used up its time. */
export function timedOut(): Verdict {
  return errored(TIMEOUT_MESSAGE);
}

/** `failurePolicy: Ignore`: the request is allowed with a warning that names the reason. */
export function ignored(policyId: string, reason: string): Verdict {
  return allowed([`policy ${policyId} gave no verdict and its failurePolicy is Ignore: ${reason}`]);
}

/** An exception applies: the request is allowed and unchanged, and the audit log names the exception. */
export function excepted(exception: string, warning: string | undefined): Verdict {
  return {
    allowed: true,
    auditAnnotations: { exception },
    warnings: warning === undefined ? null : [warning],
  };
}

/** The verdict in monitor mode: allowed, without patch and message. */
export function monitored({ auditAnnotations, warnings }: Verdict): Verdict {
  return { allowed: true, auditAnnotations, warnings };
}

/** Denies a mutation by a policy that is not allowed to mutate. */
export function withoutForbiddenPatch(verdict: Verdict, policyId: string): Verdict {
  if (verdict.patch === undefined) {
    return verdict;
  }
  const { auditAnnotations, warnings } = verdict;
  const message = `Request rejected by policy ${policyId}. The policy attempted to mutate the request, but it is currently configured to not allow mutations.`;
  return { allowed: false, message, auditAnnotations, warnings };
}

/** The policy's message replaces the text of a denial, which becomes a cause. */
export function withMessage(verdict: Verdict, message: string): Verdict {
  if (verdict.allowed) {
    return verdict;
  }
  const { auditAnnotations, warnings, code } = verdict;
  const causes = [...(verdict.causes ?? []), { message: verdict.message ?? '' }];
  return { allowed: false, message, causes, ...(code === undefined ? {} : { code }), auditAnnotations, warnings };
}

/**
 * A group's denial, with a cause for every member that denied; with code 500 when the group has no result because
 * members failed.
 */
export function groupDenied(
  message: string,
  causes: readonly { readonly member: string; readonly message: string | undefined }[],
  isFailure: boolean,
): Verdict {
  return denied({
    message,
    causes: causes.map(({ member, message: cause }) => ({
      ...(cause === undefined ? {} : { message: cause }),
      field: `spec.policies.${member}`,
    })),
    ...(isFailure ? { code: INTERNAL_ERROR_CODE } : {}),
  });
}
