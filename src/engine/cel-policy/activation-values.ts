import { AuthorizerValue } from '../../cel/index.ts';
import type { CelAuthorizer, AuthorizationUser, CelValue } from '../../cel/index.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import type { CelRequest } from './admission-request.ts';
import type { Activation } from './expression-run.ts';
import type { Match } from './match-resources.ts';
import { own, textsOf } from '../../values/index.ts';

/** Fields of a namespace's metadata that `namespaceObject` contains. */
const NAMESPACE_METADATA = [
  'name',
  'generateName',
  'namespace',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'labels',
  'annotations',
  'finalizers',
];
/** Fields of `request`, in the order of AdmissionRequest. */
const REQUEST_TEXTS = ['subResource', 'requestSubResource', 'name', 'namespace'] as const;

/** The value of `namespaceObject`. */
export function namespaceValue(namespace: JsonObject | undefined): CelValue {
  if (namespace === undefined) {
    return null;
  }
  const metadata = isJsonObject(namespace.metadata) ? namespace.metadata : {};
  const shown = NAMESPACE_METADATA.flatMap((key) => {
    const value = Object.hasOwn(metadata, key) ? (metadata[key] ?? null) : null;
    return value === null ? [] : [[key, value] as const];
  });
  return {
    metadata: Object.fromEntries(shown),
    spec: isJsonObject(namespace.spec) ? namespace.spec : {},
    status: isJsonObject(namespace.status) ? namespace.status : {},
  };
}

/** The value of `request` for a policy that matched: as in API servers, without the objects. */
export function requestValue({ json, ...request }: CelRequest, match: Match): CelValue {
  const value: Record<string, CelValue> = {
    uid: '',
    kind: { ...match.kind },
    resource: { ...match.resource },
    requestKind: { ...request.requestKind },
    requestResource: { ...request.requestResource },
    operation: request.operation,
    userInfo: isJsonObject(json.userInfo) ? json.userInfo : {},
    object: null,
    oldObject: null,
    dryRun: json.dryRun === true,
    options: own(json, 'options') ?? null,
  };
  for (const key of REQUEST_TEXTS) {
    const text = key === 'requestSubResource' ? request.subResource : request[key];
    if (text !== '') {
      value[key] = text;
    }
  }
  return value;
}

/** The values of `authorizer` and `authorizer.requestResource`. */
export function authorizerValues(
  { json, requestResource, subResource, namespace, name }: CelRequest,
  authorizer: CelAuthorizer,
): Required<Pick<Activation, 'authorizer' | 'requestResource'>> {
  const value = new AuthorizerValue(userOf(own(json, 'userInfo')), authorizer);
  const { group, resource } = requestResource;
  return {
    authorizer: value,
    requestResource: value.requestResource({ group, resource, subresource: subResource, namespace, name }),
  };
}

function userOf(value: JsonValue | undefined): AuthorizationUser {
  const info = isJsonObject(value) ? value : {};
  const { username, uid, groups, extra } = info;
  return {
    username: typeof username === 'string' ? username : '',
    ...(typeof uid === 'string' ? { uid } : {}),
    groups: textsOf(groups),
    ...(isJsonObject(extra)
      ? { extra: Object.fromEntries(Object.entries(extra).map(([key, one]) => [key, textsOf(one)])) }
      : {}),
  };
}
