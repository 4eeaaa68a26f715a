// The status of policies, written only when it differs and not too often while a rollout is under way, and its events.
import { isDeepStrictEqual } from 'node:util';
import { type Cluster, isNotFound } from '../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  type JsonObject,
  keyOf,
  policyId,
  type PolicyStatus,
  type Readiness,
  type ResourceType,
} from '../resources/index.ts';
import { type EventSink, FAILED_REASON, type ReconcileResult } from '../runtime/index.ts';
import { FIELD_MANAGER } from './field-manager.ts';
import type { LifecycleMetrics } from './lifecycle-metrics.ts';
import { policyStatus } from './rollout/policy-status.ts';
import { REASONS } from './rollout/reasons.ts';
import type { RolloutView } from './rollout/rollout-view.ts';
import type { WrittenObjects } from './written-objects.ts';

/**
 * Progress of a rollout is written after this time, then after ten times as long each time; its end, and whatever goes wrong, at
 * once. When a thousand policies are applied, each gets two or three statuses. Milliseconds.
 */
export const FIRST_PROGRESS_MS = 5_000;
/** Phases that pass. */
const PASSING: ReadonlySet<string | undefined> = new Set(['Pending', 'Updating']);
/** Phases that are reported as events, and the type of those. */
const EVENT_TYPES: ReadonlyMap<string | undefined, 'Normal' | 'Warning'> = new Map([
  ['Active', 'Normal'],
  ['RolledBack', 'Normal'],
  ['Degraded', 'Warning'],
  ['Error', 'Warning'],
]);

/** When progress is written next, in milliseconds since 1970, and how long after the last time that is. */
interface Progress {
  readonly intervalMs: number;
  readonly next: number;
}

export interface PolicyReportsOptions {
  readonly cluster: Cluster;
  readonly policies: WrittenObjects<AdmissionPolicyObject>;
  readonly events: EventSink;
  readonly metrics?: LifecycleMetrics;
}

/** Of policies of one kind. */
export class PolicyReports {
  readonly #kind: ResourceType<AdmissionPolicyObject>;
  readonly #options: PolicyReportsOptions;
  /** Of policies whose rollout is under way, by id: memory of a rate limit, nothing is decided by it. */
  readonly #progress = new Map<string, Progress>();

  constructor(kind: ResourceType<AdmissionPolicyObject>, options: PolicyReportsOptions) {
    this.#kind = kind;
    this.#options = options;
  }

  /** A policy is gone. */
  forget(id: string): void {
    this.#progress.delete(id);
  }

  /**
   * Writes the status when it differs.
   * @param view of the policy, at this moment
   * @param failure of the reconciliation that ends with this
   * @returns when to look again, if it was too early to write progress
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
      PASSING.has(status.phase) &&
      PASSING.has(before?.phase) &&
      status.observedGeneration === before?.observedGeneration;
    const last = isProgress ? this.#progress.get(id) : undefined;
    if (last !== undefined && view.now < last.next) {
      return { requeueAfterMs: last.next - view.now };
    }
    const key = keyOf(policy);
    // Fields that are not there any more are taken away.
    const gone = Object.keys(before ?? {}).filter((field) => !Object.hasOwn(status, field));
    const body = {
      // Of what was looked at: a newer spec, or another controller, is looked at first.
      metadata: { resourceVersion: policy.metadata.resourceVersion },
      status: { ...status, ...Object.fromEntries(gone.map((field) => [field, null])) },
    };
    const options = { subresource: 'status', fieldManager: FIELD_MANAGER, signal };
    try {
      const patch = { type: 'merge', body: body as unknown as JsonObject } as const;
      policies.wrote(key, await cluster.patch(this.#kind, key, patch, options));
    } catch (error) {
      policies.forget(key);
      if (isNotFound(error)) {
        return {};
      }
      throw error;
    }
    const intervalMs = last === undefined ? FIRST_PROGRESS_MS : last.intervalMs * 10;
    this.#progress.set(id, { intervalMs, next: view.now + intervalMs });
    metrics?.told(id, status.phase ?? '', view.generation, performance.now());
    // The controller reports failures as events itself.
    const isNew = failure?.reason !== FAILED_REASON && isNews(before, status);
    const type = isNew ? EVENT_TYPES.get(status.phase) : undefined;
    if (type !== undefined) {
      events.event(policy, type, status.reason ?? '', status.message ?? '');
    }
    return {};
  }
}

/** That a replica came is no news of each of the thousands of policies that it serves. */
function isNews(before: PolicyStatus | undefined, { phase, reason, desiredRevision }: PolicyStatus): boolean {
  const hasStarted =
    phase === 'Active' && before?.reason === REASONS.replicasStarting && before.desiredRevision === desiredRevision;
  return !hasStarted && (before?.phase !== phase || before?.reason !== reason);
}

function isSame(before: PolicyStatus | undefined, after: PolicyStatus): boolean {
  return before !== undefined && isDeepStrictEqual({ ...before }, { ...after });
}
