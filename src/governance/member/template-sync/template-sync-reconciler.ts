// Applies the templates of a copy when their dependencies are met, and collects the results.
import { ApiError, type Cluster, unlessGone } from '../../../cluster/index.ts';
import {
  type ComplianceState,
  CONTROLLER_FIELD_MANAGER,
  findCondition,
  keyOf,
  type KubernetesObject,
  type ObjectKey,
  own,
  type Policy,
  READY,
  type Readiness,
  type TemplateDetails,
  textOf,
  valueAt,
} from '../../../resources/index.ts';
import {
  type EventSink,
  type LastStep,
  type ObjectCache,
  type ReconcileAttempt,
  type ReconcileResult,
  type ReconcileStep,
  runSteps,
  Stalled,
  withStatus,
  worstFailure,
} from '../../../runtime/index.ts';
import { errorText } from '../../../values/index.ts';
import { complianceOf, conditionsOf, pendingDependencies, templateErrorMessage } from '../../dependencies/index.ts';
import type { DependencyGraphs } from '../../dependencies/dependency-graphs.ts';
import { isCopy, rootOf } from '../../targets/policy-copy.ts';
import { POLICY_REASONS } from '../../policy/policy-reasons.ts';
import { prunedText } from '../../policy/pruned-text.ts';
import { OwnObjects } from '../../policy/own-objects.ts';
import { copyStatus, type TemplateResult, unplannedStatus } from './copy-status.ts';
import type { TemplateKinds } from './template-kinds.ts';
import { isApplied, SUSPENDED_ANNOTATION, templateObject, updatedTemplate } from './template-object.ts';
import type { PlannedTemplate, TemplatePlans } from './template-plans.ts';

/** Reasons of events about templates. */
const EVENTS = {
  removing: 'TemplateRemoving',
  suspended: 'TemplateSuspended',
  dropped: 'TemplateRemoved',
} as const;

/** The finalizer of copies that applied cluster-scoped objects. */
const CLUSTER_SCOPED_FINALIZER = 'portcullis.dev/cluster-scoped-templates';

export interface TemplateSyncOptions {
  readonly cluster: Cluster;
  readonly policies: ObjectCache<Policy>;
  readonly plans: TemplatePlans;
  readonly kinds: TemplateKinds;
  readonly graphs: Pick<DependencyGraphs, 'current'>;
  readonly events: EventSink;
}

/** State of one pass, shared by its steps. */
interface Subject {
  readonly key: ObjectKey;
  readonly copy: Policy | undefined;
  planned: readonly PlannedTemplate[];
  /** Results of templates that could not be written, by name. */
  readonly failed: Map<string, TemplateResult>;
  readonly failures: unknown[];
}

/** Reconciles the copies of Policies. */
export class TemplateSyncReconciler {
  readonly #options: TemplateSyncOptions;
  readonly #copies: OwnObjects<Policy>;
  readonly #steps: readonly ReconcileStep<Subject>[] = [
    (subject, signal) => this.#leave(subject, signal),
    (subject, signal) => this.#plan(subject, signal),
    (subject, signal) => this.#announce(subject, signal),
    (subject, signal) => this.#guard(subject, signal),
    (subject, signal) => this.#apply(subject, signal),
    (subject, signal) => this.#removeDropped(subject, signal),
    (subject) => this.#fail(subject),
  ];

  constructor(options: TemplateSyncOptions) {
    this.#options = options;
    this.#copies = new OwnObjects(options.cluster, options.policies);
  }

  async reconcile(key: ObjectKey, signal: AbortSignal, attempt: ReconcileAttempt): Promise<ReconcileResult> {
    const subject: Subject = { key, copy: this.#copies.get(key), planned: [], failed: new Map(), failures: [] };
    return await withStatus(
      attempt,
      async (failure, stopped) => await this.#writeStatus(subject, failure, stopped),
      async () => await runSteps(this.#steps, subject, signal),
    );
  }

  async #leave(subject: Subject, signal: AbortSignal): Promise<LastStep | void> {
    const { key, copy } = subject;
    if (copy === undefined || copy.metadata.deletionTimestamp !== undefined) {
      if (copy?.metadata.finalizers?.includes(CLUSTER_SCOPED_FINALIZER) === true) {
        await this.#removeClusterScoped(copy, signal);
      }
      this.#options.plans.forget(key);
      return { isLast: true };
    }
    if (!isCopy(copy)) {
      throw new Stalled(
        POLICY_REASONS.notACopy,
        'Policies in the namespace of the cluster are copies: create the Policy in another namespace',
      );
    }
  }

  async #plan(subject: Subject, signal: AbortSignal): Promise<void> {
    subject.planned = subject.copy === undefined ? [] : await this.#options.plans.of(subject.copy, signal);
  }

  /** Announces deletions by status and event, before anything is deleted. */
  async #announce(subject: Subject, signal: AbortSignal): Promise<void> {
    const removed = subject.planned.filter(({ plan }) => plan.type === 'remove-because-unmet');
    if (removed.length === 0 || subject.copy === undefined) {
      return;
    }
    await this.#writeStatus(subject, undefined, signal);
    for (const { plan, stored } of removed.filter(({ stored }) => !isTerminating(stored))) {
      const message = 'message' in plan ? plan.message : '';
      const text = `${plan.template} is deleted, because a dependency is no longer met: ${message}${pruningOf(stored)}`;
      this.#options.events.event(subject.copy, 'Warning', EVENTS.removing, text);
    }
  }

  /** Adds the finalizer by which cluster-scoped objects are deleted with the copy: they cannot be owned by it. */
  async #guard(subject: Subject, signal: AbortSignal): Promise<void> {
    const copy = this.#copies.get(subject.key);
    const isWanted = subject.planned.some(({ plan, kind }) => plan.type === 'apply' && kind?.type.namespaced === false);
    if (copy !== undefined && isWanted) {
      await this.#copies.setFinalizer(copy, CLUSTER_SCOPED_FINALIZER, true, signal);
    }
  }

  async #removeClusterScoped(copy: Policy, signal: AbortSignal): Promise<void> {
    const planned = await this.#options.plans.of(copy, signal);
    for (const kind of new Set(planned.flatMap((one) => one.kind ?? []))) {
      for (const { metadata } of kind.type.namespaced ? [] : kind.appliedBy(copy)) {
        await unlessGone(kind.cluster.delete(kind.type, { name: metadata.name ?? '' }, { signal }));
      }
    }
    await this.#copies.setFinalizer(copy, CLUSTER_SCOPED_FINALIZER, false, signal);
  }

  async #apply(subject: Subject, signal: AbortSignal): Promise<void> {
    for (const planned of subject.planned) {
      try {
        await this.#applyOne(subject, planned, signal);
      } catch (error) {
        if (!(error instanceof ApiError) || error.code === 409) {
          throw error;
        }
        const verb = planned.stored === undefined ? 'create' : 'update';
        const message = templateErrorMessage(`Failed to ${verb} policy template: ${errorText(error)}`);
        const name = planned.plan.template;
        subject.failed.set(name, { name, state: 'Failed', compliant: 'NonCompliant', message, pending: [] });
        subject.failures.push(error);
      }
    }
  }

  async #applyOne({ copy }: Subject, planned: PlannedTemplate, signal: AbortSignal): Promise<void> {
    const { plan, kind, stored, key, template } = planned;
    if (copy === undefined || kind === undefined) {
      return;
    }
    switch (plan.type) {
      case 'apply': {
        const wanted = templateObject(copy, template.objectDefinition, kind.type.namespaced);
        if (stored === undefined || !isApplied(stored, wanted, kind.withDefaults)) {
          const options = { fieldManager: CONTROLLER_FIELD_MANAGER, fieldValidation: 'Strict', signal } as const;
          const written =
            stored === undefined
              ? await kind.cluster.create(kind.type, wanted, options)
              : await kind.cluster.update(kind.type, updatedTemplate(stored, wanted), options);
          kind.recordWrite(key, written);
        }
        return;
      }
      case 'suspend':
        await this.#suspend(copy, planned, 'a dependency is no longer met', signal);
        return;
      case 'unresolved':
        await this.#suspend(copy, planned, 'a template of the hub cannot be resolved', signal);
        return;
      case 'remove-because-unmet':
        if (!isTerminating(stored)) {
          await unlessGone(kind.cluster.delete(kind.type, key, { signal }));
        }
        return;
      case 'pending':
      case 'error':
        return;
      default:
        plan satisfies never;
    }
  }

  /** Ends the evaluation of a template of our own kinds. Others stay as they are. */
  async #suspend(
    copy: Policy,
    { plan, kind, stored, key }: PlannedTemplate,
    reason: string,
    signal: AbortSignal,
  ): Promise<void> {
    const isSuspended = stored?.metadata.annotations?.[SUSPENDED_ANNOTATION] !== undefined;
    if (kind === undefined || kind.isWatchedHere || stored === undefined || isSuspended || !('message' in plan)) {
      return;
    }
    const body = { metadata: { annotations: { [SUSPENDED_ANNOTATION]: plan.message } } };
    const options = { fieldManager: CONTROLLER_FIELD_MANAGER, signal };
    kind.recordWrite(key, await kind.cluster.patch(kind.type, key, { type: 'merge', body }, options));
    const message = `${plan.template} is not evaluated, because ${reason}: ${plan.message}`;
    this.#options.events.event(copy, 'Warning', EVENTS.suspended, message);
  }

  /** Deletes the objects of templates that left the Policy. */
  async #removeDropped({ copy, planned }: Subject, signal: AbortSignal): Promise<void> {
    // The object of a template without a name is not known, so that it could be taken for one that left the Policy.
    if (copy === undefined || planned.some(({ key }) => key.name === '')) {
      return;
    }
    // By the kind that the template names: it may not be served for a moment.
    const wanted = new Set(planned.map(({ template, key }) => `${kindOf(template)}/${key.name}`));
    const kinds = new Set([...this.#options.kinds.own, ...planned.flatMap(({ kind }) => kind ?? [])]);
    for (const kind of kinds) {
      const dropped = kind
        .appliedBy(copy)
        .filter(({ metadata }) => !wanted.has(`${kind.type.kind}/${metadata.name ?? ''}`))
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined);
      for (const object of dropped) {
        const message = `${object.kind} ${object.metadata.name ?? ''} is deleted, because the Policy has no such template any more`;
        this.#options.events.event(copy, 'Normal', EVENTS.dropped, message);
        await unlessGone(kind.cluster.delete(kind.type, keyOf(object), { signal }));
      }
    }
  }

  /** @throws the failure of a template that could not be written */
  #fail({ failures }: Subject): void {
    const failure = worstFailure(failures);
    if (failure !== undefined) {
      throw failure;
    }
  }

  async #writeStatus(
    { key, planned, failed }: Subject,
    failure: Readiness | undefined,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const copy = this.#copies.get(key);
    if (copy === undefined || copy.metadata.deletionTimestamp !== undefined) {
      return {};
    }
    const now = Date.now();
    if (failure !== undefined && planned.length === 0) {
      await this.#copies.writeStatus(copy, unplannedStatus(copy, failure, now), signal);
      return {};
    }
    const results = planned.map((one) => failed.get(one.plan.template) ?? resultOf(one, copy, now));
    const root = rootOf(key.name);
    const problems = root === undefined ? [] : this.#options.graphs.current().findingsOf({ namespace: '', ...root });
    const status = copyStatus(copy, results, problems, failure, now);
    if (await this.#copies.writeStatus(copy, status, signal)) {
      this.#emit(copy, status.details ?? []);
    }
    return {};
  }

  /** An event for each template whose compliance changed. */
  #emit(copy: Policy, details: readonly TemplateDetails[]): void {
    for (const { templateMeta, compliant, history } of details) {
      const before = copy.status?.details?.find((one) => one.templateMeta?.name === templateMeta?.name);
      if (compliant !== undefined && compliant !== before?.compliant) {
        const type = compliant === 'Compliant' ? 'Normal' : 'Warning';
        const message = `${templateMeta?.name ?? ''}: ${history?.[0]?.message ?? compliant}`;
        this.#options.events.event(copy, compliant === 'Pending' ? 'Normal' : type, compliant, message);
      }
    }
  }
}

/** The result of a template by its plan and its object. */
function resultOf({ template, kind, key, plan }: PlannedTemplate, copy: Policy, now: number): TemplateResult {
  const name = plan.template;
  if (plan.type === 'error' || plan.type === 'unresolved') {
    return { name, state: 'Failed', compliant: 'NonCompliant', message: plan.message, pending: [] };
  }
  if (plan.type === 'apply') {
    return { name, state: 'Applied', pending: [], ...verdictOf(kind?.get(key)) };
  }
  const before = copy.status?.details?.find(({ templateMeta }) => templateMeta?.name === name);
  const isRemoved = before?.state === 'Removing' || before?.state === 'Removed';
  const states = {
    pending: isRemoved ? 'Removed' : 'Waiting',
    suspend: 'Suspended',
    'remove-because-unmet': 'Removing',
  } as const;
  return {
    name,
    state: states[plan.type],
    compliant: template.ignorePending === true ? 'Compliant' : 'Pending',
    message: plan.message,
    pending: pendingDependencies(plan.dependencies, before?.pending ?? [], now),
    ...(plan.type === 'remove-because-unmet' ? { removal: removalProblem(kind?.get(key)) } : {}),
  };
}

/** Why an object is still there that is being deleted. */
function removalProblem(object: KubernetesObject | undefined): string | undefined {
  const ready = object && isTerminating(object) ? findCondition(conditionsOf(object), READY) : undefined;
  return ready === undefined || ready.status === 'True' || ready.message === '' ? undefined : ready.message;
}

function kindOf({ objectDefinition }: PlannedTemplate['template']): string {
  return textOf(own(objectDefinition, 'kind'));
}

function isTerminating(object: KubernetesObject | undefined): boolean {
  return object?.metadata.deletionTimestamp !== undefined;
}

/** The compliance of a template's object; unknown while its status was observed for an older generation. */
function verdictOf(
  object: KubernetesObject | undefined,
): Pick<TemplateResult, 'compliant' | 'message' | 'observedGeneration'> {
  if (object === undefined) {
    return { compliant: undefined, message: '' };
  }
  const verdict = complianceOf(object);
  const compliant = 'state' in verdict ? STATES[verdict.state] : undefined;
  if (compliant === undefined) {
    return { compliant, message: '' };
  }
  const message = newestMessage(object) ?? [compliant, verdict.detail].filter(Boolean).join('; ');
  return { compliant, message, observedGeneration: object.metadata.generation };
}

const STATES: Readonly<Record<string, ComplianceState>> = {
  Compliant: 'Compliant',
  NonCompliant: 'NonCompliant',
  Pending: 'Pending',
};

function newestMessage(object: KubernetesObject): string | undefined {
  const history = valueAt(object, 'status', 'history');
  const [newest] = Array.isArray(history) ? history : [];
  const message = textOf(valueAt(newest, 'message'));
  return message === '' ? undefined : message;
}

/** What the deletion of a ConfigurationPolicy prunes, for an event. */
function pruningOf(stored: KubernetesObject | undefined): string {
  const related = valueAt(stored, 'status', 'relatedObjects');
  const behavior = textOf(valueAt(stored, 'spec', 'pruneObjectBehavior'));
  const text = prunedText(behavior, Array.isArray(related) ? related : []);
  return text === '' ? '' : `; ${text}`;
}
