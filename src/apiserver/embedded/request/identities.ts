// Well-known users and groups of API servers.
import type { JsonObject } from '../../../resources/index.ts';
import type { UserInfo } from './request.ts';

/** The group of all authenticated users. */
export const AUTHENTICATED_GROUP = 'system:authenticated';
/** The group of all other users. */
export const UNAUTHENTICATED_GROUP = 'system:unauthenticated';
export const ANONYMOUS_USER = 'system:anonymous';

const SERVICE_ACCOUNT_PREFIX = 'system:serviceaccount:';
const SERVICE_ACCOUNTS_GROUP = 'system:serviceaccounts';

/** The user of requests without credentials, if anonymous requests are allowed. */
export const ANONYMOUS: UserInfo = { username: ANONYMOUS_USER, groups: [UNAUTHENTICATED_GROUP] };

/** The user name of a service account. */
export function serviceAccountName(namespace: string, name: string): string {
  return `${SERVICE_ACCOUNT_PREFIX}${namespace}:${name}`;
}

/** The groups of a namespace's service accounts. */
export function serviceAccountGroups(namespace: string): readonly string[] {
  return [SERVICE_ACCOUNTS_GROUP, `${SERVICE_ACCOUNTS_GROUP}:${namespace}`];
}

/** The service account that a user name stands for. Undefined for other users. */
export function serviceAccountOf(username: string): { readonly namespace: string; readonly name: string } | undefined {
  if (!username.startsWith(SERVICE_ACCOUNT_PREFIX)) {
    return undefined;
  }
  const [namespace = '', name = '', ...rest] = username.slice(SERVICE_ACCOUNT_PREFIX.length).split(':');
  return namespace === '' || name === '' || rest.length > 0 ? undefined : { namespace, name };
}

/** The user as a UserInfo of `authentication.k8s.io/v1`, without empty fields. */
export function userInfoObject({ username, uid = '', groups, extra = {} }: UserInfo): JsonObject {
  return {
    ...(username === '' ? {} : { username }),
    ...(uid === '' ? {} : { uid }),
    ...(groups.length === 0 ? {} : { groups: [...groups] }),
    ...(Object.keys(extra).length === 0
      ? {}
      : { extra: Object.fromEntries(Object.entries(extra).map(([key, texts]) => [key, [...texts]])) }),
  };
}
