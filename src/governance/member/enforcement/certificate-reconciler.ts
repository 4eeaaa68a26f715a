// Evaluates the certificates in Secrets: when a Secret or a namespace changes, and when a certificate expires.
import type { Cluster } from '../../../cluster/index.ts';
import {
  CERTIFICATE_POLICIES,
  type CertificatePolicy,
  keyOf,
  type KubernetesObject,
  type ObjectKey,
  type Readiness,
  setReadiness,
} from '../../../resources/index.ts';
import {
  type EventSink,
  type LastStep,
  type ObjectCache,
  type ReconcileAttempt,
  ReconcileError,
  type ReconcileResult,
  type ReconcileStep,
  runSteps,
  Stalled,
  withStatus,
} from '../../../runtime/index.ts';
import { shortened } from '../../../values/index.ts';
import type { EvaluatedSpec, EvaluationLanes, RunJob } from '../../evaluation/evaluation-lanes.ts';
import { EvaluationObjects } from '../../evaluation/evaluation-objects.ts';
import type { EvaluatedCertificates } from '../../evaluation/evaluation-jobs.ts';
import { withMessage } from '../../history/status-history.ts';
import type { ObjectReader } from '../../objects/watched-kinds.ts';
import { OwnObjects } from '../../policy/own-objects.ts';
import { POLICY_REASONS } from '../../policy/policy-reasons.ts';
import { SUSPENDED_ANNOTATION } from '../template-sync/template-object.ts';
import type { CertificateEvaluation } from '../../certificates/evaluate-certificates.ts';
import { KnownCertificates } from '../../certificates/secret-certificates.ts';

/** A timer runs by a clock that stops while the machine sleeps, so the next change is checked daily. Milliseconds. */
const MAX_DELAY_MS = 86_400_000;
/** Length of the message of a condition; the history has all of it. Characters. */
const MAX_CONDITION_LENGTH = 1024;

export interface CertificateReconcilerOptions {
  readonly cluster: Cluster;
  readonly policies: ObjectCache<CertificatePolicy>;
  readonly namespaces: Pick<ObjectCache, 'list'>;
  /** Reads Secrets as the governance account. */
  readonly reader: ObjectReader;
  /** Of all policies that are evaluated in this process. */
  readonly evaluations: EvaluationLanes;
  readonly ownerOf: (policy: CertificatePolicy) => string;
  /** Enqueues a policy. */
  readonly wake: (key: ObjectKey) => void;
  readonly events: EventSink;
}

type CertificateStatus = NonNullable<CertificatePolicy['status']>;
/** Why a CertificatePolicy has no verdict. */
type Unknown = Readiness & { readonly state: 'reconciling' };
type Verdict = Pick<CertificateEvaluation, 'compliant' | 'message' | 'compliancyDetails'>;

/** An evaluation, and the time that it is about. Milliseconds since 1970. */
interface EvaluatedAt {
  readonly evaluation: EvaluatedCertificates;
  readonly now: number;
}

/** State of one pass, shared by its steps. */
interface Subject {
  readonly key: ObjectKey;
  readonly policy: CertificatePolicy | undefined;
  result: Verdict | Unknown | undefined;
}

/** Reconciles CertificatePolicies in the namespace of the cluster. */
export class CertificateReconciler {
  readonly #options: CertificateReconcilerOptions;
  readonly #policies: OwnObjects<CertificatePolicy>;
  readonly #certificates = new KnownCertificates();
  readonly #steps: readonly ReconcileStep<Subject>[] = [
    (subject) => this.#release(subject),
    (subject, signal) => this.#evaluate(subject, signal),
  ];

  constructor(options: CertificateReconcilerOptions) {
    this.#options = options;
    this.#policies = new OwnObjects(options.cluster, options.policies);
  }

  async reconcile(key: ObjectKey, signal: AbortSignal, attempt: ReconcileAttempt): Promise<ReconcileResult> {
    const subject: Subject = { key, policy: this.#policies.get(key), result: undefined };
    return await withStatus(
      attempt,
      async (failure, stopped) => await this.#writeStatus(subject, failure, stopped),
      async () => await runSteps(this.#steps, subject, signal),
    );
  }

  /** Ends the watch of Secrets for a policy that is gone or suspended. */
  #release(subject: Subject): LastStep | void {
    const { key, policy } = subject;
    const suspended = policy?.metadata.annotations?.[SUSPENDED_ANNOTATION];
    if (policy !== undefined && policy.metadata.deletionTimestamp === undefined && suspended === undefined) {
      return;
    }
    this.#options.reader.use(key, []);
    this.#options.evaluations.forget({ kind: CERTIFICATE_POLICIES.kind, key });
    if (suspended !== undefined) {
      subject.result = { state: 'reconciling', reason: POLICY_REASONS.suspended, message: suspended };
    }
    return { isLast: true };
  }

  async #evaluate(subject: Subject, signal: AbortSignal): Promise<ReconcileResult | void> {
    const { key, policy } = subject;
    if (policy === undefined) {
      return;
    }
    const { evaluations, wake } = this.#options;
    const work = {
      run: async (run: RunJob, limit: AbortSignal) => await this.#run(policy, run, limit),
      wake: () => wake(key),
    };
    const evaluated = await evaluations.evaluate(this.#specOf(policy), work, signal);
    switch (evaluated.state) {
      case 'later':
        return evaluated.afterMs === undefined ? {} : { requeueAfterMs: evaluated.afterMs };
      case 'ended':
        subject.result = { state: 'reconciling', reason: POLICY_REASONS.ended, message: evaluated.reason };
        return { requeueAfterMs: evaluated.retryAfterMs };
      case 'done':
        return this.#judge(subject, evaluated.result);
      default:
        return evaluated satisfies never;
    }
  }

  #specOf(policy: CertificatePolicy): EvaluatedSpec {
    const { generation } = policy.metadata;
    return { kind: CERTIFICATE_POLICIES.kind, key: keyOf(policy), generation, owner: this.#options.ownerOf(policy) };
  }

  async #run(policy: CertificatePolicy, run: RunJob, signal: AbortSignal): Promise<EvaluatedAt> {
    const { reader, namespaces } = this.#options;
    const certificates = this.#certificates;
    const objects = new EvaluationObjects({
      key: keyOf(policy),
      reader,
      namespaces: () => namespaces.list(),
      certificates,
    });
    const now = Date.now();
    const input = { spec: policy.spec, before: policy.status?.compliancyDetails ?? {}, now };
    return { now, evaluation: await objects.evaluate(() => run('certificates', input, objects), signal) };
  }

  /** @throws ReconcileError if the governance account may not read Secrets; Stalled */
  #judge(subject: Subject, { evaluation, now }: EvaluatedAt): ReconcileResult {
    if ('invalidSelector' in evaluation) {
      const message = evaluation.invalidSelector;
      subject.result = { compliant: 'NonCompliant', message: `NonCompliant; ${message}`, compliancyDetails: {} };
      throw new Stalled(POLICY_REASONS.selectorInvalid, message);
    }
    if ('unreadable' in evaluation) {
      const message = `The governance account may not list and watch Secrets: grant it the right. ${evaluation.unreadable}`;
      throw new ReconcileError(POLICY_REASONS.unreadable, message);
    }
    subject.result = evaluation;
    const { nextChange } = evaluation;
    return nextChange === undefined ? {} : { requeueAfterMs: Math.min(Math.max(0, nextChange - now), MAX_DELAY_MS) };
  }

  async #writeStatus(
    { key, policy: evaluated, result }: Subject,
    failure: Readiness | undefined,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const policy = this.#policies.get(key);
    const generation = evaluated?.metadata.generation;
    if (policy === undefined || policy.metadata.deletionTimestamp !== undefined || generation === undefined) {
      return {};
    }
    const status = statusOf(policy, generation, result, failure, Date.now());
    if (status !== undefined && (await this.#policies.writeStatus(policy, status, signal))) {
      this.#emit(policy, status);
    }
    return {};
  }

  /** An event for each new message of a verdict. */
  #emit(policy: CertificatePolicy, { compliant, history }: CertificateStatus): void {
    const message = history?.[0]?.message;
    if (compliant !== undefined && message !== undefined && message !== policy.status?.history?.[0]?.message) {
      this.#options.events.event(policy, compliant === 'Compliant' ? 'Normal' : 'Warning', compliant, message.trim());
    }
  }
}

/** Whether a change of a namespace can change what selectors select. */
export function isSelectionChange(before: KubernetesObject | undefined, after: KubernetesObject | undefined): boolean {
  const relevant = (namespace: KubernetesObject | undefined) =>
    JSON.stringify([namespace?.metadata.name, namespace?.metadata.labels, namespace?.metadata.deletionTimestamp]);
  return relevant(before) !== relevant(after);
}

/** The status after a pass; undefined if it stays. Without a verdict, the compliance is absent. */
function statusOf(
  { status }: CertificatePolicy,
  generation: number,
  result: Verdict | Unknown | undefined,
  failure: Readiness | undefined,
  now: number,
): CertificateStatus | undefined {
  if (result !== undefined && 'compliant' in result) {
    const message = shortened(result.message.trim(), MAX_CONDITION_LENGTH);
    const readiness = failure ?? { state: 'ready', reason: POLICY_REASONS.evaluated, message };
    return {
      compliant: result.compliant,
      compliancyDetails: result.compliancyDetails,
      history: withMessage(status?.history, result.message, now),
      conditions: setReadiness(status?.conditions, readiness, generation, now),
      observedGeneration: generation,
    };
  }
  const unknown = result ?? failure;
  if (unknown === undefined) {
    return undefined;
  }
  const conditions = setReadiness(status?.conditions, unknown, generation, now);
  if (result === undefined && unknown.reason !== POLICY_REASONS.unreadable) {
    // While the cluster does not answer, the last verdict and its observedGeneration stay.
    return { ...status, conditions };
  }
  const history = withMessage(status?.history, `UnknownCompliancy; ${unknown.message}`, now);
  return { history, conditions, observedGeneration: generation };
}
