import { isDeepStrictEqual } from 'node:util';
import { own, shortened, textsOf } from '../../values/index.ts';
import { EngineError } from '../values/errors.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';

/** Characters of a value that a message quotes. */
const MAX_SHOWN_CHARACTERS = 200;

/**
 * Checks that a namespaced policy asks `kubernetes/can_i` about the user of the request: its author must not learn what others
 * may do. Some of the user's groups may be left out.
 *
 * @param userInfo of the request; undefined without one
 * @throws EngineError `capability-refused`
 */
export function checkAccessReview(policy: string, payload: JsonValue, userInfo: JsonObject | undefined): void {
  const review = isJsonObject(payload) ? payload.subject_access_review : undefined;
  const { user = null, groups = null, uid = null, extra = null } = isJsonObject(review) ? review : {};
  const refuse = (expected: string): never => {
    throw new EngineError(
      'capability-refused',
      `kubernetes/can_i answers the policy ${policy} of a namespace only about the user of the request: expected ${expected}`,
    );
  };
  if (userInfo === undefined) {
    return refuse('a request that has a user');
  }
  const username = own(userInfo, 'username');
  if (typeof username !== 'string' || username === '' || user !== username) {
    refuse(`user to be ${shown(username)}, got ${shown(user)}`);
  }
  const known = new Set(textsOf(own(userInfo, 'groups')));
  const others = groups === null ? [] : Array.isArray(groups) ? groups : [groups];
  const other = others.find((group) => typeof group !== 'string' || !known.has(group));
  if (other !== undefined) {
    refuse(`groups of this user, got ${shown(other)}`);
  }
  if (uid !== null && uid !== (own(userInfo, 'uid') ?? '')) {
    refuse(`no uid, or that of this user, got ${shown(uid)}`);
  }
  if (extra !== null && !isDeepStrictEqual(extra, own(userInfo, 'extra') ?? {})) {
    refuse('no extra, or that of this user');
  }
}

function shown(value: JsonValue | undefined): string {
  return shortened(JSON.stringify(value ?? null), MAX_SHOWN_CHARACTERS);
}
