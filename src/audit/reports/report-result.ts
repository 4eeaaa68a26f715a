// A finding as a result of a report, in the form that Policy Reporter shows right: each with an object and an id of its own.
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../engine/index.ts';
import { REPORT_FORMATS, type ReportApi, type ReportResult } from '../../resources/index.ts';
import { inertText } from '../../values/index.ts';
import type { AuditedObject } from '../audit-result.ts';
import type { AuditFinding } from '../finding.ts';

/** Of each result, and of each report. */
export const REPORT_SOURCE = 'portcullis';

/** Longest message, in bytes of its JSON: a few sentences. */
const MAX_MESSAGE_BYTES = 1024;
/** Longest category and rule, as names of objects. Bytes. */
const MAX_WORD_BYTES = 253;
/** Longest name of an object or a policy: statuses of others are not bound to what Kubernetes takes for one. Bytes. */
const MAX_NAME_BYTES = 512;
/** Of ids and digests: 128 bits. Hexadecimal digits. */
const DIGEST_DIGITS = 32;

/** When a finding was first and last written, RFC 3339. */
export interface ResultTimes {
  readonly firstSeen: string;
  readonly lastSeen: string;
}

/** Identifies a finding, also after a new message and a new run. */
export function resultId({ policyUid, rule = '', object }: AuditFinding): string {
  const { uid, apiVersion, kind, namespace = '', name } = object;
  // An object that a policy misses has no uid.
  return digestOf([policyUid, rule, uid ?? [apiVersion, kind, namespace, name]]);
}

export function reportResult(
  finding: AuditFinding,
  id: string,
  { firstSeen, lastSeen }: ResultTimes,
  { severities }: Pick<ReportApi, 'severities'> = REPORT_FORMATS.openreports,
): ReportResult {
  const { policy, rule, severity, category, object, message, objectVersion } = finding;
  const result = writtenResult(finding);
  const nearest = severity && severities[severity];
  return {
    source: REPORT_SOURCE,
    policy: cut(policy, MAX_NAME_BYTES),
    ...(rule === undefined ? {} : { rule: cut(rule, MAX_WORD_BYTES) }),
    ...(category === undefined ? {} : { category: cut(category, MAX_WORD_BYTES) }),
    ...(severity === undefined ? {} : { severity: nearest ?? severity }),
    result,
    scored: result === 'fail',
    resources: [boundedObject(object)],
    ...(message === undefined ? {} : { message: cut(message, MAX_MESSAGE_BYTES) }),
    timestamp: { seconds: Math.floor(Date.parse(lastSeen) / 1000), nanos: 0 },
    properties: {
      resultID: id,
      firstSeen,
      lastSeen,
      ...(objectVersion === undefined ? {} : { objectResourceVersion: objectVersion }),
      ...propertiesOf(finding),
      ...(nearest === undefined ? {} : { severity }),
    },
  };
}

function boundedObject({ apiVersion, kind, namespace, name, uid }: AuditedObject): AuditedObject {
  const bounded = (text: string): string => cut(text, MAX_NAME_BYTES);
  return {
    apiVersion: bounded(apiVersion),
    kind: bounded(kind),
    ...(namespace === undefined ? {} : { namespace: bounded(namespace) }),
    name: bounded(name),
    ...(uid === undefined ? {} : { uid: bounded(uid) }),
  };
}

/**
 * Equal for results that say the same, whenever they were written and of whichever version of the object. Results whose times nobody
 * of us wrote are equal to none.
 */
export function resultDigest({ timestamp, properties = {}, ...rest }: ReportResult): string {
  const { firstSeen = '', lastSeen = '', objectResourceVersion: _, ...others } = properties;
  const seconds = Date.parse(lastSeen) / 1000;
  const isOurs = timestamp?.seconds === seconds && Date.parse(firstSeen) / 1000 <= seconds;
  return isOurs ? digestOf([rest, others]) : '';
}

/** Neither a policy in monitor mode rejects the object, nor one that would change it. */
function writtenResult({ result, mode }: AuditFinding): NonNullable<ReportResult['result']> {
  switch (result) {
    case 'fail':
      return mode === 'monitor' ? 'warn' : 'fail';
    case 'wouldChange':
      return 'warn';
    case 'error':
    case 'skip':
      return result;
    default:
      return result satisfies never;
  }
}

function propertiesOf({
  policyId,
  policyUid,
  policyGeneration,
  mode,
  result,
  reason,
  exception,
}: AuditFinding): Record<string, string> {
  return {
    policyId,
    policyUid,
    ...(policyGeneration === undefined ? {} : { policyRevision: String(policyGeneration) }),
    mode,
    ...(result === 'wouldChange' ? { wouldChange: 'true' } : {}),
    ...(reason === undefined ? {} : { reason }),
    ...(exception === undefined ? {} : { exception }),
  };
}

/** The start of a text, so that its JSON has no more bytes. Tenants write parts of it, and consoles show it. */
function cut(text: string, maxBytes: number): string {
  let kept = inertText(text.slice(0, maxBytes));
  for (let bytes = bytesOf(kept); bytes > maxBytes; bytes = bytesOf(kept)) {
    kept = `${kept.slice(0, Math.floor((kept.length * maxBytes) / bytes) - 1)}…`;
  }
  return kept.toWellFormed();
}

function bytesOf(text: string): number {
  return Buffer.byteLength(JSON.stringify(text));
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex').slice(0, DIGEST_DIGITS);
}
