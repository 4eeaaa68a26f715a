import { diff } from './json-patch.ts';
import type { JsonValue } from './json-text.ts';
import type { GuestVerdict } from './verdict.ts';

/** `status` of an AdmissionResponse: what the client sees of a denial. */
export interface ResponseStatus {
  readonly message?: string;
  readonly details?: { readonly causes: readonly StatusCause[] };
  readonly code?: number;
}

export interface StatusCause {
  readonly message?: string;
  readonly field?: string;
}

/** An AdmissionResponse of `admission.k8s.io/v1`, in the order in which its fields are written (contract 3.3). */
export interface AdmissionResponse {
  readonly uid: string;
  readonly allowed: boolean;
  readonly patchType?: 'JSONPatch';
  /** JSON Patch in base64; never an empty one. */
  readonly patch?: string;
  readonly status?: ResponseStatus;
  /** Written as null when there are none: upstream does not leave them out. */
  readonly auditAnnotations: Readonly<Record<string, string>> | null;
  readonly warnings: readonly string[] | null;
}

/** An HTTP answer. */
export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
}

export const TIMEOUT_MESSAGE = 'Policy execution interrupted because it exceeded the allowed execution time';
export const MUTATION_OF_NOTHING_MESSAGE =
  'Incoming object is null, which happens only with DELETE operations, but the policy is attempting a mutation. This is not allowed';
export const MEMBER_MUTATION_MESSAGE = 'mutation is not allowed inside of policy group';

/** The highest that an answer of HTTP can have: three digits (RFC 9112, 4). Policies may name any number of 16 bits. */
const MAX_HTTP_CODE = 999;
/** The code of every answer that is no policy's verdict. */
const INTERNAL_ERROR_CODE = 500;

export function allowed(uid: string, warnings: readonly string[] | null = null): AdmissionResponse {
  return { uid, allowed: true, auditAnnotations: null, warnings };
}

export function denied(uid: string, status: ResponseStatus): AdmissionResponse {
  return { uid, allowed: false, status, auditAnnotations: null, warnings: null };
}

/** A denial that is no verdict: the policy failed. */
export function errored(uid: string, message: string): AdmissionResponse {
  return denied(uid, { message, code: INTERNAL_ERROR_CODE });
}

/** A copy with the patch that turns `before` into `after`; without one when they are equal. */
export function patched(response: AdmissionResponse, before: JsonValue, after: JsonValue): AdmissionResponse {
  const operations = diff(before, after);
  return operations.length === 0
    ? response
    : withPatch(response, Buffer.from(JSON.stringify(operations)).toString('base64'));
}

function withPatch(response: AdmissionResponse, patch: string): AdmissionResponse {
  const { uid, allowed: isAllowed, ...rest } = response;
  return { uid, allowed: isAllowed, patchType: 'JSONPatch', patch, ...rest };
}

/**
 * Contract 3.3 "mutation on DELETE" and the plain verdicts: what a policy's answer means before its settings apply.
 * The review's object is not touched unless the policy changed it: it is built when it is asked for.
 */
export function fromVerdict(
  review: { readonly uid: string; readonly object: JsonValue | undefined },
  verdict: GuestVerdict,
): AdmissionResponse {
  const { uid } = review;
  const { accepted, message, code, mutatedObject, patch, auditAnnotations, warnings } = verdict;
  const object = mutatedObject === undefined ? undefined : review.object;
  if (mutatedObject !== undefined && object === undefined) {
    return denied(uid, { message: MUTATION_OF_NOTHING_MESSAGE });
  }
  const status: ResponseStatus = {
    ...(message === undefined ? {} : { message }),
    ...(code === undefined ? {} : { code }),
  };
  const hasStatus = message !== undefined || code !== undefined;
  const response: AdmissionResponse = {
    uid,
    allowed: accepted,
    ...(hasStatus ? { status } : {}),
    auditAnnotations,
    warnings,
  };
  if (patch !== undefined) {
    return withPatch(response, patch);
  }
  return mutatedObject === undefined || object === undefined ? response : patched(response, object, mutatedObject);
}

/** Contract 3.3 "guest error/trap". */
export function guestFailed(uid: string, message: string): AdmissionResponse {
  return errored(uid, `internal server error: ${message}`);
}

/** Contract 3.3 "timeout". */
export function timedOut(uid: string): AdmissionResponse {
  return errored(uid, TIMEOUT_MESSAGE);
}

/** Contract 3.3 "init error". */
export function notInitialized(uid: string, message: string): AdmissionResponse {
  return errored(uid, message);
}

/** `failurePolicy: Ignore`: no verdict, and the request is admitted with a warning that says so. */
export function ignored(uid: string, policyId: string, reason: string): AdmissionResponse {
  return allowed(uid, [`policy ${policyId} gave no verdict and its failurePolicy is Ignore: ${reason}`]);
}

/** Contract 3.3 "monitor mode": admitted, without patch and status. */
export function monitored(response: AdmissionResponse): AdmissionResponse {
  const { uid, auditAnnotations, warnings } = response;
  return { uid, allowed: true, auditAnnotations, warnings };
}

/** Contract 3.3 "mutation not permitted": what a policy that may not mutate gets for a patch. */
export function withoutForbiddenPatch(response: AdmissionResponse, policyId: string): AdmissionResponse {
  if (response.patch === undefined) {
    return response;
  }
  const { uid, auditAnnotations, warnings } = response;
  const message = `Request rejected by policy ${policyId}. The policy attempted to mutate the request, but it is currently configured to not allow mutations.`;
  return { uid, allowed: false, status: { message }, auditAnnotations, warnings };
}

/** Contract 3.3 "spec.message set": replaces the text of a denial and keeps the original as a cause. */
export function withMessage(response: AdmissionResponse, message: string): AdmissionResponse {
  if (response.allowed) {
    return response;
  }
  const { uid, auditAnnotations, warnings, status = {} } = response;
  const causes = [...(status.details?.causes ?? []), { message: status.message ?? '' }];
  const code = status.code === undefined ? {} : { code: status.code };
  return { uid, allowed: false, status: { message, details: { causes }, ...code }, auditAnnotations, warnings };
}

/**
 * Contract 3.3 "group denied", with a cause for every member that was evaluated and denied; with code 500 when the
 * group has no result because members failed ("group expression error").
 */
export function groupDenied(
  uid: string,
  message: string,
  causes: readonly { readonly member: string; readonly message: string | undefined }[],
  isFailure: boolean,
): AdmissionResponse {
  const details = {
    causes: causes.map(({ member, message: cause }) => ({
      ...(cause === undefined ? {} : { message: cause }),
      field: `spec.policies.${member}`,
    })),
  };
  return denied(uid, { message, details, ...(isFailure ? { code: INTERNAL_ERROR_CODE } : {}) });
}

/** The answer to an AdmissionReview. */
export function reviewAnswer(response: AdmissionResponse): HttpAnswer {
  const answerable = withHttpCode(response);
  return {
    status: 200,
    body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":${JSON.stringify(answerable)}}`,
  };
}

/**
 * Without a code that no answer of HTTP can have: API servers take it for the status of their own, panic, and end the connection,
 * so that nobody reads the message (seen with kube-apiserver 1.34). What names none they answer with 400, as what is below it.
 */
function withHttpCode(response: AdmissionResponse): AdmissionResponse {
  const { status } = response;
  if (status?.code === undefined || status.code <= MAX_HTTP_CODE) {
    return response;
  }
  const { code: _, ...rest } = status;
  return { ...response, status: rest };
}

/** The answer to a raw request. */
export function rawAnswer(response: AdmissionResponse): HttpAnswer {
  return { status: 200, body: `{"response":${JSON.stringify(response)}}` };
}

/** Contract 3.3 "bad JSON" and every other request without a verdict. */
export function httpError(status: number, message: string): HttpAnswer {
  return { status, body: JSON.stringify({ message, status }) };
}

/** Contract 3.3 "unknown id". */
export function unknownPolicy(id: string): HttpAnswer {
  return httpError(404, `unknown policy: ${id}`);
}

/** Contract 3.3 "internal failure". */
export function internalFailure(): HttpAnswer {
  return httpError(500, 'Something went wrong');
}
