// Parses the messages of a replica. It may be faulty or of another version; parsed messages have a known shape and
// bounded size.
import { MAX_MONITORED_MESSAGE, MAX_MONITORED_NAME, MAX_MONITORED_USER } from '../engine/definition/index.ts';
import { isJsonObject, MAX_MONITORED_REQUESTS, MAX_PARAMETERS_FINGERPRINT, own } from '../resources/index.ts';
import type { JsonObject, MonitoredRequest } from '../resources/index.ts';
import {
  MAX_REFUSED_NAMESPACES,
  MAX_REPORT_TEXT,
  REPLICA_ANSWERS,
  type RefusedReport,
  type ReplicaAnswers,
} from './replica-protocol.ts';
import type { PolicyReason } from '../evaluation/index.ts';
import type {
  ExceptionUse,
  MonitoredReport,
  ReplicaMessage,
  ReplicaRevisionState,
  RevisionReport,
} from './replica-protocol.ts';
import { parseJson, shortened } from '../values/index.ts';

/** Longest name, uid, policy id, reason and time: the limit of ids in a PolicyRevision. Characters. */
const MAX_NAME_TEXT = 512;

/** Longest uid of an exception, as in its status. Characters. */
const MAX_UID_TEXT = 64;

const STATES: ReadonlySet<string> = new Set<ReplicaRevisionState>(['Loading', 'Staged', 'Serving', 'Failed']);
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
const MAX_TIME_TEXT = 24;
/** Reasons of conditions (`metav1.Condition`), without punctuation, which none of ours has. */
const REASON = /^[A-Za-z][A-Za-z0-9]*$/;

/**
 * The message of a line; undefined for an unknown type, which a later version may add.
 * @throws TypeError for an invalid line, with what was expected
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
        protocol: readInteger(value, 'protocol'),
        replica: readName(value, 'replica'),
        instance: readName(value, 'instance'),
        version: readName(value, 'version'),
      };
    case 'report':
      return {
        type: 'report',
        revisions: readList(value, 'revisions').map(revisionReport),
        gone: readList(value, 'gone').map(revisionName),
        isComplete: readBoolean(value, 'isComplete'),
      };
    case 'exceptions':
      return { type: 'exceptions', uses: readList(value, 'uses').map(exceptionUse) };
    case 'alive':
      return { type: 'alive', ...(own(value, 'time') === undefined ? {} : { time: readTime(value, 'time') }) };
    default:
      readName(value, 'type');
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
  const reason = readOptionalText(value, 'reason', MAX_NAME_TEXT);
  const message = readOptionalText(value, 'message', MAX_REPORT_TEXT);
  const nextRetry = readOptionalText(value, 'nextRetry', MAX_NAME_TEXT);
  return {
    name: readName(value, 'name'),
    uid: readName(value, 'uid'),
    policy: readName(value, 'policy'),
    revision: readInteger(value, 'revision'),
    state: state as ReplicaRevisionState,
    ...answersOf(value),
    ...(own(value, 'order') === undefined ? {} : { order: readInteger(value, 'order', 0) }),
    ...(reason === undefined ? {} : { reason: readReason(reason) }),
    ...(message === undefined ? {} : { message }),
    ...(nextRetry === undefined || Number.isNaN(Date.parse(nextRetry)) ? {} : { nextRetry }),
    ...(own(value, 'isUncached') === true ? { isUncached: true } : {}),
    ...(own(value, 'parameters') === undefined
      ? {}
      : { parameters: readName(value, 'parameters', MAX_PARAMETERS_FINGERPRINT) }),
    ...(own(value, 'areParametersTried') === true ? { areParametersTried: true } : {}),
    ...(own(value, 'refused') === undefined ? {} : { refused: refusedReport(own(value, 'refused')) }),
    ...(own(value, 'monitored') === undefined ? {} : { monitored: monitoredReport(own(value, 'monitored')) }),
  };
}

/** An answer that only a later version knows is left out. */
function answersOf(report: JsonObject): { readonly answers?: ReplicaAnswers } {
  const answers = REPLICA_ANSWERS.find((one) => one === own(report, 'answers'));
  return answers === undefined ? {} : { answers };
}

function refusedReport(value: unknown): RefusedReport {
  if (!isJsonObject(value)) {
    throw unexpected('refused: an object', value);
  }
  const first = readList(value, 'first').slice(0, MAX_REFUSED_NAMESPACES);
  return {
    count: readInteger(value, 'count'),
    tried: readInteger(value, 'tried'),
    first: first.map((one) => {
      if (!isJsonObject(one)) {
        throw unexpected('refused.first: objects', one);
      }
      const namespace = readOptionalText(one, 'namespace', MAX_NAME_TEXT) ?? '';
      return { namespace, message: readOptionalText(one, 'message', MAX_REPORT_TEXT) ?? '' };
    }),
  };
}

function monitoredReport(value: unknown): MonitoredReport {
  if (!isJsonObject(value)) {
    throw unexpected('monitored: an object', value);
  }
  return {
    since: readTime(value, 'since'),
    count: readInteger(value, 'count'),
    last: readList(value, 'last').slice(-MAX_MONITORED_REQUESTS).map(monitoredRequest),
  };
}

function exceptionUse(value: unknown): ExceptionUse {
  if (!isJsonObject(value)) {
    throw unexpected('uses: objects', value);
  }
  return {
    uid: readName(value, 'uid', MAX_UID_TEXT),
    since: readTime(value, 'since'),
    count: readInteger(value, 'count'),
    last: readTime(value, 'last'),
  };
}

function monitoredRequest(value: unknown): MonitoredRequest {
  if (!isJsonObject(value)) {
    throw unexpected('last: requests', value);
  }
  const texts = Object.entries(MONITORED_TEXTS).flatMap(([field, limit]) => {
    const text = readOptionalText(value, field, limit);
    return text === undefined ? [] : [[field, text] as const];
  });
  return { time: readTime(value, 'time'), ...Object.fromEntries(texts) };
}

/** Lengths of the texts about a request. Characters. */
const MONITORED_TEXTS: Readonly<Record<Exclude<keyof MonitoredRequest, 'time'>, number>> = {
  operation: MAX_MONITORED_NAME,
  kind: MAX_MONITORED_NAME,
  namespace: MAX_MONITORED_NAME,
  name: MAX_MONITORED_NAME,
  user: MAX_MONITORED_USER,
  message: MAX_MONITORED_MESSAGE,
};

function revisionName(value: unknown): string {
  if (typeof value !== 'string' || value === '' || value.length > MAX_NAME_TEXT) {
    throw unexpected('gone: names', value);
  }
  return value;
}

/**
 * A reason from a replica; unknown ones of later versions are passed on.
 * @throws TypeError when it is invalid as the reason of a condition
 */
export function readReason(text: string): PolicyReason {
  if (!REASON.test(text)) {
    throw unexpected('reason: one word', text);
  }
  return text as PolicyReason;
}

/** @throws TypeError when it is not a list. */
export function readList(object: JsonObject, field: string): readonly unknown[] {
  const value = own(object, field);
  if (!Array.isArray(value)) {
    throw unexpected(`${field}: a list`, value);
  }
  return value;
}

/** @throws TypeError when it is not true or false. */
export function readBoolean(object: JsonObject, field: string): boolean {
  const value = own(object, field);
  if (typeof value !== 'boolean') {
    throw unexpected(`${field}: true or false`, value);
  }
  return value;
}

/** A required text, such as a name. @throws TypeError when it is missing, empty, or longer than `limit` characters. */
export function readName(object: JsonObject, field: string, limit: number = MAX_NAME_TEXT): string {
  const value = own(object, field);
  if (typeof value !== 'string' || value === '' || value.length > limit) {
    throw unexpected(`${field}: a text of 1 to ${limit} characters`, value);
  }
  return value;
}

/** An optional text, cut to `limit` characters. @throws TypeError when it is not a text. */
export function readOptionalText(object: JsonObject, field: string, limit: number): string | undefined {
  const value = own(object, field);
  if (value !== undefined && typeof value !== 'string') {
    throw unexpected(`${field}: a text`, value);
  }
  return value === undefined ? undefined : shortened(value, limit);
}

/** A time with milliseconds, as JavaScript writes it. */
function readTime(object: JsonObject, field: string): string {
  const text = readName(object, field, MAX_TIME_TEXT);
  if (!TIME.test(text) || Number.isNaN(Date.parse(text))) {
    throw unexpected(`${field}: a time such as 2026-01-31T12:00:00.000Z`, text);
  }
  return text;
}

function readInteger(object: JsonObject, field: string, least = 1): number {
  const value = own(object, field);
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < least) {
    throw unexpected(`${field}: a whole number from ${least} on`, value);
  }
  return value;
}

/** Longest excerpt of a value in an error message. */
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
