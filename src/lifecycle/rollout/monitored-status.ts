// What a policy in monitor mode would have rejected: the counts of all replicas together.
import {
  MAX_MONITORED_REQUESTS,
  type MonitoredStatus,
  type AdmissionPolicyStatus,
  timeText,
} from '../../resources/index.ts';
import type { ReplicaCount } from '../replicas/monitored-reports.ts';
import { answeringRevision } from '../../rollout/index.ts';
import type { AdmissionRevision, AdmissionRolloutView } from './admission-rollout-view.ts';

/**
 * Adds the counts of replicas to the previous status. Each replica's count grows as long as its process runs. The status
 * records how much of each count it contains, so that a new leader counts nothing twice. The count restarts with each revision;
 * undefined unless a revision serves in monitor mode.
 */
export function monitoredStatus(
  view: AdmissionRolloutView,
  before: AdmissionPolicyStatus | undefined,
): MonitoredStatus | undefined {
  const serving = answeringRevision(view);
  if (serving === undefined) {
    // The same one may serve again in a moment.
    return view.spec.mode === 'monitor' ? before?.monitored : undefined;
  }
  if (serving.snapshot.mode !== 'monitor') {
    return undefined;
  }
  const base = before?.monitored?.revision === serving.number ? before.monitored : newStatus(serving, view);
  const reports = view.monitored.filter(({ revision }) => revision === serving.number);
  const status = reports.reduce<MonitoredStatus>((sum, report) => withReport(sum, report, view), base);
  return status === base ? base : { ...status, replicas: withoutFormer(status, reports, view) };
}

function newStatus({ number }: AdmissionRevision, { now }: AdmissionRolloutView): MonitoredStatus {
  return { revision: number, since: timeText(now), count: 0, last: [], replicas: [] };
}

function withReport(status: MonitoredStatus, report: ReplicaCount, { now }: AdmissionRolloutView): MonitoredStatus {
  const { replica: name, since, count, last } = report;
  const before = contained(status, report);
  if (count <= before) {
    return status;
  }
  const requests = [...last.slice(before - count).toReversed(), ...status.last];
  const others = status.replicas.filter((one) => one.name !== name || one.since !== since);
  return {
    ...status,
    // Beyond that, sums are not exact, and beyond 2^63 an API server refuses the whole status.
    count: Math.min(status.count + count - before, Number.MAX_SAFE_INTEGER),
    lastReported: new Date(now).toISOString(),
    last: requests
      .toSorted((one, other) => (one.time < other.time ? 1 : one.time > other.time ? -1 : 0))
      .slice(0, MAX_MONITORED_REQUESTS),
    replicas: [...others, { name, since, count }].toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1)),
  };
}

/** Drops processes that are gone and whose reports are all counted. */
function withoutFormer(
  { replicas }: MonitoredStatus,
  reports: readonly ReplicaCount[],
  view: AdmissionRolloutView,
): MonitoredStatus['replicas'] {
  const names = new Set(view.replicas?.map(({ name }) => name));
  return replicas.filter(
    (one, index) =>
      reports.some(({ replica, since }) => replica === one.name && since === one.since) ||
      // Sorted: the last one of a name is the process that runs.
      (names.has(one.name) && replicas[index + 1]?.name !== one.name),
  );
}

function keyOf({ name, since }: MonitoredStatus['replicas'][number]): string {
  return `${name} ${since}`;
}

/** How much of a replica's count the status contains. */
function contained({ replicas }: MonitoredStatus, { replica, since }: ReplicaCount): number {
  return replicas.find((one) => one.name === replica && one.since === since)?.count ?? 0;
}

/** The counts that the status contains, or that are not those of its revision. */
export function settledCounts(
  status: MonitoredStatus | undefined,
  counts: readonly ReplicaCount[],
): readonly ReplicaCount[] {
  return counts.filter(
    (one) => status === undefined || one.revision !== status.revision || one.count <= contained(status, one),
  );
}

/** Whether requests were counted since the status before. */
export function hasNewDenials(before: MonitoredStatus | undefined, after: MonitoredStatus | undefined): boolean {
  return after !== undefined && after.count > (before?.revision === after.revision ? before.count : 0);
}
