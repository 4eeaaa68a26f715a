import type { AdmissionPolicyObject, ObjectKey, ResourceType } from '../resources/index.ts';
import type { ReconcileResult } from '../runtime/index.ts';
import type { AnnotationWarnings } from './annotation-warnings.ts';
import type { LifecycleMetrics } from './lifecycle-metrics.ts';
import type { PolicyReports } from './policy-reports.ts';
import type { Prevalidations } from './prevalidations.ts';
import type { RevisionStore } from '../rollout/index.ts';
import { waitingFor, type WebhookState } from './rollout/webhook-state.ts';
import type { PolicyWebhooks } from './webhooks/policy-webhooks.ts';

/**
 * Time that a deleted policy keeps serving after its own webhook was removed. API servers notice the removal some hundred
 * milliseconds late, and calls for an unknown policy are decided by failurePolicy. Milliseconds.
 */
const GRACE_PERIOD_MS = 2_000;

export interface PolicyRemovalOptions {
  readonly revisions: RevisionStore;
  readonly webhooks: PolicyWebhooks;
  readonly prevalidations: Prevalidations;
  readonly warnings: AnnotationWarnings;
  readonly reports: PolicyReports;
  readonly metrics?: LifecycleMetrics;
}

/** Removes deleted policies of one kind: first their webhooks, then, when API servers have stopped calling, their revisions. */
export class PolicyRemoval {
  readonly #kind: ResourceType<AdmissionPolicyObject>;
  readonly #options: PolicyRemovalOptions;
  /** When revisions of deleted policies with their own webhook may be deleted, by policy id. Milliseconds since 1970. */
  readonly #servesUntil = new Map<string, number>();

  constructor(kind: ResourceType<AdmissionPolicyObject>, options: PolicyRemovalOptions) {
    this.#kind = kind;
    this.#options = options;
  }

  /** @param policy undefined once no finalizer keeps it */
  async remove(
    key: ObjectKey,
    id: string,
    policy: AdmissionPolicyObject | undefined,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    if (this.endEnforcement(key, id, policy).state !== 'Absent') {
      this.#servesUntil.set(id, Infinity);
      return {};
    }
    const known = this.#servesUntil.get(id) ?? 0;
    const until = known === Infinity ? Date.now() + GRACE_PERIOD_MS : known;
    if (Date.now() < until) {
      this.#servesUntil.set(id, until);
      return { requeueAfterMs: until - Date.now() };
    }
    this.#servesUntil.delete(id);
    for (const revision of this.#options.revisions.of(id)) {
      await this.#options.revisions.delete(revision, signal);
    }
    return {};
  }

  /**
   * Removes a policy from webhook configurations and from memory. Until the result is Absent, its own webhook is still there; the
   * policy is requeued when it is gone.
   * @throws Waiting while configurations cannot be written
   */
  endEnforcement(key: ObjectKey, id: string, policy: AdmissionPolicyObject | undefined): WebhookState {
    const { warnings, metrics, prevalidations, reports, webhooks } = this.#options;
    prevalidations.cancel(id);
    metrics?.forget(id);
    warnings.forget({ kind: this.#kind.kind, metadata: key });
    reports.forget(id);
    const policyServer = policy?.spec.policyServer ?? 'default';
    const webhook = webhooks.remove({ id, kind: this.#kind.kind, key, policyServer });
    if (webhook.state === 'Failing') {
      this.#servesUntil.set(id, Infinity);
      throw waitingFor(webhook);
    }
    return webhook;
  }
}
