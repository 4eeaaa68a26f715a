// The revisions of Policies: makes one of each change, validates it, and lets it serve, or the last good one.
import type { Cluster } from '../../../cluster/index.ts';
import {
  ANNOTATIONS,
  keyOf,
  keyText,
  MAX_WARNING_LENGTH,
  type ObjectKey,
  POLICIES,
  type Policy,
  policyId,
  type PolicyRevision,
  type Readiness,
} from '../../../resources/index.ts';
import {
  type EventSink,
  type ObjectCache,
  type ReconcileAttempt,
  type ReconcileResult,
  withStatus,
  WrittenObjects,
} from '../../../runtime/index.ts';
import {
  afterPrevalidation,
  goalRevision,
  hasServed,
  planRollout,
  rollBack,
  type RevisionFacts,
  RevisionStore,
  type RolloutStep,
  servingRevision,
} from '../../../rollout/index.ts';
import { shortened } from '../../../values/index.ts';
import type { DependencyWarningsOptions } from '../admission/dependency-warnings.ts';
import { prevalidatePolicy, templateDigests } from './policy-prevalidation.ts';
import { type PolicyRolloutView, policyView } from './policy-view.ts';
import { DECLARED_POLICIES, type ServedPolicies, type ServedPolicy } from './served-policies.ts';

/** Steps of one reconciliation: a rollout has a handful, and one for each revision that is pruned or superseded. */
const MAX_STEPS = 64;
/** Delay before a plan with more steps continues. Milliseconds. */
const CONTINUE_MS = 10;
const KIND = POLICIES.kind;

export interface PolicyRevisionsOptions {
  readonly cluster: Cluster;
  readonly policies: ObjectCache<Policy>;
  readonly revisions: ObjectCache<PolicyRevision>;
  /** The namespace of the product, with the revisions. */
  readonly namespace: string;
  readonly events: EventSink;
  /** Whether Policies of a namespace count. Others have no revisions: who writes them could fill the namespace of the product. */
  readonly isGoverned: (namespace: string) => boolean;
  /** What validation asks. */
  readonly checks: DependencyWarningsOptions;
  /** Called after the rollout of a Policy was reconciled. */
  readonly changed: (root: ObjectKey) => void;
}

/** Reconciles the revisions of Policies that are no copies. */
export class PolicyRevisions implements ServedPolicies {
  readonly #options: PolicyRevisionsOptions;
  readonly #store: RevisionStore;
  readonly #policies: WrittenObjects<Policy>;
  /** Why the last reconciliation of a Policy failed. */
  readonly #failures = new Map<string, Readiness>();

  constructor(options: PolicyRevisionsOptions) {
    const { cluster, revisions: cache, namespace } = options;
    this.#options = options;
    this.#store = new RevisionStore({ cluster, cache, namespace });
    this.#policies = new WrittenObjects(options.policies);
  }

  of(root: Policy): ServedPolicy | undefined {
    return this.#isKept(root.metadata) ? servedBy(root, this.#viewOf(root)) : DECLARED_POLICIES.of(root);
  }

  /** The rollout of a Policy; undefined where it has no revisions, because its namespace does not count. */
  rolloutOf(root: Policy): RootRollout | undefined {
    if (!this.#isKept(root.metadata)) {
      return undefined;
    }
    const view = this.#viewOf(root);
    return { view, served: servedBy(root, view), failure: this.#failures.get(keyText(keyOf(root))) };
  }

  #isKept({ namespace = '' }: Pick<ObjectKey, 'namespace'>): boolean {
    return this.#options.isGoverned(namespace);
  }

  #viewOf(root: Policy): PolicyRolloutView {
    return policyView(root, this.#store.ofPolicy(root, policyId(root)), Date.now());
  }

  async reconcile(key: ObjectKey, signal: AbortSignal, attempt: ReconcileAttempt): Promise<ReconcileResult> {
    return await withStatus(
      attempt,
      async (failure) => this.#record(key, failure),
      async () => await this.#reconcile(key, signal),
    );
  }

  #record(key: ObjectKey, failure: Readiness | undefined): ReconcileResult {
    if (failure === undefined) {
      this.#failures.delete(keyText(key));
    } else {
      this.#failures.set(keyText(key), failure);
    }
    this.#options.changed(key);
    return {};
  }

  async #reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult> {
    const id = policyId({ kind: KIND, metadata: key });
    const root = this.#isKept(key) ? this.#policies.get(key) : undefined;
    if (root?.metadata.deletionTimestamp !== undefined) {
      return {};
    }
    await this.#removeOthers(root, id, signal);
    if (root === undefined) {
      return {};
    }
    await this.#rollBack(key, root, id, signal);
    return await this.#rollOut(key, id, signal);
  }

  /**
   * Removes the revisions of a deleted Policy, of this or of the same name, of one whose namespace no longer counts, and those that the
   * controller cannot have written.
   */
  async #removeOthers(root: Policy | undefined, id: string, signal: AbortSignal): Promise<void> {
    const own = root === undefined ? [] : this.#store.ofPolicy(root, id);
    for (const revision of this.#store.of(id).filter((one) => !own.includes(one))) {
      await this.#store.delete(revision, signal);
    }
  }

  async #rollBack(key: ObjectKey, root: Policy, id: string, signal: AbortSignal): Promise<void> {
    if (root.metadata.annotations?.[ANNOTATIONS.rollbackTo] !== undefined) {
      const { cluster, events } = this.#options;
      const own = this.#store.ofPolicy(root, id);
      this.#policies.recordWrite(key, await rollBack(cluster, POLICIES, root, own, events, signal));
    }
  }

  async #rollOut(key: ObjectKey, id: string, signal: AbortSignal): Promise<ReconcileResult> {
    for (let count = 0; count < MAX_STEPS; count += 1) {
      const root = this.#policies.get(key);
      if (root === undefined) {
        return {};
      }
      const view = this.#viewOf(root);
      const { steps, wakeAt } = planRollout(view);
      const step = steps.find(({ type }) => !OF_ADMISSION.has(type));
      if (step === undefined) {
        return wakeAt === undefined ? {} : { requeueAfterMs: Math.max(1, wakeAt - Date.now()) };
      }
      await this.#execute(step, { root, id, view }, signal);
    }
    return { requeueAfterMs: CONTINUE_MS };
  }

  async #execute(step: RolloutStep, planned: PlannedRoot, signal: AbortSignal): Promise<void> {
    const { root, view } = planned;
    switch (step.type) {
      case 'create':
        await this.#store.create(root, '', step, signal);
        break;
      case 'prevalidate':
        await this.#prevalidate(step.revision, planned, signal);
        break;
      case 'inherit': {
        const { modules } = factsOf(view, step.from);
        await this.#validated(step.revision, planned, { ok: true, modules, warnings: [] }, signal);
        break;
      }
      case 'transition':
        await this.#store.transition(this.#revision(planned, step.revision), step, true, view.now, signal);
        break;
      case 'delete':
        for (const number of step.revisions) {
          await this.#store.delete(this.#revision(planned, number), signal);
        }
        break;
      default:
        throw new Error(`a Policy has no step ${step.type}`);
    }
  }

  async #prevalidate(number: number, planned: PlannedRoot, signal: AbortSignal): Promise<void> {
    const { root, view } = planned;
    const outcome = prevalidatePolicy({ ...root, spec: factsOf(view, number).snapshot }, this.#options.checks);
    await this.#validated(number, planned, outcome, signal);
  }

  /**
   * Writes the result of a validation. What is valid serves at once, because nothing has to load it. So does what is not, while
   * nothing has ever served: there is nothing to keep, and the status of its copies says what is wrong.
   */
  async #validated(
    number: number,
    planned: PlannedRoot,
    outcome: ReturnType<typeof prevalidatePolicy>,
    signal: AbortSignal,
  ): Promise<void> {
    const { root, view } = planned;
    const revision = factsOf(view, number);
    const accepted =
      outcome.ok || hasServed(view)
        ? outcome
        : ({
            ok: true,
            modules: templateDigests(root),
            warnings: [shortened(outcome.message, MAX_WARNING_LENGTH)],
          } as const);
    const validation = afterPrevalidation(revision, accepted, view.now);
    const isServing = accepted.ok && goalRevision(view) === revision;
    const order = Math.max(...view.revisions.map((one) => one.order)) + 1;
    const stored = this.#revision(planned, number);
    await this.#store.recordPrevalidation(stored, validation, true, view.now, signal, isServing ? order : undefined);
  }

  #revision({ root, id }: PlannedRoot, number: number): PolicyRevision {
    const revision = this.#store.ofPolicy(root, id).find(({ spec }) => spec.revision === number);
    if (revision === undefined) {
      throw new Error(`revision ${number} of ${id} does not exist any more`);
    }
    return revision;
  }
}

/** What is known of the rollout of a Policy. */
export interface RootRollout {
  readonly view: PolicyRolloutView;
  /** Undefined while nothing is applied. */
  readonly served: ServedPolicy | undefined;
  /** Why the last reconciliation of its revisions failed. */
  readonly failure: Readiness | undefined;
}

function servedBy(root: Policy, view: PolicyRolloutView): ServedPolicy | undefined {
  const serving = servingRevision(view);
  return serving && { policy: { ...root, spec: serving.snapshot }, revision: serving.number };
}

/** A Policy, and the view by which it was planned. */
interface PlannedRoot {
  readonly root: Policy;
  readonly id: string;
  readonly view: PolicyRolloutView;
}

/** Steps of webhooks and modules, which a Policy has none of. */
const OF_ADMISSION: ReadonlySet<RolloutStep['type']> = new Set([
  'dryRun',
  'widen',
  'enforce',
  'uncover',
  'setEnforced',
  'refresh',
]);

function factsOf({ revisions }: PolicyRolloutView, number: number): RevisionFacts<Policy['spec']> {
  const found = revisions.find((one) => one.number === number);
  if (found === undefined) {
    throw new Error(`revision ${number} is not in the plan`);
  }
  return found;
}
