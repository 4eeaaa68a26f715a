import { diff } from './json-patch.ts';
import type { JsonValue } from './json-text.ts';
import type { GuestVerdict } from './guest-verdict.ts';

/** One reason of a denial: a member of a group, or the text that a policy's own message replaces. */
export interface VerdictCause {
  readonly message?: string;
  /** Path of a field of the policy. */
  readonly field?: string;
}

/** What a policy, or all policies of a bucket, decide about one request. */
export interface Verdict {
  readonly allowed: boolean;
  /** JSON Patch (RFC 6902) as JSON text; never an empty one. */
  readonly patch?: string;
  readonly message?: string;
  /** The code that the client gets; policies may name any number of 16 bits. */
  readonly code?: number;
  readonly causes?: readonly VerdictCause[];
  readonly auditAnnotations: Readonly<Record<string, string>> | null;
  readonly warnings: readonly string[] | null;
}

export const TIMEOUT_MESSAGE = 'Policy execution interrupted because it exceeded the allowed execution time';
export const MUTATION_OF_NOTHING_MESSAGE =
  'Incoming object is null, which happens only with DELETE operations, but the policy is attempting a mutation. This is not allowed';
export const MEMBER_MUTATION_MESSAGE = 'mutation is not allowed inside of policy group';

/** The code of every answer that is no policy's verdict. */
const INTERNAL_ERROR_CODE = 500;

export function allowed(warnings: readonly string[] | null = null): Verdict {
  return { allowed: true, auditAnnotations: null, warnings };
}

export function denied(reason: Pick<Verdict, 'message' | 'code' | 'causes'>): Verdict {
  return { allowed: false, ...reason, auditAnnotations: null, warnings: null };
}

/** A denial that is no verdict: the policy failed. */
export function errored(message: string): Verdict {
  return denied({ message, code: INTERNAL_ERROR_CODE });
}

/** A copy with the patch that turns `before` into `after`; without one when they are equal. */
export function patched(verdict: Verdict, before: JsonValue, after: JsonValue): Verdict {
  const operations = diff(before, after);
  return operations.length === 0 ? verdict : { ...verdict, patch: JSON.stringify(operations) };
}

/**
 * What a policy's answer means before its settings apply; a mutation of a DELETE request, which has no object, is a denial.
 * The review's object is not touched unless the policy changed it: it is built when it is asked for.
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

/** The guest trapped, or answered garbage. */
export function guestFailed(message: string): Verdict {
  return errored(`internal server error: ${message}`);
}

/** The guest used up its time. */
export function timedOut(): Verdict {
  return errored(TIMEOUT_MESSAGE);
}

/** `failurePolicy: Ignore`: no verdict, and the request is admitted with a warning that says so. */
export function ignored(policyId: string, reason: string): Verdict {
  return allowed([`policy ${policyId} gave no verdict and its failurePolicy is Ignore: ${reason}`]);
}

/** A policy in monitor mode admits, without patch and message. */
export function monitored({ auditAnnotations, warnings }: Verdict): Verdict {
  return { allowed: true, auditAnnotations, warnings };
}

/** What a policy that may not mutate gets for a patch. */
export function withoutForbiddenPatch(verdict: Verdict, policyId: string): Verdict {
  if (verdict.patch === undefined) {
    return verdict;
  }
  const { auditAnnotations, warnings } = verdict;
  const message = `Request rejected by policy ${policyId}. The policy attempted to mutate the request, but it is currently configured to not allow mutations.`;
  return { allowed: false, message, auditAnnotations, warnings };
}

/** The policy's own message replaces the text of a denial; the text becomes a cause. */
export function withMessage(verdict: Verdict, message: string): Verdict {
  if (verdict.allowed) {
    return verdict;
  }
  const { auditAnnotations, warnings, code } = verdict;
  const causes = [...(verdict.causes ?? []), { message: verdict.message ?? '' }];
  return { allowed: false, message, causes, ...(code === undefined ? {} : { code }), auditAnnotations, warnings };
}

/**
 * A group that denies, with a cause for every member that was evaluated and denied; with code 500 when the group has no
 * result because members failed.
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
