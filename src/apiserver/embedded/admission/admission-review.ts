import { quote } from '../../../go/index.ts';
import { isJsonObject } from '../../../resources/index.ts';
import type {
  GroupVersionKind,
  GroupVersionResource,
  JsonObject,
  JsonValue,
  KubernetesObject,
} from '../../../resources/index.ts';
import { userInfoObject } from '../request/identities.ts';
import type { RequestAttributes } from './attributes.ts';
import type { ConfiguredWebhook } from './webhook.ts';

const GROUP = 'admission.k8s.io';
const KNOWN_VERSIONS: readonly string[] = ['v1', 'v1beta1'];

/** A call of a webhook that matches a request. Kind and resource are in the version that the webhook's rules name. */
export interface Invocation {
  readonly webhook: ConfiguredWebhook;
  readonly kind: GroupVersionKind;
  readonly resource: GroupVersionResource;
}

/** The objects of a request, in the version of an invocation. */
export interface ReviewedObjects {
  readonly object: KubernetesObject | null;
  readonly oldObject: KubernetesObject | null;
}

/** The response of a webhook. */
export interface ReviewResponse {
  readonly isAllowed: boolean;
  /** The reason of a denial. */
  readonly status: JsonValue | undefined;
  readonly warnings: readonly string[];
  /** A JSON patch (RFC 6902), decoded from base64. */
  readonly patch: Buffer | undefined;
  readonly patchType: string;
}

/** The version of the AdmissionReview to send: the first one in `admissionReviewVersions` that is supported. */
export function reviewVersion({ reviewVersions }: ConfiguredWebhook): string | undefined {
  return reviewVersions.find((version) => KNOWN_VERSIONS.includes(version));
}

/** The AdmissionReview to send. */
export function admissionReview(
  uid: string,
  version: string,
  attributes: RequestAttributes,
  invocation: Invocation,
  objects: ReviewedObjects,
): object {
  return {
    kind: 'AdmissionReview',
    apiVersion: `${GROUP}/${version}`,
    request: { uid, ...reviewedRequest(attributes, invocation, objects) },
  };
}

/** The request of an AdmissionReview, without its uid. */
export function reviewedRequest(
  attributes: RequestAttributes,
  { kind, resource }: Pick<Invocation, 'kind' | 'resource'>,
  { object, oldObject }: ReviewedObjects,
): object {
  const { request, subresource, name, namespace } = attributes;
  return {
    kind,
    resource,
    ...textIf('subResource', subresource),
    requestKind: attributes.kind,
    requestResource: attributes.resource,
    ...textIf('requestSubResource', subresource),
    ...textIf('name', name),
    ...textIf('namespace', namespace),
    operation: request.operation,
    userInfo: userInfoObject(request.user),
    object,
    oldObject,
    dryRun: request.dryRun,
    options: request.options,
  };
}

function textIf(key: string, text: string): Readonly<Record<string, string>> {
  return text === '' ? {} : { [key]: text };
}

/** A malformed response, with the message of an API server. */
export class WebhookResponseError extends Error {
  override readonly name = 'ReviewError';
}

/**
 * Checks and reads the AdmissionReview that a webhook returned.
 * @throws ReviewError
 */
export function readResponse(
  kind: ConfiguredWebhook['kind'],
  version: string,
  uid: string,
  review: JsonObject,
): ReviewResponse {
  const { response } = review;
  if (!isJsonObject(response)) {
    throw new WebhookResponseError('webhook response was absent');
  }
  if (version === 'v1') {
    checkIdentity(uid, review, response);
  }
  const patch = typeof response.patch === 'string' && response.patch !== '' ? response.patch : undefined;
  const patchType = typeof response.patchType === 'string' ? response.patchType : undefined;
  if (version === 'v1') {
    checkPatch(kind, patch, patchType);
  }
  return {
    isAllowed: response.allowed === true,
    status: response.status,
    warnings: Array.isArray(response.warnings) ? response.warnings.filter((one) => typeof one === 'string') : [],
    patch: kind === 'validating' || patch === undefined ? undefined : Buffer.from(patch, 'base64'),
    patchType: version === 'v1' ? (patchType ?? '') : 'JSONPatch',
  };
}

function checkIdentity(uid: string, review: JsonObject, response: JsonObject): void {
  const got = typeof response.uid === 'string' ? response.uid : '';
  if (got !== uid) {
    throw new WebhookResponseError(`expected response.uid=${quote(uid)}, got ${quote(got)}`);
  }
  const { apiVersion, kind } = review;
  if (apiVersion !== `${GROUP}/v1` || kind !== 'AdmissionReview') {
    const version = typeof apiVersion === 'string' ? apiVersion : '';
    const shown = `${version.includes('/') ? version : `/${version}`}, Kind=${typeof kind === 'string' ? kind : ''}`;
    throw new WebhookResponseError(`expected webhook response of ${GROUP}/v1, Kind=AdmissionReview, got ${shown}`);
  }
}

function checkPatch(kind: ConfiguredWebhook['kind'], patch: string | undefined, patchType: string | undefined): void {
  if (kind === 'validating') {
    if (patch !== undefined || patchType !== undefined) {
      throw new WebhookResponseError(
        `validating webhook may not return response.${patch === undefined ? 'patchType' : 'patch'}`,
      );
    }
    return;
  }
  if (patch !== undefined && patchType === undefined) {
    throw new WebhookResponseError('webhook returned response.patch but not response.patchType');
  }
  if (patch === undefined && patchType !== undefined) {
    throw new WebhookResponseError('webhook returned response.patchType but not response.patch');
  }
  if (patchType === '') {
    throw new WebhookResponseError('webhook returned invalid response.patchType of ""');
  }
}
