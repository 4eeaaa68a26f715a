// Rolls out one policy: executes the first step of its plan that has something to write, then plans again.
import type { AdmissionPolicyObject, ObjectKey, PolicyRevision, PolicyServerObject } from '../resources/index.ts';
import { movedModules, type PrevalidationResult } from '../control/index.ts';
import {
  type ObjectCache,
  ReconcileError,
  type ReconcileResult,
  Waiting,
  worstFailure,
  type WrittenObjects,
} from '../runtime/index.ts';
import type { LifecycleMetrics } from './lifecycle-metrics.ts';
import { policyReference, matchOf, policyView } from './policy-view.ts';
import type { Prevalidations } from './prevalidations.ts';
import type { ReplicaDirectory } from './replicas/replica-directory.ts';
import { revisionFacts, type RevisionStore } from './revisions/revision-store.ts';
import { afterPrevalidation } from './rollout/after-prevalidation.ts';
import { inheritedValidation } from './rollout/inherited-validation.ts';
import { creation, planRollout } from './rollout/plan-rollout.ts';
import { REASONS } from './rollout/reasons.ts';
import { answeringRevision, isFailurePolicyInForce, servingRevision } from './rollout/revision-choice.ts';
import type { RolloutSettings, RolloutStep, RolloutView } from './rollout/rollout-view.ts';
import { isCovered, type WebhookState } from './rollout/webhook-state.ts';
import type { PolicyReference } from './webhooks/enforcement-records.ts';
import type { PolicyWebhooks } from './webhooks/policy-webhooks.ts';
import { WebhookRefusal } from './webhooks/webhook-dry-runs.ts';
import { isRefusal } from './webhooks/refusal.ts';

/** Steps of one reconciliation: a rollout has a handful, and one for each revision that is pruned or superseded. */
const MAX_STEPS = 64;
/** Delay before a plan with more steps continues. Milliseconds. */
const CONTINUE_MS = 10;
/** Delay before a refused dry run is repeated, if its webhook is in force. Milliseconds. */
const REFUSED_RETRY_MS = 30_000;
/**
 * Delay before a policy is reconciled again while its replicas are unknown. The replica directory reports existing
 * PolicyServers only, and a policy may name a missing one; it must be reconciled all the same, since webhook configurations
 * get narrower only after all policies were. Milliseconds.
 */
const UNKNOWN_REPLICAS_RETRY_MS = 5_000;
/** Delay before a policy is tried again whose webhook cannot be written; it is also requeued after a write. Milliseconds. */
const BLOCKED_RETRY_MS = 60_000;

/** What a step did; of one that concerns webhooks, what the webhook is that it wants. */
type StepResult = 'written' | 'unchanged' | WebhookState;

export interface PolicyRolloutOptions {
  readonly policies: WrittenObjects<AdmissionPolicyObject>;
  readonly policyServers: ObjectCache<PolicyServerObject>;
  readonly revisions: RevisionStore;
  readonly webhooks: PolicyWebhooks;
  readonly replicas: ReplicaDirectory;
  readonly prevalidations: Prevalidations;
  readonly settings: RolloutSettings;
  readonly metrics?: LifecycleMetrics;
  /** The namespace of the product. */
  readonly namespace: string;
}

export class PolicyRollout {
  readonly #options: PolicyRolloutOptions;

  constructor(options: PolicyRolloutOptions) {
    this.#options = options;
  }

  /** @throws ReconcileError, ApiError, ClusterError */
  async run(key: ObjectKey, id: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { policies, prevalidations, webhooks } = this.#options;
    /** Failures that do not stop further steps of the plan. */
    const failures: unknown[] = [];
    for (let count = 0; count < MAX_STEPS; count += 1) {
      const policy = policies.get(key);
      if (policy === undefined || policy.metadata.deletionTimestamp !== undefined) {
        return {};
      }
      const view = this.#viewOf(policy, id);
      const { steps, wakeAt } = planRollout(view);
      if (!steps.some(({ type }) => type === 'dryRun')) {
        webhooks.clearUpcoming(policyReference(policy, id));
      }
      if (!(await this.#executeFirst(steps, policy, id, view, failures, signal))) {
        if (!steps.some(({ type }) => type === 'prevalidate' || type === 'refresh')) {
          prevalidations.cancel(id);
        }
        if (view.replicas !== undefined && servingRevision(view) === undefined) {
          webhooks.markReconciled(id);
        }
        const retryAt = view.replicas === undefined ? view.now + UNKNOWN_REPLICAS_RETRY_MS : undefined;
        const times = [wakeAt, retryAt].filter((time) => time !== undefined);
        const afterMs = Math.max(1, Math.min(...times, Infinity) - Date.now());
        const failure = worstFailure(failures);
        if (failure !== undefined) {
          throw failure instanceof Waiting && failure.afterMs > afterMs
            ? new Waiting(failure.reason, afterMs, failure.message)
            : failure;
        }
        return times.length === 0 ? {} : { requeueAfterMs: afterMs };
      }
    }
    return { requeueAfterMs: CONTINUE_MS };
  }

  /** Executes steps until one has written something. @returns whether one has */
  async #executeFirst(
    steps: readonly RolloutStep[],
    policy: AdmissionPolicyObject,
    id: string,
    view: RolloutView,
    failures: unknown[],
    signal: AbortSignal,
  ): Promise<boolean> {
    for (const step of steps) {
      try {
        const result = await this.#execute(step, policy, id, view, signal);
        if (result === 'written') {
          return true;
        }
        if (result !== 'unchanged' && (result.state === 'Pending' || result.state === 'Failing')) {
          // Further steps have to wait for the webhook.
          failures.push(...waitsFor(result, policyReference(policy, id)));
          return false;
        }
      } catch (error) {
        const isWebhook = step.type === 'dryRun' || step.type === 'widen' || step.type === 'enforce';
        if (!isWebhook) {
          throw error;
        }
        if (error instanceof WebhookRefusal) {
          const refused = step.type === 'widen' ? step.revisions.at(-1) : step.revision;
          const isInForce =
            isCovered(view) && view.revisions.some(({ number, state }) => number === refused && state === 'Serving');
          // A webhook in force stays: a later refusal, as after an upgrade of the API server, does not end enforcement.
          if (refused !== undefined && !isInForce) {
            const to = { type: 'transition', revision: refused, to: 'Failed' } as const;
            const reason = REASONS.webhookRefused;
            await this.#execute({ ...to, reason, message: error.message }, policy, id, view, signal);
            return true;
          }
          failures.push(new Waiting(REASONS.webhookRefused, REFUSED_RETRY_MS, error.message));
        } else if (isRefusal(error)) {
          // Retried with backoff, because no watch reports that permissions were granted.
          failures.push(new ReconcileError(REASONS.webhookRefused, error.message, { cause: error }));
          if (step.type !== 'enforce') {
            // Further steps would make a revision serve that is not covered.
            return false;
          }
        } else {
          throw error;
        }
      }
    }
    return false;
  }

  async #execute(
    step: RolloutStep,
    policy: AdmissionPolicyObject,
    id: string,
    view: RolloutView,
    signal: AbortSignal,
  ): Promise<StepResult> {
    const { revisions } = this.#options;
    switch (step.type) {
      case 'create':
        await revisions.create(policy, step, signal);
        this.#options.metrics?.rolloutStarted(id, view.generation, performance.now());
        return 'written';
      case 'refresh':
        return await this.#refresh(step, policy, id, view, signal);
      case 'prevalidate':
        return (await this.#prevalidate(policy, id, step.revision, view, signal)) ? 'written' : 'unchanged';
      case 'inherit':
        return await this.#inherit(step, policy, id, view, signal);
      case 'transition':
        await revisions.transition(
          this.#revision(policy, id, step.revision),
          step,
          isFailurePolicyInForce(view),
          view.now,
          signal,
        );
        return 'written';
      case 'setEnforced':
        await revisions.setEnforced(this.#revision(policy, id, step.revision), step.isEnforced, signal);
        return 'written';
      case 'uncover':
        return await this.#options.webhooks.enforce(policyReference(policy, id), [], policy.spec, false, signal);
      case 'dryRun':
      case 'widen':
      case 'enforce':
        return await this.#updateWebhooks(step, policy, id, view, signal);
      case 'delete':
        for (const number of step.revisions) {
          await revisions.delete(this.#revision(policy, id, number), signal);
        }
        return 'written';
      default:
        return step satisfies never;
    }
  }

  async #inherit(
    step: RolloutStep & { readonly type: 'inherit' },
    policy: AdmissionPolicyObject,
    id: string,
    view: RolloutView,
    signal: AbortSignal,
  ): Promise<StepResult> {
    const revision = this.#revision(policy, id, step.revision);
    const base = revisionFacts(this.#revision(policy, id, step.from));
    const validation = inheritedValidation(revisionFacts(revision), base);
    await this.#options.revisions.recordPrevalidation(
      revision,
      validation,
      isFailurePolicyInForce(view),
      view.now,
      signal,
    );
    return 'written';
  }

  async #updateWebhooks(
    step: RolloutStep & { readonly type: 'dryRun' | 'widen' | 'enforce' },
    policy: AdmissionPolicyObject,
    id: string,
    view: RolloutView,
    signal: AbortSignal,
  ): Promise<StepResult> {
    const { namespace, webhooks } = this.#options;
    const numbers = step.type === 'widen' ? step.revisions : [step.revision];
    const declared = { snapshot: policy.spec, ownWebhook: view.ownWebhook };
    const specs = numbers.map((number) => view.revisions.find((one) => one.number === number) ?? declared);
    const matches = specs.map(({ snapshot, ownWebhook }) => matchOf(policy, snapshot, ownWebhook, namespace));
    const reference = policyReference(policy, id);
    const [match, spec] = [matches.at(-1), specs.at(-1)?.snapshot ?? policy.spec];
    if (step.type === 'dryRun') {
      if (match !== undefined) {
        await webhooks.dryRun(reference, match, spec, signal);
      }
      return 'unchanged';
    }
    const isInForce = numbers.some((number) => number !== undefined);
    return await webhooks.enforce(reference, matches, spec, isInForce, signal);
  }

  /** @returns whether a result was written; the pre-validation may still be under way */
  async #prevalidate(
    policy: AdmissionPolicyObject,
    id: string,
    number: number,
    view: RolloutView,
    signal: AbortSignal,
  ): Promise<boolean> {
    const revision = this.#revision(policy, id, number);
    const facts = revisionFacts(revision);
    const result = this.#prevalidationResult(policy, id, revision, view, revision.metadata.uid ?? '');
    if (result === undefined) {
      return false;
    }
    await this.#options.revisions.recordPrevalidation(
      revision,
      afterPrevalidation(facts, result, view.now),
      isFailurePolicyInForce(view),
      view.now,
      signal,
    );
    return true;
  }

  /**
   * Handles a refresh with the modules of a pre-validation. After a failure, a new revision shows it and retries, while the
   * one that serves serves on.
   */
  async #refresh(
    { revision: number, refresh }: RolloutStep & { readonly type: 'refresh' },
    policy: AdmissionPolicyObject,
    id: string,
    view: RolloutView,
    signal: AbortSignal,
  ): Promise<StepResult> {
    const revision = this.#revision(policy, id, number);
    const result = this.#prevalidationResult(policy, id, revision, view, `${revision.metadata.uid ?? ''} ${refresh}`);
    if (result === undefined) {
      return 'unchanged';
    }
    if (!result.ok || movedModules(revisionFacts(revision).modules, result.modules).length > 0) {
      return await this.#execute(creation(view), policy, id, view, signal);
    }
    await this.#options.revisions.recordRefresh(revision, refresh, signal);
    return 'written';
  }

  /** The result of a pre-validation of a revision, see {@link Prevalidations.result}. */
  #prevalidationResult(
    policy: AdmissionPolicyObject,
    id: string,
    revision: PolicyRevision,
    view: RolloutView,
    purpose: string,
  ): PrevalidationResult | undefined {
    const { kind, metadata } = policy;
    const { name = '', namespace } = metadata;
    const answering = answeringRevision(view);
    const serving = answering && this.#revision(policy, id, answering.number).metadata.uid;
    return this.#options.prevalidations.result(id, purpose, revision.spec.policyServer, {
      kind,
      metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
      spec: revisionFacts(revision).snapshot,
      ...(serving === undefined ? {} : { serving }),
    });
  }

  #viewOf(policy: AdmissionPolicyObject, id: string): RolloutView {
    return policyView(this.#options, policy, id, this.#options.revisions.ofPolicy(policy, id), Date.now());
  }

  #revision(policy: AdmissionPolicyObject, id: string, number: number): PolicyRevision {
    const revision = this.#options.revisions.ofPolicy(policy, id).find(({ spec }) => spec.revision === number);
    if (revision === undefined) {
      throw new Error(`revision ${number} of ${id} does not exist any more`);
    }
    return revision;
  }
}

/** Why a policy waits for its webhook, if not just for the next write. */
function waitsFor(webhook: WebhookState, { policyServer }: PolicyReference): readonly Waiting[] {
  if (webhook.state !== 'Failing') {
    return [];
  }
  const { reason, message } = webhook;
  const what = reason === REASONS.webhookRefused ? '' : `webhooks of PolicyServer ${policyServer} not written: `;
  return [new Waiting(reason, BLOCKED_RETRY_MS, `${what}${message}`)];
}
