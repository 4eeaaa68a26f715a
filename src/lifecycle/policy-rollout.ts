// Rolls out one policy: executes the first step of its plan that has something to write, then plans again.
import type {
  AdmissionPolicyObject,
  AdmissionPolicySpec,
  ObjectKey,
  PolicyRevision,
  PolicyServerObject,
} from '../resources/index.ts';
import { movedModules, type PrevalidationResult } from '../control/index.ts';
import {
  type ObjectCache,
  type ReconcileResult,
  Waiting,
  worstFailure,
  type WrittenObjects,
} from '../runtime/index.ts';
import { errorText } from '../values/index.ts';
import type { LifecycleMetrics } from './lifecycle-metrics.ts';
import { policyReference, matchOf, gatherRolloutView } from './gather-rollout-view.ts';
import type { Prevalidations } from './prevalidations.ts';
import type { ReplicaDirectory } from './replicas/replica-directory.ts';
import {
  afterPrevalidation,
  answeringRevision,
  creation,
  isFailurePolicyInForce,
  planRollout,
  REASONS,
  revisionFacts,
  type RevisionStore,
  type RolloutSettings,
  type RolloutStep,
  servingRevision,
} from '../rollout/index.ts';
import type { AdmissionRolloutView } from './rollout/admission-rollout-view.ts';
import { inheritedValidation } from './rollout/inherited-validation.ts';
import { afterError } from './rollout/error-rules.ts';
import { isCovered, waitingFor, type WebhookState } from './rollout/webhook-state.ts';
import type { PolicyWebhooks } from './webhooks/policy-webhooks.ts';

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

/** A policy, and the view by which it was planned. */
interface PlannedPolicy {
  readonly policy: AdmissionPolicyObject;
  readonly id: string;
  readonly view: AdmissionRolloutView;
  readonly signal: AbortSignal;
}

/** Steps of one type. */
type StepOf<Type extends RolloutStep['type']> = RolloutStep & { readonly type: Type };

export class PolicyRollout {
  readonly #options: PolicyRolloutOptions;

  constructor(options: PolicyRolloutOptions) {
    this.#options = options;
  }

  /**
   * @param failures that do not stop further steps: those of earlier steps, and of the plan
   * @throws ReconcileError, ApiError, ClusterError
   */
  async run(key: ObjectKey, id: string, failures: unknown[], signal: AbortSignal): Promise<ReconcileResult> {
    const { policies, prevalidations, webhooks } = this.#options;
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
      if (!(await this.#executeFirst(steps, { policy, id, view, signal }, failures))) {
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
  async #executeFirst(steps: readonly RolloutStep[], planned: PlannedPolicy, failures: unknown[]): Promise<boolean> {
    for (const step of steps) {
      try {
        const result = await this.#execute(step, planned);
        if (result === 'written') {
          return true;
        }
        if (result !== 'unchanged' && (result.state === 'Pending' || result.state === 'Failing')) {
          // Further steps have to wait for the webhook.
          failures.push(...(result.state === 'Failing' ? [waitingFor(result)] : []));
          return false;
        }
      } catch (error) {
        const { effect, failure } = afterError(step.type, error);
        if (effect === 'end') {
          throw failure;
        }
        if (effect === 'fail the revision' && (await this.#fail(step, planned, errorText(error)))) {
          return true;
        }
        failures.push(
          effect === 'go on' ? failure : new Waiting(REASONS.webhookRefused, REFUSED_RETRY_MS, errorText(error)),
        );
      }
    }
    return false;
  }

  /**
   * Fails the revision whose webhook is refused. One in force stays: a later refusal, as after an upgrade of the API server, does not
   * end enforcement.
   * @returns whether the revision has failed
   */
  async #fail(step: RolloutStep, planned: PlannedPolicy, message: string): Promise<boolean> {
    const number = 'revisions' in step ? step.revisions.at(-1) : 'revision' in step ? step.revision : undefined;
    const isServing = planned.view.revisions.some((one) => one.number === number && one.state === 'Serving');
    if (number === undefined || (isServing && isCovered(planned.view))) {
      return false;
    }
    const reason = REASONS.webhookRefused;
    await this.#execute({ type: 'transition', revision: number, to: 'Failed', reason, message }, planned);
    return true;
  }

  async #execute(step: RolloutStep, planned: PlannedPolicy): Promise<StepResult> {
    const { metrics, revisions, webhooks } = this.#options;
    const { policy, id, view, signal } = planned;
    switch (step.type) {
      case 'create':
        await revisions.create(policy, policy.spec.policyServer ?? 'default', step, signal);
        metrics?.rolloutStarted(id, view.generation, performance.now());
        return 'written';
      case 'refresh':
        return await this.#refresh(step, planned);
      case 'prevalidate':
        return await this.#prevalidate(step, planned);
      case 'inherit':
        return await this.#inherit(step, planned);
      case 'transition': {
        const revision = this.#revision(planned, step.revision);
        await revisions.transition(revision, step, isFailurePolicyInForce(view), view.now, signal);
        return 'written';
      }
      case 'setEnforced':
        await revisions.setEnforced(this.#revision(planned, step.revision), step.isEnforced, signal);
        return 'written';
      case 'uncover':
        return await webhooks.enforce(policyReference(policy, id), [], policy.spec, false, signal);
      case 'dryRun':
      case 'widen':
      case 'enforce':
        return await this.#updateWebhooks(step, planned);
      case 'delete':
        for (const number of step.revisions) {
          await revisions.delete(this.#revision(planned, number), signal);
        }
        return 'written';
      default:
        return step satisfies never;
    }
  }

  async #updateWebhooks(step: StepOf<'dryRun' | 'widen' | 'enforce'>, planned: PlannedPolicy): Promise<StepResult> {
    const { namespace, webhooks } = this.#options;
    const { policy, id, view, signal } = planned;
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

  /** Writes the result of a pre-validation, unless it is still under way. */
  async #prevalidate(step: StepOf<'prevalidate'>, planned: PlannedPolicy): Promise<StepResult> {
    const revision = this.#revision(planned, step.revision);
    const result = this.#prevalidationResult(revision, planned, revision.metadata.uid ?? '');
    if (result === undefined) {
      return 'unchanged';
    }
    return await this.#validated(
      revision,
      afterPrevalidation(revisionFacts<AdmissionPolicySpec>(revision), result, planned.view.now),
      planned,
    );
  }

  async #inherit(step: StepOf<'inherit'>, planned: PlannedPolicy): Promise<StepResult> {
    const revision = this.#revision(planned, step.revision);
    const base = revisionFacts<AdmissionPolicySpec>(this.#revision(planned, step.from));
    return await this.#validated(
      revision,
      inheritedValidation(revisionFacts<AdmissionPolicySpec>(revision), base),
      planned,
    );
  }

  async #validated(
    revision: PolicyRevision,
    validation: Parameters<RevisionStore['recordPrevalidation']>[1],
    { view, signal }: PlannedPolicy,
  ): Promise<StepResult> {
    const { revisions } = this.#options;
    await revisions.recordPrevalidation(revision, validation, isFailurePolicyInForce(view), view.now, signal);
    return 'written';
  }

  /**
   * Handles a refresh with the modules of a pre-validation. After a failure, a new revision shows it and retries, while the
   * one that serves serves on.
   */
  async #refresh({ revision: number, refresh }: StepOf<'refresh'>, planned: PlannedPolicy): Promise<StepResult> {
    const revision = this.#revision(planned, number);
    const result = this.#prevalidationResult(revision, planned, `${revision.metadata.uid ?? ''} ${refresh}`);
    if (result === undefined) {
      return 'unchanged';
    }
    if (!result.ok || movedModules(revisionFacts<AdmissionPolicySpec>(revision).modules, result.modules).length > 0) {
      return await this.#execute(creation(planned.view), planned);
    }
    await this.#options.revisions.recordRefresh(revision, refresh, planned.signal);
    return 'written';
  }

  /** The result of a pre-validation of a revision, see {@link Prevalidations.result}. */
  #prevalidationResult(
    revision: PolicyRevision,
    planned: PlannedPolicy,
    purpose: string,
  ): PrevalidationResult | undefined {
    const { kind, metadata } = planned.policy;
    const { name = '', namespace } = metadata;
    const answering = answeringRevision(planned.view);
    const serving = answering && this.#revision(planned, answering.number).metadata.uid;
    return this.#options.prevalidations.result(planned.id, purpose, revision.spec.policyServer, {
      kind,
      metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
      spec: revisionFacts<AdmissionPolicySpec>(revision).snapshot,
      ...(serving === undefined ? {} : { serving }),
    });
  }

  #viewOf(policy: AdmissionPolicyObject, id: string): AdmissionRolloutView {
    return gatherRolloutView(this.#options, policy, id, this.#options.revisions.ofPolicy(policy, id), Date.now());
  }

  #revision({ policy, id }: PlannedPolicy, number: number): PolicyRevision {
    const revision = this.#options.revisions.ofPolicy(policy, id).find(({ spec }) => spec.revision === number);
    if (revision === undefined) {
      throw new Error(`revision ${number} of ${id} does not exist any more`);
    }
    return revision;
  }
}
