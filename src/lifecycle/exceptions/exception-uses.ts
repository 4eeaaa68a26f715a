// How often exceptions were used: the counts of all replicas together.
import { isDeepStrictEqual } from 'node:util';
import { MAX_USED_BY, type PolicyException, timeText } from '../../resources/index.ts';
import type { ReplicaUse } from '../replicas/exception-reports.ts';
import { USED } from './use-condition.ts';

type Status = NonNullable<PolicyException['status']>;
/** The part of a status that changes with each use. */
export type ExceptionUsesStatus = Pick<Status, 'used' | 'lastUsed' | 'usedBy'>;
type Process = NonNullable<ExceptionUsesStatus['usedBy']>[number];

/**
 * Adds what replicas report to the previous status. The count of a process grows as long as it runs. The status records how much of it
 * is contained, so that nothing is counted twice, whoever restarts.
 * @param mayReport whether a replica may still report
 */
export function usesStatus(
  before: ExceptionUsesStatus | undefined,
  reports: readonly ReplicaUse[],
  mayReport: (replica: string) => boolean,
): ExceptionUsesStatus {
  const { used, lastUsed, usedBy } = before ?? {};
  const base: ExceptionUsesStatus = {
    ...(used === undefined ? {} : { used }),
    ...(lastUsed && { lastUsed }),
    ...(usedBy && { usedBy }),
  };
  const news = reports.filter((report) => report.count > contained(base, report));
  return news.length === 0 ? base : withoutFormer(news.reduce(withReport, base), reports, mayReport);
}

/** Whether two statuses differ in nothing but uses. */
export function differOnlyInUses(one: Status | undefined, other: Status): boolean {
  return isDeepStrictEqual(withoutUses(one), withoutUses(other));
}

function withoutUses(status: Status = {}): Status {
  const { used: _used, lastUsed: _lastUsed, usedBy: _usedBy, conditions = [], ...rest } = status;
  return { ...rest, conditions: conditions.filter(({ type }) => type !== USED) };
}

/** The reports that a status contains. */
export function settledUses(status: ExceptionUsesStatus, reports: readonly ReplicaUse[]): readonly ReplicaUse[] {
  return reports.filter((report) => report.count <= contained(status, report));
}

function withReport(
  { used = 0, lastUsed = '', usedBy = [] }: ExceptionUsesStatus,
  report: ReplicaUse,
): ExceptionUsesStatus {
  const { replica: name, since, count } = report;
  const others = usedBy.filter((one) => !isOf(one, report));
  const last = timeText(Date.parse(report.last));
  return {
    // Beyond that, sums are not exact, and beyond 2^63 an API server refuses the whole status.
    used: Math.min(used + count - contained({ usedBy }, report), Number.MAX_SAFE_INTEGER),
    lastUsed: last > lastUsed ? last : lastUsed,
    usedBy: [...others, { name, since, count }],
  };
}

/** Drops processes that are gone and whose reports are all counted. The last one of a name is the one that runs. */
function withoutFormer(
  { usedBy = [], ...rest }: ExceptionUsesStatus,
  reports: readonly ReplicaUse[],
  mayReport: (replica: string) => boolean,
): ExceptionUsesStatus {
  const current = usedBy.filter(
    (one, index) =>
      reports.some((report) => isOf(one, report)) ||
      (mayReport(one.name) && !usedBy.slice(index + 1).some(({ name }) => name === one.name)),
  );
  return { ...rest, usedBy: current.slice(-MAX_USED_BY) };
}

/** How much of the count of a process a status contains. */
function contained({ usedBy = [] }: ExceptionUsesStatus, report: ReplicaUse): number {
  return usedBy.find((one) => isOf(one, report))?.count ?? 0;
}

function isOf({ name, since }: Process, report: ReplicaUse): boolean {
  return name === report.replica && since === report.since;
}
