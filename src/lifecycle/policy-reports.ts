// Writes the status of policies, rate-limited during a rollout, and emits events for it.
import { isDeepStrictEqual } from 'node:util';
import { type Cluster, isNotFound } from '../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  CONTROLLER_FIELD_MANAGER,
  type JsonObject,
  keyOf,
  policyId,
  type PolicyStatus,
  type Readiness,
  type ResourceType,
} from '../resources/index.ts';
import { type EventSink, FAILED_REASON, type ReconcileResult } from '../runtime/index.ts';
import type { LifecycleMetrics } from './lifecycle-metrics.ts';
import { policyStatus } from './rollout/policy-status.ts';
import { REASONS } from './rollout/reasons.ts';
import type { RolloutView } from './rollout/rollout-view.ts';
import type { WrittenObjects } from './written-objects.ts';

/**
 * Delay before the progress of a rollout is written; each further delay is ten times as long. The end of a rollout and
 * failures are written at once. So a thousand policies that are applied at once take two or three writes each. Milliseconds.
 */
export const FIRST_PROGRESS_MS = 5_000;
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
    view: RolloutView,
    failure: Readiness | undefined,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { cluster, events, metrics, policies } = this.#options;
    const id = policyId(policy);
    const before = policy.status;
    const status = policyStatus(view, failure, before, view.now);
    if (isSame(before, status)) {
      return {};
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
    // A merge patch removes fields that are null.
    const removed = Object.keys(before ?? {}).filter((field) => !Object.hasOwn(status, field));
    const body = {
      // Conflicts if the spec or the status has changed since.
      metadata: { resourceVersion: policy.metadata.resourceVersion },
      status: { ...status, ...Object.fromEntries(removed.map((field) => [field, null])) },
    };
    const options = { subresource: 'status', fieldManager: CONTROLLER_FIELD_MANAGER, signal };
    try {
      const patch = { type: 'merge', body: body as unknown as JsonObject } as const;
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
    metrics?.statusWritten(id, status.phase ?? '', view.generation, performance.now());
    // The controller reports failures as events itself.
    const isNew = failure?.reason !== FAILED_REASON && isNews(before, status);
    const type = isNew ? EVENT_TYPES.get(status.phase) : undefined;
    if (type !== undefined) {
      events.event(policy, type, status.reason ?? '', status.message ?? '');
    }
    return {};
  }
}

/** Whether a status deserves an event. The start of a replica does not: it serves thousands of policies. */
function isNews(before: PolicyStatus | undefined, { phase, reason, desiredRevision }: PolicyStatus): boolean {
  const hasStarted =
    phase === 'Active' && before?.reason === REASONS.replicasStarting && before.desiredRevision === desiredRevision;
  return !hasStarted && (before?.phase !== phase || before?.reason !== reason);
}

function isSame(before: PolicyStatus | undefined, after: PolicyStatus): boolean {
  return before !== undefined && isDeepStrictEqual({ ...before }, { ...after });
}
