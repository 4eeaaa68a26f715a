// Writes the status of policies, rate-limited during a rollout, and emits events for it.
import { isDeepStrictEqual } from 'node:util';
import { type Cluster, isNotFound } from '../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  type Condition,
  CONTROLLER_FIELD_MANAGER,
  findCondition,
  issueText,
  monitoredText,
  keyOf,
  policyId,
  type AdmissionPolicyStatus,
  type Readiness,
  type RefreshedStatus,
  type ResourceType,
} from '../resources/index.ts';
import { type EventSink, FAILED_REASON, type ReconcileResult, type WrittenObjects } from '../runtime/index.ts';
import type { LifecycleMetrics } from './lifecycle-metrics.ts';
import type { ReplicaDirectory } from './replicas/replica-directory.ts';
import { hasNewDenials, settledCounts } from './rollout/monitored-status.ts';
import { newIssues } from './rollout/policy-issues.ts';
import { POLICY_UP_TO_DATE, admissionPolicyStatus } from './rollout/admission-policy-status.ts';
import { REASONS } from '../rollout/index.ts';
import type { AdmissionRolloutView } from './rollout/admission-rollout-view.ts';
import type { TypeCheckReports } from './type-checks/type-check-reports.ts';
import { asJson, inertTexts, isJsonObject, type JsonObject, own } from '../values/index.ts';

/**
 * Delay before the progress of a rollout is written; each further delay is ten times as long. The end of a rollout and
 * failures are written at once. So a thousand policies that are applied at once take two or three writes each. Milliseconds.
 */
const FIRST_PROGRESS_MS = 5_000;
/**
 * Minimum interval between two writes, and two events, for what one policy in monitor mode would have rejected.
 * A status that is written for another reason contains the newest count. Milliseconds.
 */
const MONITORED_INTERVAL_MS = 60_000;
/** The reason of the event about it. */
const WOULD_REJECT = 'WouldReject';
/** The reason of the event about a refresh. A failure has the event of the phase. */
const REFRESHED = 'Refreshed';
/** Phases that a rollout leaves by itself. */
const TRANSIENT: ReadonlySet<string | undefined> = new Set(['Pending', 'Updating']);
/** Phases with an event, and its type. */
const EVENT_TYPES: ReadonlyMap<string | undefined, 'Normal' | 'Warning'> = new Map([
  ['Active', 'Normal'],
  ['RolledBack', 'Normal'],
  ['Degraded', 'Warning'],
  ['Error', 'Warning'],
]);

/** Rate limit of one policy's progress. */
interface Progress {
  readonly intervalMs: number;
  /** The earliest time of the next write. Milliseconds since 1970. */
  readonly next: number;
}

export interface PolicyReportsOptions {
  readonly cluster: Cluster;
  readonly policies: WrittenObjects<AdmissionPolicyObject>;
  readonly events: EventSink;
  readonly replicas: Pick<ReplicaDirectory, 'monitored'>;
  readonly typeChecks?: Pick<TypeCheckReports, 'forget'> | undefined;
  /** See {@link MONITORED_INTERVAL_MS}, the default. */
  readonly monitoredIntervalMs?: number;
  readonly metrics?: LifecycleMetrics;
}

/** Statuses and events of policies of one kind. */
export class PolicyReports {
  readonly #kind: ResourceType<AdmissionPolicyObject>;
  readonly #options: PolicyReportsOptions;
  /** Rate limits of rollouts under way, by policy id. Losing them costs a write too early. */
  readonly #progress = new Map<string, Progress>();

  constructor(kind: ResourceType<AdmissionPolicyObject>, options: PolicyReportsOptions) {
    this.#kind = kind;
    this.#options = options;
  }

  /** Forgets a deleted policy. */
  forget(id: string): void {
    this.#progress.delete(id);
    this.#options.typeChecks?.forget(id);
    const { monitored } = this.#options.replicas;
    monitored.drop(monitored.of(id));
  }

  /**
   * Writes the status when it differs.
   * @param view the current view of the policy
   * @param failure the failure of the reconciliation that ends with this write
   * @returns the delay after which progress may be written, if it was too early
   * @throws ApiError, ClusterError
   */
  async write(
    policy: AdmissionPolicyObject,
    view: AdmissionRolloutView,
    failure: Readiness | undefined,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { cluster, events, metrics, policies } = this.#options;
    const id = policyId(policy);
    const before = withoutAudit(policy.status);
    const status = inertTexts(admissionPolicyStatus(view, failure, before, view.now));
    if (isSame(before, status)) {
      this.#settle(id, status, view);
      return {};
    }
    const monitoredAt = this.#nextMonitored(before, view.now);
    if (view.now < monitoredAt && isMonitoredOnly(before, status)) {
      return { requeueAfterMs: monitoredAt - view.now };
    }
    const isProgress =
      failure === undefined &&
      TRANSIENT.has(status.phase) &&
      TRANSIENT.has(before?.phase) &&
      status.observedGeneration === before?.observedGeneration;
    const last = isProgress ? this.#progress.get(id) : undefined;
    if (last !== undefined && view.now < last.next) {
      return { requeueAfterMs: last.next - view.now };
    }
    const key = keyOf(policy);
    const body = {
      // Conflicts if the spec or the status has changed since.
      metadata: { resourceVersion: policy.metadata.resourceVersion },
      status: withRemovals(asJson(before ?? {}), asJson(status)),
    };
    const options = { subresource: 'status', fieldManager: CONTROLLER_FIELD_MANAGER, signal };
    try {
      const patch = { type: 'merge', body: asJson(body) } as const;
      policies.recordWrite(key, await cluster.patch(this.#kind, key, patch, options));
    } catch (error) {
      policies.forget(key);
      if (isNotFound(error)) {
        return {};
      }
      throw error;
    }
    const intervalMs = last === undefined ? FIRST_PROGRESS_MS : last.intervalMs * 10;
    this.#progress.set(id, { intervalMs, next: view.now + intervalMs });
    this.#settle(id, status, view);
    metrics?.statusWritten(id, status.phase ?? '', view.generation, performance.now());
    // The controller reports failures as events itself.
    const isNew = failure?.reason !== FAILED_REASON && isNews(before, status);
    const type = isNew ? EVENT_TYPES.get(status.phase) : undefined;
    if (type !== undefined) {
      const { reason = '', message = '' } = progressOf(status) ?? {};
      events.event(policy, type, reason, message);
    }
    if (
      status.monitored !== undefined &&
      hasNewDenials(before?.monitored, status.monitored) &&
      view.now >= monitoredAt
    ) {
      events.event(policy, 'Normal', WOULD_REJECT, monitoredText(status.monitored));
    }
    for (const issue of newIssues(before, status)) {
      events.event(policy, 'Warning', issue.reason, issueText(issue));
    }
    const { refreshed } = status;
    if (refreshed !== undefined && isRefreshNews(before?.refreshed, refreshed)) {
      events.event(policy, 'Normal', REFRESHED, refreshed.message);
    }
    return {};
  }

  /** When the next count may be written. Milliseconds since 1970. */
  #nextMonitored(before: AdmissionPolicyStatus | undefined, now: number): number {
    const { monitoredIntervalMs = MONITORED_INTERVAL_MS } = this.#options;
    const last = before?.monitored?.lastReported;
    // A leader whose clock was ahead must not delay the next write further.
    return last === undefined ? now : Math.min(Date.parse(last), now) + monitoredIntervalMs;
  }

  /** Drops counts that are in the status now, and those that are not of this policy's revisions and PolicyServer. */
  #settle(id: string, { monitored: status }: AdmissionPolicyStatus, { monitored: counts }: AdmissionRolloutView): void {
    const { monitored } = this.#options.replicas;
    const others = monitored.of(id).filter((one) => !counts.includes(one));
    monitored.drop([...settledCounts(status, counts), ...others]);
  }
}

/** Whether a status deserves an event. The start of a replica does not: it serves thousands of policies. */
function isNews(before: AdmissionPolicyStatus | undefined, after: AdmissionPolicyStatus): boolean {
  const { phase, desiredRevision } = after;
  const [earlier, now] = [progressOf(before)?.reason, progressOf(after)?.reason];
  const hasStarted =
    phase === 'Active' && earlier === REASONS.replicasStarting && before?.desiredRevision === desiredRevision;
  return !hasStarted && (before?.phase !== phase || earlier !== now);
}

/** The progress of the rollout, without issues of the policy, which have events of their own. */
function progressOf(status: AdmissionPolicyStatus | undefined): Condition | undefined {
  return findCondition(status?.conditions, POLICY_UP_TO_DATE);
}

/** Whether a refresh deserves an event: after a retry as well, but not for each later revision. */
function isRefreshNews(before: RefreshedStatus | undefined, { value, result }: RefreshedStatus): boolean {
  return result !== 'Unresolved' && (before?.value !== value || before.result !== result);
}

/** The fields of a merge patch, which removes fields that are null, and replaces lists. */
function withRemovals(before: JsonObject, after: JsonObject): JsonObject {
  const removed = Object.keys(before).filter((field) => !Object.hasOwn(after, field));
  const merged = Object.entries(after).map(([field, value]) => {
    const old = own(before, field);
    return [field, isJsonObject(value) && isJsonObject(old) ? withRemovals(old, value) : value] as const;
  });
  return Object.fromEntries([...merged, ...removed.map((field) => [field, null] as const)]);
}

/** Whether two statuses differ only in the counts of one revision. */
function isMonitoredOnly(before: AdmissionPolicyStatus | undefined, after: AdmissionPolicyStatus): boolean {
  const { monitored, ...rest } = after;
  const { monitored: counted, ...others } = before ?? {};
  return counted !== undefined && counted.revision === monitored?.revision && isDeepStrictEqual(others, rest);
}

/** The status without the part that the auditor writes, or UnauditedPolicies while there is none. */
function withoutAudit(status: AdmissionPolicyStatus | undefined): AdmissionPolicyStatus | undefined {
  if (status === undefined) {
    return undefined;
  }
  const { audit: _, ...own } = status;
  return own;
}

function isSame(before: AdmissionPolicyStatus | undefined, after: AdmissionPolicyStatus): boolean {
  return before !== undefined && isDeepStrictEqual({ ...before }, { ...after });
}
