// Evaluates a ConfigurationPolicy, enforces it, and prunes its related objects.
import type { Cluster } from '../../../cluster/index.ts';
import {
  CONFIGURATION_POLICIES,
  type ConfigurationPolicy,
  findCondition,
  keyOf,
  keyText,
  type KubernetesObject,
  type ObjectKey,
  PRUNE_FINALIZER,
  READY,
  type Readiness,
  type RelatedObject,
} from '../../../resources/index.ts';
import {
  type EventSink,
  type LastStep,
  type ObjectCache,
  type ReconcileAttempt,
  type ReconcileResult,
  type ReconcileStep,
  runSteps,
  Waiting,
  withStatus,
} from '../../../runtime/index.ts';
import type { Logger } from '../../../log/index.ts';
import { listed } from '../../../values/index.ts';
import {
  objectDiff,
  objectEntry,
  type ObjectPlan,
  relatedKey,
  type ObjectTemplatePlan,
} from '../../configuration/index.ts';
import {
  type ConfigurationStatus,
  type CustomMessage,
  evaluatedStatus,
  type ConfigurationEvaluation,
  reportOf,
  unevaluatedStatus,
} from '../../evaluation/configuration-status.ts';
import type { PlannedEvaluation } from '../../evaluation/evaluation-jobs.ts';
import type { EvaluatedSpec, EvaluationLanes, RunJob } from '../../evaluation/evaluation-lanes.ts';
import { EvaluationObjects } from '../../evaluation/evaluation-objects.ts';
import type { KindMappings } from '../../objects/kind-mappings.ts';
import type { MissingKinds } from '../../objects/missing-kinds.ts';
import type { ObjectReader, ReadSelection } from '../../objects/watched-kinds.ts';
import { OwnObjects } from '../../policy/own-objects.ts';
import { POLICY_REASONS } from '../../policy/policy-reasons.ts';
import { prunedText } from '../../policy/pruned-text.ts';
import { SUSPENDED_ANNOTATION } from '../template-sync/template-object.ts';
import { foreseenObjects } from '../../evaluation/resolved-policy.ts';
import { ContestedObjects } from './contested-objects.ts';
import { withCreatedObjects } from './created-objects.ts';
import { type Due, EvaluationSchedule, intervalOf } from './evaluation-schedule.ts';
import { ObjectCreations } from './object-creations.ts';
import { KnownDryRuns, ObjectWriter } from './object-writer.ts';
import { droppedObjects, mayPrune, pruneFailureText, Pruning, prunes } from './pruning.ts';

/** Delay before a retry of a deletion that was refused, or that a finalizer delays. Milliseconds. */
const PRUNE_RETRY_MS = 10_000;
/** Time for the last write of an evaluation that ends early: below the time that a shutdown has. Milliseconds. */
const RECORD_MS = 2_000;
/** Objects and templates whose status is computed here, in a few milliseconds; a thread computes that of more. */
const MAX_REPORTED_HERE = 500;
/** Objects that a message lists. */
const MAX_LISTED = 5;

export interface ConfigurationOptions {
  readonly cluster: Cluster;
  /** The cluster as the governance account. */
  readonly governed: Cluster;
  readonly policies: ObjectCache<ConfigurationPolicy>;
  readonly mappings: KindMappings;
  readonly reader: ObjectReader;
  readonly missing: MissingKinds;
  readonly namespaces: Pick<ObjectCache, 'list'>;
  /** Of all policies that are evaluated in this process. */
  readonly evaluations: EvaluationLanes;
  readonly ownerOf: (policy: ConfigurationPolicy) => string;
  /** Enqueues a policy. */
  readonly wake: (key: ObjectKey) => void;
  /** Whether the namespace of the cluster, or the kind, is being deleted: policies are then deleted without pruning. */
  readonly isRemoved: () => boolean;
  readonly events: EventSink;
  readonly log: Logger;
  /** Whether differences in statuses are complete. Default: false. */
  readonly fullDiffs?: boolean;
}

/** State of one pass, shared by its steps. */
interface Subject {
  readonly key: ObjectKey;
  readonly policy: ConfigurationPolicy | undefined;
  /** The status to write at the end of the pass; undefined to keep the stored one. */
  status: ConfigurationStatus | undefined;
  /** Whether the status is that of an evaluation. */
  isEvaluated: boolean;
}

/** Reconciles ConfigurationPolicies in the namespace of the cluster. */
export class ConfigurationReconciler {
  readonly #options: ConfigurationOptions;
  readonly #policies: OwnObjects<ConfigurationPolicy>;
  readonly #schedule = new EvaluationSchedule();
  readonly #contested = new ContestedObjects();
  readonly #dryRuns = new Map<string, KnownDryRuns>();
  readonly #pruning: Pruning;
  readonly #steps: readonly ReconcileStep<Subject>[] = [
    (subject) => this.#forget(subject),
    (subject, signal) => this.#finish(subject, signal),
    (subject) => this.#suspend(subject),
    (subject, signal) => this.#guard(subject, signal),
    (subject, signal) => this.#evaluate(subject, signal),
  ];

  constructor(options: ConfigurationOptions) {
    this.#options = options;
    this.#policies = new OwnObjects(options.cluster, options.policies);
    this.#pruning = new Pruning(options);
  }

  async reconcile(key: ObjectKey, signal: AbortSignal, attempt: ReconcileAttempt): Promise<ReconcileResult> {
    const subject: Subject = { key, policy: this.#policies.get(key), status: undefined, isEvaluated: false };
    return await withStatus(
      attempt,
      async (failure, stopped) => await this.#writeStatus(subject, failure, stopped),
      async () => await runSteps(this.#steps, subject, signal),
    );
  }

  #forget({ key, policy }: Subject): LastStep | void {
    if (policy === undefined) {
      this.#release(key);
      this.#schedule.forget(key, Date.now());
      this.#dryRuns.delete(keyText(key));
      return { isLast: true };
    }
  }

  /** Prunes the related objects of a deleted policy, then removes the finalizer. */
  async #finish(subject: Subject, signal: AbortSignal): Promise<LastStep | void> {
    const { key, policy } = subject;
    if (policy?.metadata.deletionTimestamp === undefined) {
      return;
    }
    this.#release(key);
    if (policy.metadata.finalizers?.includes(PRUNE_FINALIZER) === true) {
      if (!this.#options.isRemoved()) {
        const related = (policy.status?.relatedObjects ?? []).filter((object) => mayPrune(policy, object));
        await this.#prune(subject, policy, related, [], signal);
      }
      await this.#policies.setFinalizer(this.#policies.get(key) ?? policy, PRUNE_FINALIZER, false, signal);
    }
    return { isLast: true };
  }

  #suspend(subject: Subject): LastStep | void {
    const { key, policy } = subject;
    const reason = policy?.metadata.annotations?.[SUSPENDED_ANNOTATION];
    if (policy !== undefined && reason !== undefined) {
      this.#release(key);
      const readiness = { state: 'reconciling', reason: POLICY_REASONS.suspended, message: reason } as const;
      subject.status = unevaluatedStatus(policy, 'Pending', readiness, Date.now());
      return { isLast: true };
    }
  }

  /** Adds the finalizer before anything is written, and removes it when nothing is to be pruned. */
  async #guard({ policy }: Subject, signal: AbortSignal): Promise<void> {
    if (policy !== undefined) {
      const isWanted = policy.spec.pruneObjectBehavior !== 'None';
      await this.#policies.setFinalizer(policy, PRUNE_FINALIZER, isWanted, signal);
    }
  }

  async #evaluate(subject: Subject, signal: AbortSignal): Promise<ReconcileResult> {
    const { key } = subject;
    const policy = this.#policies.get(key);
    if (policy === undefined) {
      return {};
    }
    const { evaluations, wake } = this.#options;
    const spec = this.#specOf(policy);
    const due = evaluations.isPending(spec) ? DUE : this.#schedule.take(key, policy, Date.now());
    if (!due.isDue) {
      return due.afterMs === undefined ? {} : { requeueAfterMs: due.afterMs };
    }
    const work = {
      run: async (run: RunJob, limit: AbortSignal) => await this.#plan(policy, run, limit),
      wake: () => wake(key),
    };
    const evaluated = await evaluations.evaluate(spec, work, signal);
    switch (evaluated.state) {
      case 'later':
        return evaluated.afterMs === undefined ? {} : { requeueAfterMs: evaluated.afterMs };
      case 'ended':
        return this.#endedEvaluation(subject, policy, evaluated.reason, evaluated.retryAfterMs);
      case 'done':
        return await this.#carryOut(subject, policy, evaluated.result, signal);
      default:
        return evaluated satisfies never;
    }
  }

  #specOf(policy: ConfigurationPolicy): EvaluatedSpec {
    const { generation } = policy.metadata;
    return { kind: CONFIGURATION_POLICIES.kind, key: keyOf(policy), generation, owner: this.#options.ownerOf(policy) };
  }

  async #plan(policy: ConfigurationPolicy, run: RunJob, signal: AbortSignal): Promise<Planned> {
    const { mappings, reader, missing, namespaces, fullDiffs: hasFullDiffs = false } = this.#options;
    const key = keyOf(policy);
    const objects = new EvaluationObjects({
      key,
      mappings,
      reader,
      missing,
      namespaces: () => namespaces.list(),
      foreseen: foreseenObjects(policy),
    });
    const planned = await objects.evaluate(() => run('plan', { policy, hasFullDiffs }, objects), signal);
    return { evaluation: withLive(planned, objects), objects };
  }

  /** The policy is not compliant, because nothing shows that it is. */
  #endedEvaluation(
    subject: Subject,
    policy: ConfigurationPolicy,
    reason: string,
    retryAfterMs: number,
  ): ReconcileResult {
    const readiness = { state: 'reconciling', reason: POLICY_REASONS.ended, message: reason } as const;
    const ended = this.#withRecorded(subject.key, policy);
    subject.status = evaluatedStatus(ended, { failure: reason }, readiness, Date.now(), WITHOUT_MESSAGE);
    subject.isEvaluated = true;
    return { requeueAfterMs: retryAfterMs };
  }

  async #carryOut(
    subject: Subject,
    policy: ConfigurationPolicy,
    { evaluation: planned, objects }: Planned,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { key } = subject;
    const enforced = await this.#enforce(key, policy, planned, signal);
    const { evaluation, retryAfterMs } = enforced;
    const recorded = this.#withRecorded(key, policy);
    const status = await this.#statusOf(recorded, evaluation, readinessOf(objects, enforced));
    await this.#pruneDropped(subject, policy, status, objects.selections, signal);
    subject.status = status;
    subject.isEvaluated = true;
    return this.#next(key, policy, status, retryAfterMs, objects);
  }

  /** The status, with the custom message if its templates can be resolved. */
  async #statusOf(
    policy: ConfigurationPolicy,
    evaluation: ConfigurationEvaluation,
    readiness: Readiness,
  ): Promise<ConfigurationStatus> {
    const now = Date.now();
    if (policy.spec.customMessage === undefined && countOf(evaluation) <= MAX_REPORTED_HERE) {
      return evaluatedStatus(policy, evaluation, readiness, now);
    }
    const input = { policy, evaluation: reportOf(evaluation), readiness, now };
    return (
      (await this.#options.evaluations.quick(this.#specOf(policy), 'status', input)) ??
      evaluatedStatus(policy, evaluation, readiness, now, WITHOUT_MESSAGE)
    );
  }

  async #enforce(
    key: ObjectKey,
    policy: ConfigurationPolicy,
    evaluation: ConfigurationEvaluation,
    signal: AbortSignal,
  ): Promise<Enforced> {
    if (!('plans' in evaluation)) {
      return { evaluation, rivals: new Set(), unread: [], unproven: [], retryAfterMs: undefined };
    }
    const dryRuns = this.#dryRuns.get(keyText(key)) ?? new KnownDryRuns();
    this.#dryRuns.set(keyText(key), dryRuns);
    const { governed } = this.#options;
    const plans: ObjectTemplatePlan[] = [];
    const creations = new ObjectCreations({
      policy,
      plans: evaluation.plans,
      record: async (entries) => await this.#record(policy, [...creationsAmong(plans), ...entries], signal),
    });
    const writer = new ObjectWriter({
      governed,
      contested: this.#contested,
      policy: key.name,
      creations,
      dryRuns,
    });
    const rivals = new Set<string>();
    const retries: number[] = [];
    try {
      for (const template of evaluation.plans) {
        const done: ObjectPlan[] = [];
        plans.push({ ...template, objects: done });
        for (const planned of template.objects) {
          const { plan, rival, retryAfterMs } = await writer.carryOut(planned, signal);
          done.push(plan);
          if (rival !== undefined) {
            rivals.add(rival);
          }
          if (retryAfterMs !== undefined) {
            retries.push(retryAfterMs);
          }
          this.#log(key, plan.live, plan.desired, plan.settings.diffRecord, plan.verdict);
        }
      }
    } catch (error) {
      await this.#recordCreations(this.#withRecorded(key, policy), creationsAmong(plans));
      throw error;
    }
    dryRuns.sweep();
    const created = await withCreatedObjects(policy, plans, governed, signal);
    const { unread, unproven } = prunes(policy) ? created : { unread: [], unproven: [] };
    retries.push(...(unread.length === 0 ? [] : [PRUNE_RETRY_MS]));
    return {
      evaluation: { plans: created.plans },
      rivals,
      unread,
      unproven,
      retryAfterMs: retries.length === 0 ? undefined : Math.min(...retries),
    };
  }

  /** What was created before an evaluation ended early, as at a shutdown: later, nothing would prove it. */
  async #recordCreations(policy: ConfigurationPolicy, entries: readonly RelatedObject[]): Promise<void> {
    if (prunes(policy) && entries.length > 0) {
      await this.#record(policy, entries, AbortSignal.timeout(RECORD_MS)).catch(() => undefined);
    }
  }

  /** Writes entries of related objects to the status, before what they say is done. */
  async #record(policy: ConfigurationPolicy, entries: readonly RelatedObject[], signal: AbortSignal): Promise<void> {
    await this.#policies.writeStatus(policy, withEntries(policy, entries), signal);
  }

  /** The policy with the status that was written during the evaluation. */
  #withRecorded(key: ObjectKey, policy: ConfigurationPolicy): ConfigurationPolicy {
    const { status } = this.#policies.get(key) ?? policy;
    return status === undefined ? policy : { ...policy, status };
  }

  /** Deletes related objects that an edit removed from the policy. */
  async #pruneDropped(
    subject: Subject,
    policy: ConfigurationPolicy,
    status: ConfigurationStatus,
    selections: readonly ReadSelection[],
    signal: AbortSignal,
  ): Promise<void> {
    const { metadata, status: before } = policy;
    const isEdited = before?.lastEvaluatedGeneration !== metadata.generation;
    if (isEdited && prunes(policy)) {
      const dropped = droppedObjects(policy, before?.relatedObjects ?? [], status.relatedObjects ?? []);
      // A status before that of the evaluation must not lose what the evaluation created.
      const created = (status.relatedObjects ?? []).filter(({ properties }) => properties?.createdByPolicy === true);
      const recorded = { ...policy, status: withEntries(policy, created) };
      await this.#prune(subject, recorded, dropped, selections, signal);
    }
  }

  /**
   * Announces deletions, and deletes.
   * @param selections what else the policy reads
   * @throws Waiting while some objects still exist
   */
  async #prune(
    subject: Subject,
    policy: ConfigurationPolicy,
    objects: readonly RelatedObject[],
    selections: readonly ReadSelection[],
    signal: AbortSignal,
  ): Promise<void> {
    if (objects.length === 0) {
      return;
    }
    await this.#announce(policy, objects, signal);
    const result = await this.#pruning.delete(policy, objects, signal);
    if (result.failures.length > 0 || result.terminating.length > 0) {
      const message = pruneFailureText(result);
      subject.status = pruningStatus(policy, message);
      this.#options.reader.use(subject.key, [...selections, ...result.awaited]);
      throw new Waiting(POLICY_REASONS.pruning, PRUNE_RETRY_MS, message);
    }
    this.#options.events.event(
      policy,
      'Normal',
      'ObjectsPruned',
      `deleted by ${prunedText(policy.spec.pruneObjectBehavior, objects)}`,
    );
  }

  /** Reports the objects to be deleted by status and event, once. */
  async #announce(policy: ConfigurationPolicy, objects: readonly RelatedObject[], signal: AbortSignal): Promise<void> {
    const isAnnounced = findCondition(policy.status?.conditions, READY)?.reason === POLICY_REASONS.pruning;
    if (!isAnnounced) {
      const text = `deletes by ${prunedText(policy.spec.pruneObjectBehavior, objects)}`;
      await this.#policies.writeStatus(policy, pruningStatus(policy, text), signal);
      this.#options.events.event(policy, 'Normal', 'ObjectsPruning', text);
    }
  }

  #next(
    key: ObjectKey,
    policy: ConfigurationPolicy,
    { compliant }: ConfigurationStatus,
    retryAfterMs: number | undefined,
    objects: EvaluationObjects,
  ): ReconcileResult {
    const interval = intervalOf(policy, compliant === 'Compliant');
    if (interval !== 'watch') {
      this.#read(key, [], []);
      return interval === 'never' ? {} : { requeueAfterMs: interval };
    }
    const waits = [retryAfterMs, objects.failures.length === 0 ? undefined : PRUNE_RETRY_MS].filter(
      (wait) => wait !== undefined,
    );
    return waits.length === 0 ? {} : { requeueAfterMs: Math.min(...waits) };
  }

  /** Ends what is done for a policy that is not evaluated. */
  #release(key: ObjectKey): void {
    this.#read(key, [], []);
    this.#options.evaluations.forget({ kind: CONFIGURATION_POLICIES.kind, key });
  }

  #read(key: ObjectKey, selections: EvaluationObjects['selections'], missing: Iterable<string>): void {
    this.#options.reader.use(key, selections);
    this.#options.missing.set(key, missing);
  }

  #log(
    key: ObjectKey,
    live: KubernetesObject | undefined,
    desired: KubernetesObject,
    record: string,
    verdict: string,
  ): void {
    if (record === 'Log' && verdict === 'mismatch' && live !== undefined) {
      this.#options.log.info({ ...key, diff: objectDiff(live, desired) }, 'an object differs from its policy');
    }
  }

  async #writeStatus(
    { key, status, isEvaluated }: Subject,
    failure: Readiness | undefined,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const policy = this.#policies.get(key);
    if (policy === undefined) {
      return {};
    }
    const now = Date.now();
    const next =
      status ?? (failure === undefined ? undefined : unevaluatedStatus(policy, policy.status?.compliant, failure, now));
    if (next === undefined) {
      return {};
    }
    const times = isEvaluated ? { lastEvaluated: new Date(now).toISOString() } : {};
    const isChanged = await this.#policies.writeStatus(policy, next, signal, times);
    if (isEvaluated) {
      this.#schedule.evaluated(key, now);
    }
    if (isChanged && next.compliant !== undefined && next.compliant !== policy.status?.compliant) {
      const type = next.compliant === 'NonCompliant' ? 'Warning' : 'Normal';
      this.#options.events.event(policy, type, next.compliant, next.history?.[0]?.message ?? next.compliant);
    }
    return {};
  }
}

const DUE: Due = { isDue: true };

const WITHOUT_MESSAGE: CustomMessage = () => ({ failure: 'it takes too long' });

interface Planned {
  readonly evaluation: ConfigurationEvaluation;
  readonly objects: EvaluationObjects;
}

function countOf(evaluation: ConfigurationEvaluation): number {
  return 'failure' in evaluation ? 0 : evaluation.plans.reduce((sum, { objects }) => sum + 1 + objects.length, 0);
}

/** The plans with the live objects, which never left this thread. */
function withLive(planned: PlannedEvaluation, objects: EvaluationObjects): ConfigurationEvaluation {
  if ('failure' in planned) {
    return planned;
  }
  const live = ({ type, namespace, name }: ObjectKeyOfPlan): Pick<ObjectPlan, 'live'> => {
    const object = objects.given(type, namespace, name);
    return object === undefined ? {} : { live: object };
  };
  return {
    plans: planned.plans.map((plan) => ({
      ...plan,
      objects: plan.objects.map(({ isLive, ...object }) => (isLive ? { ...object, ...live(object) } : object)),
    })),
  };
}

type ObjectKeyOfPlan = Pick<ObjectPlan, 'type' | 'namespace' | 'name'>;

interface Enforced {
  readonly evaluation: ConfigurationEvaluation;
  /** Policies that alternately change the same objects. */
  readonly rivals: ReadonlySet<string>;
  /** Why objects could not be read of which it is not known whether the policy created them: it does not prune these. */
  readonly unread: readonly string[];
  /** Objects that the policy may have created, without a proof: it does not prune these. */
  readonly unproven: readonly string[];
  readonly retryAfterMs: number | undefined;
}

/** The status with entries in place of those of the same objects. */
function withEntries({ status }: ConfigurationPolicy, entries: readonly RelatedObject[]): ConfigurationStatus {
  const keys = new Set(entries.map(relatedKey));
  const others = (status?.relatedObjects ?? []).filter((entry) => !keys.has(relatedKey(entry)));
  return { ...status, relatedObjects: [...others, ...entries] };
}

/** The entries of what the policy created. */
function creationsAmong(plans: readonly ObjectTemplatePlan[]): readonly RelatedObject[] {
  return plans
    .flatMap(({ objects }) => objects)
    .flatMap((plan) =>
      plan.properties?.createdByPolicy === true ? [{ ...objectEntry(plan), properties: plan.properties }] : [],
    );
}

function readinessOf(objects: EvaluationObjects, { evaluation, rivals, unread, unproven }: Enforced): Readiness {
  const [failure] = objects.failures;
  if (failure !== undefined) {
    const message = `${failure}: grant the governance account the right to read it`;
    return { state: 'reconciling', reason: POLICY_REASONS.unreadable, message };
  }
  if (rivals.size > 0) {
    const message = `objects are changed in turn with ${[...rivals].join(', ')}: let only one policy enforce them`;
    return { state: 'reconciling', reason: POLICY_REASONS.contested, message };
  }
  const [why] = unread;
  if (why !== undefined) {
    const message = `it is not known whether the policy created ${unread.length} objects, so it does not delete them: ${why}. Grant the governance account the right to get them`;
    return { state: 'reconciling', reason: POLICY_REASONS.creatorUnknown, message };
  }
  if (unproven.length > 0) {
    const message = `nothing proves that the policy created ${listed(unproven, MAX_LISTED)}, which have its field manager, so it does not delete them: the controller ended before it recorded the creation, or somebody set the field manager. Delete what is not needed: the policy creates again, and then owns, what it needs`;
    return { state: 'ready', reason: POLICY_REASONS.creatorUnknown, message };
  }
  const plans = 'plans' in evaluation ? evaluation.plans.flatMap((plan) => plan.objects) : [];
  const count = plans.filter(({ isUnproven }) => isUnproven === true).length;
  if (count > 0) {
    const message = `${count} objects that differ were compared without a dry run, because the governance account may not update them: the differences may be only defaults of the API server. Grant the right to update them, or give the defaults in the policy`;
    return { state: 'ready', reason: POLICY_REASONS.comparedOnly, message };
  }
  return { state: 'ready', reason: POLICY_REASONS.evaluated, message: '' };
}

function pruningStatus(policy: ConfigurationPolicy, message: string): ConfigurationStatus {
  const readiness = { state: 'reconciling', reason: POLICY_REASONS.pruning, message } as const;
  return unevaluatedStatus(policy, 'Terminating', readiness, Date.now());
}
