// What is told of policies: their status, written only when it differs and not too often while a rollout is under way, and events.
import { isDeepStrictEqual } from 'node:util';
import { type Cluster, isNotFound } from '../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  type JsonObject,
  keyOf,
  policyId,
  type PolicyStatus,
  type ResourceType,
} from '../resources/index.ts';
import type { EventSink } from '../runtime/index.ts';
import { FIELD_MANAGER } from './field-manager.ts';
import type { LifecycleMetrics } from './lifecycle-metrics.ts';
import { policyStatus, type Refusal } from './rollout/policy-status.ts';
import { REASONS } from './rollout/reasons.ts';
import type { RolloutView } from './rollout/rollout-view.ts';
import type { WrittenObjects } from './written-objects.ts';

/**
 * While a rollout is under way its progress is told after this time, and then each time after ten times as long; its end, and
 * whatever goes wrong, at once. When a thousand policies are applied each is told of twice or three times. Milliseconds.
 */
export const FIRST_PROGRESS_MS = 5_000;
/** Phases that pass. */
const PASSING: ReadonlySet<string | undefined> = new Set(['Pending', 'Updating']);
/** Phases that users hear of by an event, and whether they are bad news. */
const EVENT_TYPES: ReadonlyMap<string | undefined, 'Normal' | 'Warning'> = new Map([
  ['Active', 'Normal'],
  ['RolledBack', 'Normal'],
  ['Degraded', 'Warning'],
  ['Error', 'Warning'],
]);

/** When the status of a policy was written last, in milliseconds since 1970, and when it is again at the earliest. */
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
  /** What was told of policies whose rollout is under way, by id. */
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
   * @returns when to look again, if it was too early to tell; milliseconds since 1970
   * @throws ApiError, ClusterError
   */
  async tell(
    policy: AdmissionPolicyObject,
    view: RolloutView,
    refusal: Refusal | undefined,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const { cluster, events, metrics, policies } = this.#options;
    const id = policyId(policy);
    const before = policy.status;
    const status = policyStatus(view, refusal === undefined ? {} : { refusal }, before, view.now);
    if (isSame(before, status)) {
      return undefined;
    }
    const isProgress =
      PASSING.has(status.phase) &&
      PASSING.has(before?.phase) &&
      status.observedGeneration === before?.observedGeneration;
    const told = isProgress ? this.#progress.get(id) : undefined;
    if (told !== undefined && view.now < told.next) {
      return told.next;
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
        return undefined;
      }
      throw error;
    }
    const intervalMs = told === undefined ? FIRST_PROGRESS_MS : told.intervalMs * 10;
    this.#progress.set(id, { intervalMs, next: view.now + intervalMs });
    metrics?.told(id, status.phase ?? '', view.generation, performance.now());
    const type = isNews(before, status) ? EVENT_TYPES.get(status.phase) : undefined;
    if (type !== undefined) {
      events.event(policy, type, status.reason ?? '', status.message ?? '');
    }
    return undefined;
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
