import { ApiError } from '../../../cluster/index.ts';
import { invalid, isJsonObject, textOf, textsOf } from '../../../resources/index.ts';
import type { JsonObject, KubernetesObject } from '../../../resources/index.ts';
import type { ClusterState, UserInfo } from '../request/request.ts';
import type { Authenticator } from './authenticator.ts';
import { userInfoObject } from '../request/identities.ts';
import type { BoundObject } from './service-account-tokens.ts';

const GROUP = 'authentication.k8s.io';
const TOKEN_REQUEST = { group: GROUP, kind: 'TokenRequest' } as const;

const DEFAULT_EXPIRATION_SECONDS = 3600;
const MIN_EXPIRATION_SECONDS = 600;
const MAX_EXPIRATION_SECONDS = 2 ** 32;

/** Completes a SelfSubjectReview. `now` is in milliseconds since 1970. */
export function selfSubjectReview(review: KubernetesObject, user: UserInfo, now: number): KubernetesObject {
  const { apiVersion, kind } = review;
  const metadata = { creationTimestamp: timeOf(now) };
  return { apiVersion, kind, metadata, status: { userInfo: userInfoObject(user) } };
}

/** Completes a TokenReview. Throws ApiError 400. */
export function tokenReview(review: KubernetesObject, authenticator: Authenticator): KubernetesObject {
  const { token, audiences } = isJsonObject(review.spec) ? review.spec : {};
  if (typeof token !== 'string' || token === '') {
    throw ApiError.badRequest('token is required for TokenReview in authentication');
  }
  const audiencesOfReview = textsOf(audiences);
  const verdict = authenticator.authenticateToken(
    token,
    audiencesOfReview.length === 0 ? undefined : audiencesOfReview,
  );
  const status =
    'error' in verdict
      ? { user: {}, error: verdict.error }
      : { authenticated: true, user: userInfoObject(verdict.user), audiences: verdict.audiences };
  return { ...review, status };
}

/** A TokenRequest, and the service account that it was posted to. */
export interface TokenRequest {
  readonly namespace: string;
  readonly name: string;
  readonly object: KubernetesObject;
}

/** Completes a TokenRequest. Throws ApiError 400, 404, 409 or 422. */
export function tokenRequest(
  { namespace, name, object }: TokenRequest,
  state: ClusterState,
  authenticator: Authenticator,
): KubernetesObject {
  const { metadata } = object;
  for (const [key, own] of [
    ['name', name],
    ['namespace', namespace],
  ] as const) {
    const given = metadata[key] ?? '';
    if (given !== '' && given !== own) {
      const detail = `must match the service account ${key} if specified`;
      throw ApiError.invalid(TOKEN_REQUEST, name, [invalid(`metadata.${key}`, given, detail)]);
    }
  }
  const account = lookUp(state, 'serviceaccounts', namespace, name);
  const { uid = '' } = account.metadata;
  if (metadata.uid !== undefined && metadata.uid !== '' && metadata.uid !== uid) {
    const why = `the UID in the token request (${metadata.uid}) does not match the UID of the service account (${uid})`;
    throw ApiError.conflict({ group: GROUP, resource: TOKEN_REQUEST.kind }, name, why);
  }
  const spec = isJsonObject(object.spec) ? object.spec : {};
  const given = textsOf(spec.audiences);
  const audiences = given.length === 0 ? authenticator.audiences : given;
  const expirationSeconds = expirationOf(spec);
  const reference = isJsonObject(spec.boundObjectRef) ? spec.boundObjectRef : undefined;
  const bound = reference === undefined ? undefined : boundObject(state, reference, namespace, name);
  const now = authenticator.now();
  return {
    apiVersion: object.apiVersion,
    kind: object.kind,
    metadata: { ...metadata, name, namespace, uid, creationTimestamp: timeOf(now) },
    spec: { audiences, expirationSeconds, boundObjectRef: reference ?? null },
    status: {
      token: authenticator.issueToken({ account, audiences, expirationSeconds, bound }),
      expirationTimestamp: timeOf(now + expirationSeconds * 1000),
    },
  };
}

function expirationOf({ expirationSeconds = DEFAULT_EXPIRATION_SECONDS }: JsonObject): number {
  const seconds = typeof expirationSeconds === 'number' ? expirationSeconds : DEFAULT_EXPIRATION_SECONDS;
  const detail =
    seconds < MIN_EXPIRATION_SECONDS
      ? 'may not specify a duration less than 10 minutes'
      : seconds > MAX_EXPIRATION_SECONDS
        ? 'may not specify a duration larger than 2^32 seconds'
        : undefined;
  if (detail !== undefined) {
    throw ApiError.invalid(TOKEN_REQUEST, '', [invalid('spec.expirationSeconds', seconds, detail)]);
  }
  return seconds;
}

function boundObject(state: ClusterState, reference: JsonObject, namespace: string, account: string): BoundObject {
  const [apiVersion, kind, name, uid] = [
    textOf(reference.apiVersion),
    textOf(reference.kind),
    textOf(reference.name),
    textOf(reference.uid),
  ];
  const found = apiVersion.includes('/') ? undefined : boundTo(state, kind, namespace, name);
  if (found === undefined) {
    const slash = apiVersion.includes('/') ? apiVersion : `/${apiVersion}`;
    throw ApiError.badRequest(`cannot bind token to object of type ${slash}, Kind=${kind}`);
  }
  const { object } = found;
  if (found.kind === 'pod' && textOf(isJsonObject(object.spec) ? object.spec.serviceAccountName : '') !== account) {
    throw ApiError.badRequest(
      `cannot bind token for serviceaccount "${account}" to pod running with different serviceaccount name.`,
    );
  }
  const own = object.metadata.uid ?? '';
  if (uid !== '' && uid !== own) {
    const why = `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`;
    throw ApiError.conflict({ group: '', resource: kind }, name, why);
  }
  return { kind: found.kind, name, uid: own };
}

function boundTo(
  state: ClusterState,
  kind: string,
  namespace: string,
  name: string,
): { readonly kind: BoundObject['kind']; readonly object: KubernetesObject } | undefined {
  switch (kind) {
    case 'Pod':
      return { kind: 'pod', object: lookUp(state, 'pods', namespace, name) };
    case 'Secret':
      return { kind: 'secret', object: lookUp(state, 'secrets', namespace, name) };
    case 'Node':
      return { kind: 'node', object: lookUp(state, 'nodes', undefined, name) };
    default:
      return undefined;
  }
}

function lookUp(state: ClusterState, resource: string, namespace: string | undefined, name: string): KubernetesObject {
  const type = { group: '', resource };
  const found = state.get(type, namespace, name);
  if (found === undefined) {
    throw ApiError.notFound(type, name);
  }
  return found;
}

/** The RFC 3339 text of a time, in whole seconds. */
function timeOf(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19)}Z`;
}
