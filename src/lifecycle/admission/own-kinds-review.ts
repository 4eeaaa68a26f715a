// Parses and answers AdmissionReviews (`admission.k8s.io/v1`) of our own kinds.
import type { ApiError, Status } from '../../cluster/index.ts';
import { isJsonObject, type JsonObject, own, textOf, valueAt } from '../../resources/index.ts';
import { RequestRefusal } from '../../https/index.ts';
import { errorText, inertText, parseJson } from '../../values/index.ts';

/** The request of an AdmissionReview. */
export interface OwnKindsReview {
  readonly uid: string;
  readonly operation: string;
  readonly group: string;
  readonly kind: string;
  /** Empty when the request is for the object itself. */
  readonly subresource: string;
  readonly name: string;
  readonly namespace: string;
  readonly username: string;
  /** `authentication.k8s.io/v1` UserInfo. */
  readonly userInfo: JsonObject;
  /** Undefined for DELETE. */
  readonly object: JsonObject | undefined;
  /** Undefined for CREATE. */
  readonly oldObject: JsonObject | undefined;
}

export interface OwnKindsVerdict {
  /** Undefined if the request is allowed. */
  readonly error?: ApiError;
  readonly warnings: readonly string[];
}

/** @throws RequestRefusal 400 if the body is no AdmissionReview */
export function parseReview(body: Uint8Array): OwnKindsReview {
  let review: unknown;
  try {
    review = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch (error) {
    const reason = errorText(error);
    throw new RequestRefusal(400, `expected an AdmissionReview in JSON, got something else: ${reason}`);
  }
  const request = valueAt(review, 'request');
  if (!isJsonObject(request) || textOf(own(request, 'uid')) === '') {
    throw new RequestRefusal(400, 'expected an AdmissionReview with a request that has a uid, got another document');
  }
  const kind = objectAt(request, 'kind') ?? {};
  const userInfo = objectAt(request, 'userInfo') ?? {};
  return {
    uid: textOf(own(request, 'uid')),
    operation: textOf(own(request, 'operation')),
    group: textOf(own(kind, 'group')),
    kind: textOf(own(kind, 'kind')),
    subresource: textOf(own(request, 'subResource')),
    name: textOf(own(request, 'name')),
    namespace: textOf(own(request, 'namespace')),
    username: textOf(own(userInfo, 'username')),
    userInfo,
    object: objectAt(request, 'object'),
    oldObject: objectAt(request, 'oldObject'),
  };
}

/** The AdmissionReview with the response, as JSON. */
export function reviewResponse({ uid }: OwnKindsReview, { error, warnings }: OwnKindsVerdict): string {
  const status: Status | undefined = error?.toStatus();
  return JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: {
      uid,
      allowed: status === undefined,
      ...(status === undefined ? {} : { status }),
      ...(warnings.length === 0 ? {} : { warnings: warnings.map(inertText) }),
    },
  });
}

export function objectAt(object: JsonObject, name: string): JsonObject | undefined {
  const value = own(object, name);
  return isJsonObject(value) ? value : undefined;
}
