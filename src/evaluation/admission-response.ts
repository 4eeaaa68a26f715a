import type { Verdict, VerdictCause } from '../engine/index.ts';

/**
 * `response` of an AdmissionReview (`admission.k8s.io/v1`,
 * https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#response), in the order in
 * which its fields are written.
 */
export interface AdmissionResponse {
  readonly uid: string;
  readonly allowed: boolean;
  readonly patchType?: 'JSONPatch';
  /** JSON Patch in base64; never an empty one. */
  readonly patch?: string;
  readonly status?: {
    readonly message?: string;
    readonly details?: { readonly causes: readonly VerdictCause[] };
    readonly code?: number;
  };
  /** Null when there are none: Kubewarden does not leave them out. */
  readonly auditAnnotations: Readonly<Record<string, string>> | null;
  readonly warnings: readonly string[] | null;
}

/** The highest status code of HTTP: three digits (RFC 9110, 15). */
const MAX_HTTP_CODE = 999;

/** A verdict as API servers read it. */
export function admissionResponse(uid: string, verdict: Verdict): AdmissionResponse {
  const { allowed, patch, auditAnnotations, warnings } = verdict;
  const status = statusOf(verdict);
  return {
    uid,
    allowed,
    ...(patch === undefined ? {} : { patchType: 'JSONPatch', patch: Buffer.from(patch).toString('base64') }),
    ...(status === undefined ? {} : { status }),
    auditAnnotations,
    warnings,
  };
}

/** The verdict in a response. */
export function verdictOf({ allowed, patch, status, auditAnnotations, warnings }: AdmissionResponse): Verdict {
  const { message, details, code } = status ?? {};
  return {
    allowed,
    ...(patch === undefined ? {} : { patch: Buffer.from(patch, 'base64').toString() }),
    ...(message === undefined ? {} : { message }),
    ...(code === undefined ? {} : { code }),
    ...(details === undefined ? {} : { causes: details.causes }),
    auditAnnotations,
    warnings,
  };
}

function statusOf({ message, causes, code }: Verdict): AdmissionResponse['status'] {
  return message === undefined && causes === undefined && code === undefined
    ? undefined
    : {
        ...(message === undefined ? {} : { message }),
        ...(causes === undefined ? {} : { details: { causes } }),
        ...(code === undefined ? {} : { code }),
      };
}

/**
 * Drops a code that is no HTTP status. An API server would use it as the status of its own response, panic, and close the
 * connection (seen with kube-apiserver 1.34). It answers a denial without a code, or with one below 400, with 400.
 */
export function withHttpCode(verdict: Verdict): Verdict {
  if (verdict.code === undefined || verdict.code <= MAX_HTTP_CODE) {
    return verdict;
  }
  const { code: _, ...rest } = verdict;
  return rest;
}
