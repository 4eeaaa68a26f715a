// Reconciles one policy: its revisions, the webhook configurations that cover it, and its status.
import type { Cluster } from '../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  ANNOTATIONS,
  type ObjectKey,
  policyId,
  type Readiness,
  type ResourceType,
} from '../resources/index.ts';
import {
  type EventSink,
  type LastStep,
  type ObjectCache,
  type ReconcileAttempt,
  type ReconcileResult,
  type ReconcileStep,
  runSteps,
  withStatus,
  WrittenObjects,
} from '../runtime/index.ts';
import type { PolicyCopies } from './copies/policy-copies.ts';
import type { AnnotationWarnings } from './annotation-warnings.ts';
import { PolicyRemoval } from './policy-removal.ts';
import { PolicyReports } from './policy-reports.ts';
import { PolicyRollout, type PolicyRolloutOptions } from './policy-rollout.ts';
import { annotationProblems, gatherRolloutView } from './gather-rollout-view.ts';
import { rollBack } from '../rollout/index.ts';
import { afterError, type FallibleStep } from './rollout/error-rules.ts';
import { checkSchema } from './schema-guard.ts';
import type { TypeCheckReports } from './type-checks/type-check-reports.ts';

export interface PolicyReconcilerOptions extends Omit<PolicyRolloutOptions, 'policies'> {
  readonly cluster: Cluster;
  readonly policies: Pick<ObjectCache<AdmissionPolicyObject>, 'get' | 'subscribe'>;
  readonly events: EventSink;
  readonly warnings: AnnotationWarnings;
  /** Where modules are, besides on replicas. Default: that is not known. */
  readonly copies?: Pick<PolicyCopies, 'of'> | undefined;
  /** Compares policies with the kinds of the cluster. Default: they are not compared. */
  readonly typeChecks?: Pick<TypeCheckReports, 'of' | 'forget'> | undefined;
  /** See PolicyReportsOptions. */
  readonly monitoredIntervalMs?: number;
  /** Whether this controller enforces the policies of a PolicyServer. It does not touch others. Default: always. */
  readonly isOurs?: ((policyServer: string) => boolean) | undefined;
}

/** State of one reconciliation, shared by its steps. */
interface Subject {
  readonly key: ObjectKey;
  readonly id: string;
  /** The policy at the start of the reconciliation; undefined if it was deleted. */
  readonly policy: AdmissionPolicyObject | undefined;
  /** Failures that do not stop further steps; the worst one is thrown after the last step. */
  readonly failures: unknown[];
}

/** Reconciles the policies of one kind. */
export class PolicyReconciler {
  readonly #kind: ResourceType<AdmissionPolicyObject>;
  readonly #options: PolicyReconcilerOptions;
  readonly #policies: WrittenObjects<AdmissionPolicyObject>;
  readonly #reports: PolicyReports;
  readonly #removal: PolicyRemoval;
  readonly #rollout: PolicyRollout;
  readonly #steps: readonly ReconcileStep<Subject>[] = [
    ruled('remove', (subject, signal) => this.#remove(subject, signal)),
    (subject) => this.#release(subject),
    ruled('removePredecessor', (subject, signal) => this.#removePredecessor(subject, signal)),
    (subject) => this.#warnOfAnnotations(subject),
    ruled('rollBack', (subject, signal) => this.#rollBack(subject, signal)),
    ruled('checkSchema', (subject, signal) => this.#checkSchema(subject, signal)),
    ({ key, id, failures }, signal) => this.#rollout.run(key, id, failures, signal),
  ];

  constructor(kind: ResourceType<AdmissionPolicyObject>, options: PolicyReconcilerOptions) {
    this.#kind = kind;
    this.#options = options;
    this.#policies = new WrittenObjects(options.policies);
    this.#reports = new PolicyReports(kind, { ...options, policies: this.#policies });
    this.#removal = new PolicyRemoval(kind, { ...options, reports: this.#reports });
    this.#rollout = new PolicyRollout({ ...options, policies: this.#policies });
  }

  async reconcile(key: ObjectKey, signal: AbortSignal, attempt: ReconcileAttempt): Promise<ReconcileResult> {
    const policy = this.#policies.get(key);
    const id = policyId({ kind: this.#kind.kind, metadata: key });
    return await withStatus(
      attempt,
      async (failure, stopped) => await this.#writeStatus(key, id, failure, stopped),
      async () => await runSteps(this.#steps, { key, id, policy, failures: [] }, signal),
    );
  }

  async #remove({ key, id, policy }: Subject, signal: AbortSignal): Promise<LastStep | void> {
    if (policy === undefined || isBeingDeleted(policy)) {
      return { isLast: true, ...(await this.#removal.remove(key, id, policy, signal)) };
    }
  }

  /** Leaves the policies of another controller's PolicyServer to that controller. */
  #release({ id, policy }: Subject): LastStep | void {
    if (!this.#isOurs(policy)) {
      this.#options.prevalidations.cancel(id);
      // The webhooks that cover it stay.
      this.#options.webhooks.markReconciled(id);
      return { isLast: true };
    }
  }

  /** Removes the revisions of a deleted policy of the same name, and those that the controller cannot have written. */
  async #removePredecessor({ key, id, policy }: Subject, signal: AbortSignal): Promise<LastStep | void> {
    const own = this.#options.revisions.ofPolicy(policy, id);
    const others = this.#options.revisions.of(id).filter((revision) => !own.includes(revision));
    if (others.length === 0) {
      return;
    }
    // Webhooks for this name still belong to the deleted policy, unless this one serves already.
    const isServing = own.some(({ status }) => status?.state === 'Serving');
    if (!isServing && this.#removal.endEnforcement(key, id, policy).state !== 'Absent') {
      return { isLast: true };
    }
    for (const revision of others) {
      await this.#options.revisions.delete(revision, signal);
    }
  }

  #warnOfAnnotations({ policy }: Subject): void {
    if (policy !== undefined) {
      this.#options.warnings.report(policy, annotationProblems(policy));
    }
  }

  /** Rolls back as the annotation `rollback-to` says. If that fails, the current spec is rolled out. */
  async #rollBack({ key, id, policy }: Subject, signal: AbortSignal): Promise<void> {
    if (policy?.metadata.annotations?.[ANNOTATIONS.rollbackTo] === undefined) {
      return;
    }
    const { cluster, events } = this.#options;
    const own = this.#options.revisions.ofPolicy(policy, id);
    this.#policies.recordWrite(key, await rollBack(cluster, this.#kind, policy, own, events, signal));
  }

  async #checkSchema({ key, id }: Subject, signal: AbortSignal): Promise<void> {
    const policy = this.#policies.get(key);
    if (policy !== undefined) {
      await checkSchema(
        this.#options.cluster,
        this.#kind,
        policy,
        this.#options.revisions.ofPolicy(policy, id),
        signal,
      );
    }
  }

  /** The only write of a status. The status of a policy that is being deleted is written only after a failure. */
  async #writeStatus(
    key: ObjectKey,
    id: string,
    failure: Readiness | undefined,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const policy = this.#policies.get(key);
    if (policy === undefined || !this.#isOurs(policy) || (isBeingDeleted(policy) && failure === undefined)) {
      return {};
    }
    const view = gatherRolloutView(this.#options, policy, id, this.#options.revisions.ofPolicy(policy, id), Date.now());
    return await this.#reports.write(policy, view, failure, signal);
  }

  #isOurs(policy: AdmissionPolicyObject | undefined): boolean {
    const { isOurs = () => true } = this.#options;
    return isOurs(policy?.spec.policyServer ?? 'default');
  }
}

/** A step whose errors end the reconciliation, or not, as the rules of the step say. */
function ruled(name: FallibleStep, step: ReconcileStep<Subject>): ReconcileStep<Subject> {
  return async (subject, signal) => {
    try {
      return await step(subject, signal);
    } catch (error) {
      const { effect, failure } = afterError(name, error);
      if (effect === 'end') {
        throw failure;
      }
      subject.failures.push(failure);
    }
  };
}

/** Whether a policy is deleted, but kept by another controller's finalizer. */
function isBeingDeleted({ metadata }: AdmissionPolicyObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}
