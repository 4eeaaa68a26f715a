// Brings one policy further: looks at how it is, does the first thing that the plan of its rollout says, and looks again.
import { ApiError, type Cluster } from '../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  ANNOTATIONS,
  type ObjectKey,
  policyId,
  type PolicyRevision,
  type PolicyServer,
  type ResourceType,
} from '../resources/index.ts';
import type { EventSink, ObjectCache, ReconcileResult } from '../runtime/index.ts';
import type { Complaints } from './complaints.ts';
import type { LifecycleMetrics } from './lifecycle-metrics.ts';
import { PolicyReports } from './policy-reports.ts';
import { annotationProblems, askedPolicy, matchOf, policyView } from './policy-view.ts';
import type { Prevalidations } from './prevalidations.ts';
import type { ReplicaDirectory } from './replicas/replica-directory.ts';
import { revisionFacts, type RevisionStore } from './revision-store.ts';
import { rollBack } from './rollbacks.ts';
import { afterPrevalidation } from './rollout/after-prevalidation.ts';
import { planRollout } from './rollout/plan-rollout.ts';
import type { Refusal } from './rollout/policy-status.ts';
import { REASONS } from './rollout/reasons.ts';
import { servingRevision } from './rollout/revision-choice.ts';
import type { RolloutSettings, RolloutStep, RolloutView } from './rollout/rollout-view.ts';
import type { AskResult, PolicyWebhooks } from './webhooks/policy-webhooks.ts';
import { WebhookRefusal } from './webhooks/webhook-trials.ts';
import { WrittenObjects } from './written-objects.ts';

/** Steps of one reconciliation: a rollout has a handful, each revision that is pruned or overtaken one more. */
const MAX_STEPS = 64;
/** When an API server is asked again that refused what it had taken before. Milliseconds. */
const REFUSED_AGAIN_MS = 30_000;
/** How an API server says that it will not have what was written, or who writes it. */
const REFUSALS: ReadonlySet<number> = new Set([400, 403, 413, 422]);
/**
 * When a policy is looked at again whose replicas have not been heard yet. Whoever hears of them tells it of PolicyServers that
 * there are; a policy may name none of these, and until everything is known of it nobody's configuration gets narrower.
 * Milliseconds.
 */
const UNHEARD_AGAIN_MS = 5_000;
/**
 * How long a policy that is gone answers after its own webhook is gone: API servers learn of that some hundred milliseconds
 * late, and one that asks about an unknown policy goes by the failurePolicy. Milliseconds.
 */
const ASKED_STILL_MS = 2_000;
/** When a plan that did not come to its end is gone on with. Milliseconds. */
const GO_ON_MS = 10;

export interface PolicyReconcilerOptions {
  readonly cluster: Cluster;
  readonly policies: Pick<ObjectCache<AdmissionPolicyObject>, 'get' | 'subscribe'>;
  readonly policyServers: ObjectCache<PolicyServer>;
  readonly revisions: RevisionStore;
  readonly webhooks: PolicyWebhooks;
  readonly replicas: ReplicaDirectory;
  readonly prevalidations: Prevalidations;
  readonly settings: RolloutSettings;
  readonly events: EventSink;
  readonly complaints: Complaints;
  readonly metrics?: LifecycleMetrics;
  /** Of the product. */
  readonly namespace: string;
  /** Whether the policies of a PolicyServer are ours to enforce; others are left alone. Default: all are. */
  readonly isOurs?: ((policyServer: string) => boolean) | undefined;
}

/** What came of a step: something was written, there was nothing to write, or what comes next has to wait. */
type Taken = 'written' | 'nothing' | 'wait';

const TAKEN: Readonly<Record<AskResult, Taken>> = { asked: 'nothing', written: 'written', later: 'wait' };

/** Why the API server does not ask as it should, and whether to try again. */
interface Trouble {
  refusal?: Refusal;
  error?: unknown;
  /** When to look again, although nothing changed. Milliseconds since 1970. */
  again?: number;
}

/** Policies of one kind. */
export class PolicyReconciler {
  readonly #kind: ResourceType<AdmissionPolicyObject>;
  readonly #options: PolicyReconcilerOptions;
  readonly #policies: WrittenObjects<AdmissionPolicyObject>;
  readonly #reports: PolicyReports;
  /** Until when policies that are gone answer, by id: those that had a webhook of their own. Milliseconds since 1970. */
  readonly #answersUntil = new Map<string, number>();

  constructor(kind: ResourceType<AdmissionPolicyObject>, options: PolicyReconcilerOptions) {
    this.#kind = kind;
    this.#options = options;
    this.#policies = new WrittenObjects(options.policies);
    this.#reports = new PolicyReports(kind, { ...options, policies: this.#policies });
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult> {
    const policy = this.#policies.get(key);
    const id = policyId({ kind: this.#kind.kind, metadata: key });
    if (policy === undefined || isBeingDeleted(policy)) {
      return await this.#end(key, id, policy, signal);
    }
    const { isOurs = () => true } = this.#options;
    if (!isOurs(policy.spec.policyServer ?? 'default')) {
      this.#options.prevalidations.cancel(id);
      this.#options.webhooks.leaveAlone(id);
      return {};
    }
    const own = this.#revisionsOf(policy, id);
    const others = this.#options.revisions.of(id).filter((revision) => !own.includes(revision));
    if (others.length > 0) {
      // Of a policy of the same name that was deleted: what is asked about is that one.
      const isServing = own.some(({ status }) => status?.state === 'Serving');
      if (!isServing && (await this.#endAsking(key, id, policy, signal)) === 'later') {
        return {};
      }
      await this.#delete(others, signal);
    }
    this.#options.complaints.about(policy, annotationProblems(policy));
    const failure = await this.#rollBack(key, policy, own, signal);
    const result = await this.#rollOut(key, id, signal);
    if (failure !== undefined) {
      throw failure;
    }
    return result;
  }

  /** Does what the policy's annotation asks for, if it has that. Why it could not: that holds up nothing else. */
  async #rollBack(
    key: ObjectKey,
    policy: AdmissionPolicyObject,
    own: readonly PolicyRevision[],
    signal: AbortSignal,
  ): Promise<ApiError | undefined> {
    if (policy.metadata.annotations?.[ANNOTATIONS.rollbackTo] === undefined) {
      return undefined;
    }
    const { cluster, events } = this.#options;
    try {
      this.#policies.wrote(key, await rollBack(cluster, this.#kind, policy, own, events, signal));
      return undefined;
    } catch (error) {
      if (error instanceof ApiError && error.code !== 409) {
        return error;
      }
      throw error;
    }
  }

  /** A policy is gone: first nobody asks any more, then nobody answers. */
  async #end(
    key: ObjectKey,
    id: string,
    policy: AdmissionPolicyObject | undefined,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const result = await this.#endAsking(key, id, policy, signal);
    if (result === 'later') {
      this.#answersUntil.set(id, Infinity);
      return {};
    }
    const known = this.#answersUntil.get(id);
    const until = result === 'written' || known === Infinity ? Date.now() + ASKED_STILL_MS : (known ?? 0);
    if (Date.now() < until) {
      this.#answersUntil.set(id, until);
      return { requeueAfterMs: until - Date.now() };
    }
    this.#answersUntil.delete(id);
    await this.#delete(this.#options.revisions.of(id), signal);
    return {};
  }

  /** The API server asks no more, and nothing is remembered. `later`: somebody tells when it is so. */
  async #endAsking(
    key: ObjectKey,
    id: string,
    policy: AdmissionPolicyObject | undefined,
    signal: AbortSignal,
  ): Promise<AskResult> {
    const { complaints, metrics, prevalidations, webhooks } = this.#options;
    prevalidations.cancel(id);
    metrics?.forget(id);
    complaints.forget({ kind: this.#kind.kind, metadata: key });
    this.#reports.forget(id);
    const policyServer = policy?.spec.policyServer ?? 'default';
    return await webhooks.dismiss({ id, kind: this.#kind.kind, key, policyServer }, signal);
  }

  async #delete(revisions: readonly PolicyRevision[], signal: AbortSignal): Promise<void> {
    for (const revision of revisions) {
      await this.#options.revisions.delete(revision, signal);
    }
  }

  async #rollOut(key: ObjectKey, id: string, signal: AbortSignal): Promise<ReconcileResult> {
    const trouble: Trouble = {};
    for (let count = 0; count < MAX_STEPS; count += 1) {
      const policy = this.#policies.get(key);
      if (policy === undefined || isBeingDeleted(policy)) {
        return {};
      }
      const view = this.#viewOf(policy, id);
      const { steps, wakeAt } = planRollout(view);
      if (!steps.some(({ type }) => type === 'foresee')) {
        this.#options.webhooks.foreseeNothing(askedPolicy(policy, id));
      }
      if (!(await this.#takeFirst(steps, policy, id, view, trouble, signal))) {
        if (!steps.some(({ type }) => type === 'prevalidate')) {
          // Nobody wants to know any more.
          this.#options.prevalidations.cancel(id);
        }
        if (view.replicas !== undefined && servingRevision(view) === undefined) {
          this.#options.webhooks.know(id);
        }
        const again = await this.#reports.tell(policy, this.#viewOf(policy, id), trouble.refusal, signal);
        if (trouble.error !== undefined) {
          throw trouble.error;
        }
        const unheard = view.replicas === undefined ? view.now + UNHEARD_AGAIN_MS : undefined;
        const times = [again, wakeAt, trouble.again, unheard].filter((time) => time !== undefined);
        return times.length === 0 ? {} : { requeueAfterMs: Math.max(1, Math.min(...times) - Date.now()) };
      }
    }
    return { requeueAfterMs: GO_ON_MS };
  }

  /** Does the first step that has something to write. Whether one had. */
  async #takeFirst(
    steps: readonly RolloutStep[],
    policy: AdmissionPolicyObject,
    id: string,
    view: RolloutView,
    trouble: Trouble,
    signal: AbortSignal,
  ): Promise<boolean> {
    for (const step of steps) {
      try {
        const taken = await this.#take(step, policy, id, view, signal);
        if (taken !== 'nothing') {
          return taken === 'written';
        }
      } catch (error) {
        const isWebhook = step.type === 'foresee' || step.type === 'widen' || step.type === 'enforce';
        if (isWebhook && error instanceof WebhookRefusal) {
          const refused = step.type === 'widen' ? step.revisions.at(-1) : step.revision;
          const isInForce =
            view.isAsked && view.revisions.some(({ number, state }) => number === refused && state === 'Serving');
          // What is asked about already stays: an API server that has changed its mind ends no enforcement.
          if (refused !== undefined && !isInForce) {
            const to = { type: 'transition', revision: refused, to: 'Failed' } as const;
            const reason = REASONS.webhookRefused;
            await this.#take({ ...to, reason, message: error.message }, policy, id, view, signal);
            return true;
          }
          trouble.refusal = { reason: REASONS.webhookRefused, message: error.message };
          trouble.again = view.now + REFUSED_AGAIN_MS;
        } else if (isWebhook && error instanceof ApiError && REFUSALS.has(error.code)) {
          // Nothing tells of rights that are given later.
          trouble.refusal = { reason: REASONS.webhookRefused, message: error.message };
          trouble.error = error;
          if (step.type !== 'enforce') {
            // What comes after must not serve unasked.
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
  ): Promise<Taken> {
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
      case 'foresee':
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
    step: RolloutStep & { readonly type: 'foresee' | 'widen' | 'enforce' },
    policy: AdmissionPolicyObject,
    id: string,
    view: RolloutView,
    signal: AbortSignal,
  ): Promise<Taken> {
    const { namespace, webhooks } = this.#options;
    const numbers = step.type === 'widen' ? step.revisions : [step.revision];
    const declared = { snapshot: policy.spec, ownWebhook: view.ownWebhook };
    const specs = numbers.map((number) => view.revisions.find((one) => one.number === number) ?? declared);
    const matches = specs.map(({ snapshot, ownWebhook }) => matchOf(policy, snapshot, ownWebhook, namespace));
    const asked = askedPolicy(policy, id);
    const [match, spec] = [matches.at(-1), specs.at(-1)?.snapshot ?? policy.spec];
    if (step.type === 'foresee') {
      if (match !== undefined) {
        await webhooks.foresee(asked, match, spec, signal);
      }
      return 'nothing';
    }
    const isInForce = numbers.some((number) => number !== undefined);
    return TAKEN[await webhooks.ask(asked, matches, spec, isInForce, signal)];
  }

  /** Whether the result of a trial was written; it may still be under way. */
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

/** Whether somebody else's finalizer keeps it for a while. */
function isBeingDeleted({ metadata }: AdmissionPolicyObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}
