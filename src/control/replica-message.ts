// What a replica says, line by line. It may be broken, or of another version: whatever comes has a known shape and a known
// size after this.
import { isJsonObject, own } from '../resources/index.ts';
import type { JsonObject } from '../resources/index.ts';
import { MAX_REPORT_TEXT } from './replica-protocol.ts';
import type { PolicyReason } from '../evaluation/index.ts';
import type { ReplicaMessage, ReplicaRevisionState, RevisionReport } from './replica-protocol.ts';
import { parseJson } from '../values/index.ts';

/** Longest name, uid, policy id, reason and time: that of an id in a PolicyRevision, the longest of them. Characters. */
export const MAX_NAME_TEXT = 512;

const STATES: ReadonlySet<string> = new Set<ReplicaRevisionState>(['Loading', 'Staged', 'Serving', 'Failed']);
/** As reasons of conditions (`metav1.Condition`), without the punctuation that none of ours has. */
const REASON = /^[A-Za-z][A-Za-z0-9]*$/;

/**
 * The message of a line; undefined for one of a type that is not known, which a later version may add.
 * @throws TypeError for anything else: what was expected, and what came
 */
export function parseReplicaMessage(line: string): ReplicaMessage | undefined {
  let value: unknown;
  try {
    value = parseJson(line);
  } catch {
    throw unexpected('a line of JSON', line);
  }
  if (!isJsonObject(value)) {
    throw unexpected('a JSON object', value);
  }
  switch (own(value, 'type')) {
    case 'hello':
      return {
        type: 'hello',
        protocol: whole(value, 'protocol'),
        replica: name(value, 'replica'),
        instance: name(value, 'instance'),
        version: name(value, 'version'),
      };
    case 'report':
      return {
        type: 'report',
        revisions: list(value, 'revisions').map(revisionReport),
        gone: list(value, 'gone').map(revisionName),
        isComplete: flag(value, 'isComplete'),
      };
    case 'alive':
      return { type: 'alive' };
    default:
      name(value, 'type');
      return undefined;
  }
}

function revisionReport(value: unknown): RevisionReport {
  if (!isJsonObject(value)) {
    throw unexpected('the report of a revision', value);
  }
  const state = own(value, 'state');
  if (typeof state !== 'string' || !STATES.has(state)) {
    throw unexpected(`state: one of ${[...STATES].join(', ')}`, state);
  }
  const reason = optionalText(value, 'reason', MAX_NAME_TEXT);
  const message = optionalText(value, 'message', MAX_REPORT_TEXT);
  const nextRetry = optionalText(value, 'nextRetry', MAX_NAME_TEXT);
  return {
    name: name(value, 'name'),
    uid: name(value, 'uid'),
    policy: name(value, 'policy'),
    revision: whole(value, 'revision'),
    state: state as ReplicaRevisionState,
    ...(own(value, 'order') === undefined ? {} : { order: whole(value, 'order', 0) }),
    ...(reason === undefined ? {} : { reason: reasonOf(reason) }),
    ...(message === undefined ? {} : { message }),
    ...(nextRetry === undefined || Number.isNaN(Date.parse(nextRetry)) ? {} : { nextRetry }),
  };
}

function revisionName(value: unknown): string {
  if (typeof value !== 'string' || value === '' || value.length > MAX_NAME_TEXT) {
    throw unexpected('gone: names', value);
  }
  return value;
}

/**
 * A reason of a replica. One of a later version has reasons that are not known here, and are passed on as they are.
 * @throws TypeError when it could not be the reason of a condition
 */
export function reasonOf(text: string): PolicyReason {
  if (!REASON.test(text)) {
    throw unexpected('reason: one word', text);
  }
  return text as PolicyReason;
}

/** @throws TypeError when it is no list. */
export function list(object: JsonObject, field: string): readonly unknown[] {
  const value = own(object, field);
  if (!Array.isArray(value)) {
    throw unexpected(`${field}: a list`, value);
  }
  return value;
}

/** @throws TypeError when it is not true or false. */
export function flag(object: JsonObject, field: string): boolean {
  const value = own(object, field);
  if (typeof value !== 'boolean') {
    throw unexpected(`${field}: true or false`, value);
  }
  return value;
}

/** A text that must be there, such as a name. @throws TypeError when it is not, or longer than `limit` characters. */
export function name(object: JsonObject, field: string, limit: number = MAX_NAME_TEXT): string {
  const value = own(object, field);
  if (typeof value !== 'string' || value === '' || value.length > limit) {
    throw unexpected(`${field}: a text of 1 to ${limit} characters`, value);
  }
  return value;
}

/** A text that may be missing, cut to `limit` characters. @throws TypeError when it is something else. */
export function optionalText(object: JsonObject, field: string, limit: number): string | undefined {
  const value = own(object, field);
  if (value !== undefined && typeof value !== 'string') {
    throw unexpected(`${field}: a text`, value);
  }
  return value === undefined || value.length <= limit ? value : `${value.slice(0, limit - 1).toWellFormed()}…`;
}

function whole(object: JsonObject, field: string, least = 1): number {
  const value = own(object, field);
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < least) {
    throw unexpected(`${field}: a whole number from ${least} on`, value);
  }
  return value;
}

/** What came, as far as a message has room for it. */
const SHOWN_CHARACTERS = 100;

export function unexpected(expected: string, value: unknown): TypeError {
  const got = value === undefined ? 'nothing' : shown(value);
  return new TypeError(`expected ${expected}, got ${got}`);
}

function shown(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value.slice(0, SHOWN_CHARACTERS));
    case 'object':
      return value === null ? 'null' : Array.isArray(value) ? 'a list' : 'an object';
    default:
      return String(value);
  }
}
