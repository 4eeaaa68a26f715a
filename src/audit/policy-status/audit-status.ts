// What the status of a policy says about existing objects (pure).
import {
  type AuditStatus,
  groupResourceOf,
  MAX_AUDIT_MESSAGE,
  MAX_AUDITED_KINDS,
  MAX_LISTED_FINDINGS,
} from '../../resources/index.ts';
import { shortened } from '../../values/index.ts';
import { type Counts, type Coverage, isIncomplete } from '../coverage.ts';
import type { AuditFinding } from '../finding.ts';

/** What a status says of a finding. */
export type StatusFinding = Pick<AuditFinding, 'result' | 'object' | 'objectVersion' | 'message'>;

/** What an auditor knows by a policy. */
export interface AuditedPolicy {
  /** The `metadata.generation` of the policy that judged. */
  readonly generation: number;
  readonly coverage: readonly Coverage[];
  readonly findings: Iterable<StatusFinding>;
}

/** @param before what the status of the policy says */
export function auditStatus(
  { generation, coverage, findings }: AuditedPolicy,
  before: AuditStatus | undefined,
): AuditStatus {
  const counts = sumOf(coverage);
  const { state, reason, message } = stateOf(coverage, counts);
  const lastCompleteScan =
    state === 'Complete'
      ? earliest(coverage.map(({ scannedAt }) => scannedAt))
      : before?.observedGeneration === generation
        ? before.lastCompleteScan
        : undefined;
  const kinds = coverage.toSorted((one, other) => rank(one) - rank(other));
  const omitted = Math.max(0, kinds.length - MAX_AUDITED_KINDS);
  const newest = newestOf(findings);
  return {
    summary: summaryOf(state, counts.failed),
    state,
    reason,
    message: shortened(message, MAX_AUDIT_MESSAGE),
    observedGeneration: generation,
    ...(lastCompleteScan === undefined ? {} : { lastCompleteScan }),
    counts,
    kinds: kinds.slice(0, MAX_AUDITED_KINDS).map(kindStatus),
    ...(omitted === 0 ? {} : { omittedKinds: omitted }),
    ...(newest.length === 0 ? {} : { findings: newest.map(listedFinding) }),
  };
}

/** Zero is no answer while something is not known. */
function summaryOf(state: AuditStatus['state'], failed: number): string {
  switch (state) {
    case 'Complete':
      return String(failed);
    case 'NotAuditable':
      return state;
    default:
      return failed === 0 ? 'Unknown' : `${failed}+`;
  }
}

function stateOf(
  coverage: readonly Coverage[],
  counts: Required<AuditStatus>['counts'],
): Pick<AuditStatus, 'state' | 'reason' | 'message'> {
  const [first] = coverage;
  if (first !== undefined && coverage.every(({ state }) => state === 'NotAuditable')) {
    return { state: 'NotAuditable', reason: first.reason ?? 'NotAuditable', message: first.message ?? '' };
  }
  const gaps = coverage.filter(isIncomplete);
  const pending = gaps.filter(({ state }) => state === 'Pending');
  const [gap] = gaps.toSorted((one, other) => rank(one) - rank(other));
  if (pending.length > 0) {
    const message = `${pending.length} of ${coverage.length} kinds of objects are not scanned yet`;
    return { state: 'Pending', reason: 'NotScanned', message };
  }
  if (gap !== undefined) {
    const more = gaps.length === 1 ? '' : ` (and ${gaps.length - 1} more)`;
    const message = `${gap.kind === undefined ? 'all kinds' : groupResourceOf(gap.kind)}: ${gap.message ?? gap.state}${more}`;
    return { state: 'Incomplete', reason: gap.reason ?? gap.state, message };
  }
  const unlisted = coverage.reduce((sum, one) => sum + (one.unlisted ?? 0), 0);
  const more = unlisted === 0 ? '' : `; ${unlisted} findings are counted only, more than the auditor keeps`;
  const message = `${counts.failed} of ${counts.matched} objects would be rejected${more}`;
  return { state: 'Complete', reason: 'Scanned', message };
}

/** What is not known comes first. */
function rank(one: Coverage): number {
  return isIncomplete(one) ? (one.state === 'Pending' ? 1 : 0) : one.state === 'Scanned' ? 3 : 2;
}

function sumOf(coverage: readonly Coverage[]): Required<AuditStatus>['counts'] {
  const sum = (name: keyof Counts): number => coverage.reduce((total, { counts }) => total + counts[name], 0);
  return {
    matched: sum('matched'),
    passed: sum('passed'),
    failed: sum('failed'),
    wouldChange: sum('wouldChange'),
    skipped: sum('skipped'),
    unjudged: sum('unjudged'),
  };
}

function earliest(times: readonly (string | undefined)[]): string | undefined {
  return times.filter((time) => time !== undefined).toSorted()[0];
}

function kindStatus(one: Coverage): NonNullable<AuditStatus['kinds']>[number] {
  const { kind, namespace, state, reason, message, missingRule, scannedAt } = one;
  return {
    ...(kind === undefined || kind.group === '' ? {} : { group: kind.group }),
    ...(kind === undefined ? {} : { resource: kind.resource }),
    ...(namespace === undefined ? {} : { namespace }),
    state,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message: shortened(message, MAX_AUDIT_MESSAGE) }),
    ...(missingRule === undefined ? {} : { missingRule }),
    ...(scannedAt === undefined ? {} : { scannedAt }),
  };
}

/** Those whose objects changed last: resource versions grow (KEP-5504), and say the same after a restart. */
export function newestOf(findings: Iterable<StatusFinding>): readonly StatusFinding[] {
  const newest: StatusFinding[] = [];
  for (const finding of findings) {
    const last = newest.at(-1);
    if (
      finding.result === 'fail' &&
      (last === undefined || newest.length < MAX_LISTED_FINDINGS || comesBefore(finding, last))
    ) {
      const at = newest.findIndex((one) => comesBefore(finding, one));
      newest.splice(at === -1 ? newest.length : at, 0, finding);
      newest.splice(MAX_LISTED_FINDINGS);
    }
  }
  return newest;
}

function comesBefore(one: StatusFinding, other: StatusFinding): boolean {
  const [version, versionOfOther] = [versionOf(one), versionOf(other)];
  return version === versionOfOther ? nameOf(one) < nameOf(other) : version > versionOfOther;
}

function versionOf({ objectVersion = '' }: StatusFinding): bigint {
  return /^[0-9]{1,30}$/.test(objectVersion) ? BigInt(objectVersion) : 0n;
}

function nameOf({ object, message = '' }: StatusFinding): string {
  return [object.kind, object.namespace ?? '', object.name, message].join('/');
}

function listedFinding({ object, message }: StatusFinding): NonNullable<AuditStatus['findings']>[number] {
  const { apiVersion, kind, namespace, name } = object;
  return {
    apiVersion,
    kind,
    ...(namespace === undefined ? {} : { namespace }),
    name,
    ...(message === undefined ? {} : { message: shortened(message, MAX_AUDIT_MESSAGE) }),
  };
}
