// What an auditor tells the others of its share, as text in an annotation of its Lease.
import { createHash } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import { isJsonObject, type JsonValue, parseJson } from '../../values/index.ts';
import type { AuditedKind, Counts, CoverageState } from '../coverage.ts';
import type { StatusFinding } from './audit-status.ts';

/** The annotation. */
export const SUMMARY_ANNOTATION = 'portcullis.dev/audit-summary';
/** Longest text: a Lease is written every two seconds. It has some 2,000 pairs of a policy and a kind. Characters. */
export const MAX_SUMMARY = 64 * 1_024;
/** Longest text without compression. Others may write Leases, too. Bytes. */
const MAX_UNPACKED = 4 * 2 ** 20;
/** Findings of each policy, as many as there is room for. */
const NEWEST_STEPS = [10, 3, 1, 0] as const;

/** What one auditor knows of a kind by a policy. */
export interface KindSummary {
  readonly state: CoverageState;
  readonly scannedAt?: string;
  readonly counts: Counts;
  readonly unlisted: number;
}

export interface PolicySummary {
  /** By {@link kindKey}. */
  readonly kinds: ReadonlyMap<string, KindSummary>;
  readonly newest: readonly StatusFinding[];
}

export interface MemberSummary {
  /** The auditors that share the cluster, as this one knows them. */
  readonly members: string;
  /** Policies for which there was no room. */
  readonly omitted: number;
  /** By {@link policyKey}. */
  readonly policies: ReadonlyMap<string, PolicySummary>;
}

/** A version of a policy: what another one judged does not count. */
export function policyKey(uid: string, generation: number): string {
  return createHash('sha256').update(`${uid} ${generation}`).digest('base64url').slice(0, 12);
}

export function kindKey({ group, version, resource }: AuditedKind): string {
  return `${group}/${version}/${resource}`;
}

/** At most {@link MAX_SUMMARY} characters: first older findings are left out, then policies. */
export function summaryText({ members, policies }: Omit<MemberSummary, 'omitted'>): string {
  const all = [...policies];
  for (const newest of NEWEST_STEPS) {
    const text = packed(members, all, newest, 0);
    if (text.length <= MAX_SUMMARY) {
      return text;
    }
  }
  for (let kept = all.length >> 1; kept > 0; kept >>= 1) {
    const text = packed(members, all.slice(0, kept), 0, all.length - kept);
    if (text.length <= MAX_SUMMARY) {
      return text;
    }
  }
  return packed(members, [], 0, all.length);
}

/** Undefined: it is no summary. */
export function readSummary(text: string): MemberSummary | undefined {
  try {
    const unpacked = gunzipSync(Buffer.from(text, 'base64'), { maxOutputLength: MAX_UNPACKED });
    const [members, omitted, policies] = parseJson(unpacked.toString()) as JsonValue[];
    return typeof members === 'string' && typeof omitted === 'number' && isJsonObject(policies)
      ? { members, omitted, policies: new Map(Object.entries(policies).map(([key, one]) => [key, readPolicy(one)])) }
      : undefined;
  } catch {
    return undefined;
  }
}

function packed(
  members: string,
  policies: readonly (readonly [string, PolicySummary])[],
  newest: number,
  omitted: number,
): string {
  const written = policies.map(([key, policy]) => [key, writtenPolicy(policy, newest)]);
  return gzipSync(JSON.stringify([members, omitted, Object.fromEntries(written)])).toString('base64');
}

function writtenPolicy({ kinds, newest }: PolicySummary, count: number): unknown {
  return [
    Object.fromEntries(
      [...kinds].map(([key, { state, scannedAt = '', counts, unlisted }]) => [
        key,
        [state, scannedAt, unlisted, ...COUNTS.map((name) => counts[name])],
      ]),
    ),
    newest.slice(0, count),
  ];
}

const COUNTS = ['scanned', 'matched', 'passed', 'failed', 'wouldChange', 'skipped', 'unjudged'] as const;

/** @throws TypeError when it is none */
function readPolicy(value: JsonValue): PolicySummary {
  const [kinds, newest] = value as [Record<string, JsonValue[]>, StatusFinding[]];
  return {
    kinds: new Map(Object.entries(kinds).map(([key, kind]) => [key, readKind(kind)])),
    newest: newest.map(({ result, object, objectVersion, message }) => ({
      result,
      object,
      ...(objectVersion === undefined ? {} : { objectVersion }),
      ...(message === undefined ? {} : { message }),
    })),
  };
}

function readKind([state, scannedAt, unlisted, ...counts]: readonly JsonValue[]): KindSummary {
  const numbers = [unlisted, ...counts].map(Number);
  if (numbers.length !== COUNTS.length + 1 || !numbers.every(Number.isSafeInteger)) {
    throw new TypeError('expected counts');
  }
  return {
    state: state as CoverageState,
    ...(typeof scannedAt === 'string' && scannedAt !== '' ? { scannedAt } : {}),
    unlisted: Number(unlisted),
    counts: Object.fromEntries(COUNTS.map((name, index) => [name, numbers[index + 1]])) as unknown as Counts,
  };
}
