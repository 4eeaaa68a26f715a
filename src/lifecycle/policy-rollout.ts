// Rolls one policy out: takes the first step of its plan that has something to write, then looks and plans again.
import { ApiError } from '../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  type ObjectKey,
  type PolicyRevision,
  type PolicyServer,
} from '../resources/index.ts';
import { type ObjectCache, ReconcileError, type ReconcileResult, Waiting, worstFailure } from '../runtime/index.ts';
import type { LifecycleMetrics } from './lifecycle-metrics.ts';
import { policyReference, matchOf, policyView } from './policy-view.ts';
import type { Prevalidations } from './prevalidations.ts';
import type { ReplicaDirectory } from './replicas/replica-directory.ts';
import { revisionFacts, type RevisionStore } from './revision-store.ts';
import { afterPrevalidation } from './rollout/after-prevalidation.ts';
import { planRollout } from './rollout/plan-rollout.ts';
import { REASONS } from './rollout/reasons.ts';
import { servingRevision } from './rollout/revision-choice.ts';
import type { RolloutSettings, RolloutStep, RolloutView } from './rollout/rollout-view.ts';
import type { EnforceResult, PolicyWebhooks } from './webhooks/policy-webhooks.ts';
import { WebhookRefusal } from './webhooks/webhook-dry-runs.ts';
import type { WrittenObjects } from './written-objects.ts';

/** Steps of one reconciliation: a rollout has a handful, each revision that is pruned or overtaken one more. */
const MAX_STEPS = 64;
/** Delay before a plan with more steps continues. Milliseconds. */
const CONTINUE_MS = 10;
/** When a dry run is repeated that was refused although its webhook is in force. Milliseconds. */
const REFUSED_AGAIN_MS = 30_000;
/** Status codes of a refusal: of what was written, or of who writes it. */
const REFUSALS: ReadonlySet<number> = new Set([400, 403, 413, 422]);
/**
 * When a policy is looked at again while its replicas have not been heard. The replica directory reports PolicyServers that exist; a
 * policy may name one that does not, and until every policy is known no webhook configuration gets narrower. Milliseconds.
 */
const UNHEARD_AGAIN_MS = 5_000;
/** When a policy is looked at again whose webhook configurations could not be written; it is called when they were. Milliseconds. */
const BLOCKED_AGAIN_MS = 60_000;

/** What came of a step: something was written, there was nothing to write, or what follows has to wait. */
type StepEnd = 'written' | 'nothing' | 'wait';

const STEP_ENDS: Readonly<Record<EnforceResult, StepEnd>> = {
  enforced: 'nothing',
  updated: 'written',
  deferred: 'wait',
};

export interface PolicyRolloutOptions {
  readonly policies: WrittenObjects<AdmissionPolicyObject>;
  readonly policyServers: ObjectCache<PolicyServer>;
  readonly revisions: RevisionStore;
  readonly webhooks: PolicyWebhooks;
  readonly replicas: ReplicaDirectory;
  readonly prevalidations: Prevalidations;
  readonly settings: RolloutSettings;
  readonly metrics?: LifecycleMetrics;
  /** Of the product. */
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
    /** Failures that hold up no other step of the plan. */
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
      if (!(await this.#takeFirst(steps, policy, id, view, failures, signal))) {
        if (!steps.some(({ type }) => type === 'prevalidate')) {
          prevalidations.cancel(id);
        }
        if (view.replicas !== undefined && servingRevision(view) === undefined) {
          webhooks.markReconciled(id);
        }
        const unheard = view.replicas === undefined ? view.now + UNHEARD_AGAIN_MS : undefined;
        const times = [wakeAt, unheard].filter((time) => time !== undefined);
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

  /** Takes the first step that has something to write. Whether one had. */
  async #takeFirst(
    steps: readonly RolloutStep[],
    policy: AdmissionPolicyObject,
    id: string,
    view: RolloutView,
    failures: unknown[],
    signal: AbortSignal,
  ): Promise<boolean> {
    for (const step of steps) {
      try {
        const end = await this.#take(step, policy, id, view, signal);
        if (end === 'wait') {
          failures.push(...this.#blockedBy(policy, id));
        }
        if (end !== 'nothing') {
          return end === 'written';
        }
      } catch (error) {
        const isWebhook = step.type === 'dryRun' || step.type === 'widen' || step.type === 'enforce';
        if (!isWebhook) {
          throw error;
        }
        if (error instanceof WebhookRefusal) {
          const refused = step.type === 'widen' ? step.revisions.at(-1) : step.revision;
          const isInForce =
            view.isCovered && view.revisions.some(({ number, state }) => number === refused && state === 'Serving');
          // A webhook in force stays: an API server that has changed its mind ends no enforcement.
          if (refused !== undefined && !isInForce) {
            const to = { type: 'transition', revision: refused, to: 'Failed' } as const;
            const reason = REASONS.webhookRefused;
            await this.#take({ ...to, reason, message: error.message }, policy, id, view, signal);
            return true;
          }
          failures.push(new Waiting(REASONS.webhookRefused, REFUSED_AGAIN_MS, error.message));
        } else if (error instanceof ApiError && REFUSALS.has(error.code)) {
          // No watch reports rights that are given later.
          failures.push(new ReconcileError(REASONS.webhookRefused, error.message, { cause: error }));
          if (step.type !== 'enforce') {
            // What comes after must not serve without being enforced.
            return false;
          }
        } else {
          throw error;
        }
      }
    }
    return false;
  }

  async #take(
    step: RolloutStep,
    policy: AdmissionPolicyObject,
    id: string,
    view: RolloutView,
    signal: AbortSignal,
  ): Promise<StepEnd> {
    const { revisions } = this.#options;
    switch (step.type) {
      case 'create':
        await revisions.create(policy, step, signal);
        this.#options.metrics?.begun(id, view.generation, performance.now());
        return 'written';
      case 'prevalidate':
        return (await this.#prevalidate(policy, id, step.revision, view, signal)) ? 'written' : 'nothing';
      case 'transition':
        await revisions.transition(this.#revision(policy, id, step.revision), step, view.now, signal);
        return 'written';
      case 'dryRun':
      case 'widen':
      case 'enforce':
        return await this.#ask(step, policy, id, view, signal);
      case 'delete':
        for (const number of step.revisions) {
          await revisions.delete(this.#revision(policy, id, number), signal);
        }
        return 'written';
      default:
        return step satisfies never;
    }
  }

  async #ask(
    step: RolloutStep & { readonly type: 'dryRun' | 'widen' | 'enforce' },
    policy: AdmissionPolicyObject,
    id: string,
    view: RolloutView,
    signal: AbortSignal,
  ): Promise<StepEnd> {
    const { namespace, webhooks } = this.#options;
    const numbers = step.type === 'widen' ? step.revisions : [step.revision];
    const declared = { snapshot: policy.spec, ownWebhook: view.ownWebhook };
    const specs = numbers.map((number) => view.revisions.find((one) => one.number === number) ?? declared);
    const matches = specs.map(({ snapshot, ownWebhook }) => matchOf(policy, snapshot, ownWebhook, namespace));
    const asked = policyReference(policy, id);
    const [match, spec] = [matches.at(-1), specs.at(-1)?.snapshot ?? policy.spec];
    if (step.type === 'dryRun') {
      if (match !== undefined) {
        await webhooks.dryRun(asked, match, spec, signal);
      }
      return 'nothing';
    }
    const isInForce = numbers.some((number) => number !== undefined);
    return STEP_ENDS[await webhooks.enforce(asked, matches, spec, isInForce, signal)];
  }

  /** Why webhook configurations that the policy waits for are not written. The webhook controller retries; the policy need not. */
  #blockedBy(policy: AdmissionPolicyObject, id: string): readonly Waiting[] {
    const { policyServer } = policyReference(policy, id);
    const { reason, message } = this.#options.webhooks.failure(policyServer) ?? {};
    if (reason === undefined) {
      return [];
    }
    const what = reason === REASONS.webhookRefused ? '' : `webhooks of PolicyServer ${policyServer} not written: `;
    return [new Waiting(reason, BLOCKED_AGAIN_MS, `${what}${message}`)];
  }

  /** Whether the result of a pre-validation was written; it may still be under way. */
  async #prevalidate(
    policy: AdmissionPolicyObject,
    id: string,
    number: number,
    view: RolloutView,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { prevalidations, revisions } = this.#options;
    const revision = this.#revision(policy, id, number);
    const facts = revisionFacts(revision);
    const { name = '', namespace } = policy.metadata;
    const request = {
      kind: policy.kind,
      metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
      spec: facts.snapshot,
    };
    const server = revision.spec.policyServer;
    const result = prevalidations.result(id, revision.metadata.uid ?? '', server, request);
    if (result === undefined) {
      return false;
    }
    await revisions.tried(revision, afterPrevalidation(facts, result, view.now), view.now, signal);
    return true;
  }

  #viewOf(policy: AdmissionPolicyObject, id: string): RolloutView {
    return policyView(this.#options, policy, id, this.#revisionsOf(policy, id), Date.now());
  }

  #revisionsOf({ metadata }: AdmissionPolicyObject, id: string): readonly PolicyRevision[] {
    return this.#options.revisions.of(id).filter(({ spec }) => spec.policy.uid === metadata.uid);
  }

  #revision(policy: AdmissionPolicyObject, id: string, number: number): PolicyRevision {
    const revision = this.#revisionsOf(policy, id).find(({ spec }) => spec.revision === number);
    if (revision === undefined) {
      throw new Error(`revision ${number} of ${id} is gone`);
    }
    return revision;
  }
}
