import type { AdmissionPolicyObject, ObjectKey, ResourceType } from '../resources/index.ts';
import { type ReconcileResult, Waiting } from '../runtime/index.ts';
import type { Complaints } from './complaints.ts';
import type { LifecycleMetrics } from './lifecycle-metrics.ts';
import type { PolicyReports } from './policy-reports.ts';
import type { Prevalidations } from './prevalidations.ts';
import type { RevisionStore } from './revision-store.ts';
import type { RemoveResult, PolicyWebhooks } from './webhooks/policy-webhooks.ts';

/**
 * How long a deleted policy still answers after its own webhook is gone. API servers learn of that some hundred milliseconds late,
 * and a call for an unknown policy ends by the failurePolicy. Milliseconds.
 */
const ANSWERED_STILL_MS = 2_000;
/** When a removal that waits for webhook configurations is looked at again; it is called when they were written. Milliseconds. */
const BLOCKED_AGAIN_MS = 60_000;

export interface PolicyRemovalOptions {
  readonly revisions: RevisionStore;
  readonly webhooks: PolicyWebhooks;
  readonly prevalidations: Prevalidations;
  readonly complaints: Complaints;
  readonly reports: PolicyReports;
  readonly metrics?: LifecycleMetrics;
}

/** Removes what there is of deleted policies of one kind: first their webhooks, then, when nobody calls any more, their revisions. */
export class PolicyRemoval {
  readonly #kind: ResourceType<AdmissionPolicyObject>;
  readonly #options: PolicyRemovalOptions;
  /** Until when deleted policies that had their own webhook answer, by id. Milliseconds since 1970. */
  readonly #answersUntil = new Map<string, number>();

  constructor(kind: ResourceType<AdmissionPolicyObject>, options: PolicyRemovalOptions) {
    this.#kind = kind;
    this.#options = options;
  }

  /** @param policy while a finalizer keeps it */
  async remove(
    key: ObjectKey,
    id: string,
    policy: AdmissionPolicyObject | undefined,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const result = await this.endEnforcement(key, id, policy, signal);
    if (result === 'deferred') {
      this.#answersUntil.set(id, Infinity);
      return {};
    }
    const known = this.#answersUntil.get(id);
    const until = result === 'updated' || known === Infinity ? Date.now() + ANSWERED_STILL_MS : (known ?? 0);
    if (Date.now() < until) {
      this.#answersUntil.set(id, until);
      return { requeueAfterMs: until - Date.now() };
    }
    this.#answersUntil.delete(id);
    for (const revision of this.#options.revisions.of(id)) {
      await this.#options.revisions.delete(revision, signal);
    }
    return {};
  }

  /**
   * Takes a policy out of the webhook configurations, and forgets all that is remembered of it. `deferred`: the policy is reconciled
   * again when they were written.
   * @throws Waiting while they cannot be written; ApiError
   */
  async endEnforcement(
    key: ObjectKey,
    id: string,
    policy: AdmissionPolicyObject | undefined,
    signal: AbortSignal,
  ): Promise<RemoveResult> {
    const { complaints, metrics, prevalidations, reports, webhooks } = this.#options;
    prevalidations.cancel(id);
    metrics?.forget(id);
    complaints.forget({ kind: this.#kind.kind, metadata: key });
    reports.forget(id);
    const policyServer = policy?.spec.policyServer ?? 'default';
    const result = await webhooks.remove({ id, kind: this.#kind.kind, key, policyServer }, signal);
    const failure = result === 'deferred' ? webhooks.failure(policyServer) : undefined;
    if (failure !== undefined) {
      this.#answersUntil.set(id, Infinity);
      throw new Waiting(failure.reason, BLOCKED_AGAIN_MS, failure.message);
    }
    return result;
  }
}
