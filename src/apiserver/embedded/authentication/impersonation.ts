import { ApiError } from '../../../cluster/index.ts';
import { forbidden } from '../authorization/forbidden.ts';
import type { AccessAttributes, Authorizer, UserInfo } from '../request/request.ts';
import {
  ANONYMOUS_USER,
  AUTHENTICATED_GROUP,
  serviceAccountGroups,
  serviceAccountOf,
  UNAUTHENTICATED_GROUP,
} from '../request/identities.ts';

/** The user that a request impersonates, as in its `Impersonate-…` headers. */
export interface Impersonation {
  readonly username: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** Headers with lists of values, and names in lower case, as `request.headersDistinct` of Node.js has them. */
export type DistinctHeaders = Readonly<Record<string, readonly string[] | undefined>>;

const EXTRA_PREFIX = 'impersonate-extra-';
const AUTHENTICATION_GROUP = 'authentication.k8s.io';

/** The impersonation in a request's headers, if any. */
export function impersonationOf(headers: DistinctHeaders): Impersonation | undefined {
  const extra: Record<string, readonly string[]> = Object.create(null);
  for (const [name, values] of Object.entries(headers)) {
    if (name.startsWith(EXTRA_PREFIX) && values !== undefined) {
      extra[unescapeKey(name.slice(EXTRA_PREFIX.length))] = values;
    }
  }
  const username = headers['impersonate-user']?.[0] ?? '';
  const uid = headers['impersonate-uid']?.[0] ?? '';
  const groups = headers['impersonate-group'] ?? [];
  return username === '' && uid === '' && groups.length === 0 && Object.keys(extra).length === 0
    ? undefined
    : { username, uid, groups, extra: { ...extra } };
}

function unescapeKey(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

/**
 * The user that a user impersonates.
 * @throws ApiError 403 without the right to impersonate the user, a group, an extra value or the uid
 */
export function impersonate(user: UserInfo, impersonation: Impersonation, authorizer: Authorizer): UserInfo {
  if (impersonation.username === '') {
    throw ApiError.internal('requested groups, uid or extra without impersonating a user');
  }
  for (const resource of requiredRights(impersonation)) {
    const attributes: AccessAttributes = { user, verb: 'impersonate', version: 'v1', ...resource };
    const decision = authorizer.authorize(attributes);
    if (!decision.allowed) {
      throw forbidden(attributes, decision.reason);
    }
  }
  const { username, uid, extra } = impersonation;
  return {
    username,
    ...(uid === '' ? {} : { uid }),
    groups: groupsOf(impersonation),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
}

type ImpersonatedResource = Pick<AccessAttributes, 'group' | 'resource' | 'subresource' | 'namespace' | 'name'>;

function* requiredRights({ username, groups, extra, uid }: Impersonation): Generator<ImpersonatedResource> {
  const account = serviceAccountOf(username);
  yield account === undefined
    ? { group: '', resource: 'users', name: username }
    : { group: '', resource: 'serviceaccounts', ...account };
  for (const name of groups) {
    yield { group: '', resource: 'groups', name };
  }
  for (const [subresource, values] of Object.entries(extra)) {
    for (const name of values) {
      yield { group: AUTHENTICATION_GROUP, resource: 'userextras', subresource, name };
    }
  }
  if (uid !== '') {
    yield { group: AUTHENTICATION_GROUP, resource: 'uids', name: uid };
  }
}

/** The groups of the impersonated user. A service account has its own groups by default. */
function groupsOf({ username, groups }: Impersonation): readonly string[] {
  const account = serviceAccountOf(username);
  const given = groups.length === 0 && account !== undefined ? serviceAccountGroups(account.namespace) : groups;
  if (given.includes(UNAUTHENTICATED_GROUP) || (username !== ANONYMOUS_USER && given.includes(AUTHENTICATED_GROUP))) {
    return given;
  }
  return [...given, username === ANONYMOUS_USER ? UNAUTHENTICATED_GROUP : AUTHENTICATED_GROUP];
}
