// Evaluates the certificates in Secrets: when a Secret or a namespace changes, and when a certificate expires.
import { setImmediate } from 'node:timers/promises';
import { ApiError, type Cluster } from '../../cluster/index.ts';
import {
  CERTIFICATE_POLICIES,
  type CertificatePolicy,
  knownKind,
  type KubernetesObject,
  type ObjectKey,
  type Readiness,
  setReadiness,
} from '../../resources/index.ts';
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
} from '../../runtime/index.ts';
import { shortened } from '../../values/index.ts';
import { NamespaceSelectorError, selectNamespaces } from '../configuration/index.ts';
import type { EvaluationShare } from '../evaluation-share.ts';
import { withMessage } from '../history/status-history.ts';
import type { ObjectReader } from '../objects/watched-kinds.ts';
import { OwnObjects } from '../own-objects.ts';
import { POLICY_REASONS } from '../policy-reasons.ts';
import { SUSPENDED_ANNOTATION } from '../template-sync/template-object.ts';
import { type CertificateEvaluation, evaluateCertificates } from './evaluate-certificates.ts';
import { KnownCertificates } from './secret-certificates.ts';
import type { NamespaceSecrets } from './violations.ts';

/** A timer runs by a clock that stops while the machine sleeps, so the next change is checked daily. Milliseconds. */
const MAX_DELAY_MS = 86_400_000;
/** Length of the message of a condition; the history has all of it. Characters. */
const MAX_CONDITION_LENGTH = 1024;

const SECRETS = knownKind('v1', 'Secret');

export interface CertificateReconcilerOptions {
  readonly cluster: Cluster;
  readonly policies: ObjectCache<CertificatePolicy>;
  readonly namespaces: Pick<ObjectCache, 'list'>;
  /** Reads Secrets as the governance account. */
  readonly reader: ObjectReader;
  /** Of all policies that are evaluated in this process. */
  readonly share: EvaluationShare;
  readonly events: EventSink;
}

type CertificateStatus = NonNullable<CertificatePolicy['status']>;
/** Why a CertificatePolicy has no verdict. */
type Unknown = Readiness & { readonly state: 'reconciling' };
type Verdict = Pick<CertificateEvaluation, 'compliant' | 'message' | 'compliancyDetails'>;

/** State of one pass, shared by its steps. */
interface Subject {
  readonly key: ObjectKey;
  readonly policy: CertificatePolicy | undefined;
  namespaces: readonly string[];
  result: Verdict | Unknown | undefined;
}

/** Reconciles CertificatePolicies in the namespace of the cluster. */
export class CertificateReconciler {
  readonly #options: CertificateReconcilerOptions;
  readonly #policies: OwnObjects<CertificatePolicy>;
  readonly #certificates = new KnownCertificates();
  readonly #steps: readonly ReconcileStep<Subject>[] = [
    (subject) => this.#release(subject),
    (subject) => this.#select(subject),
    (subject, signal) => this.#evaluate(subject, signal),
  ];

  constructor(options: CertificateReconcilerOptions) {
    this.#options = options;
    this.#policies = new OwnObjects(options.cluster, options.policies);
  }

  async reconcile(key: ObjectKey, signal: AbortSignal, attempt: ReconcileAttempt): Promise<ReconcileResult> {
    const subject: Subject = { key, policy: this.#policies.get(key), namespaces: [], result: undefined };
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
    if (suspended !== undefined) {
      subject.result = { state: 'reconciling', reason: POLICY_REASONS.suspended, message: suspended };
    }
    return { isLast: true };
  }

  #select(subject: Subject): void {
    const { key, policy } = subject;
    try {
      subject.namespaces = selectNamespaces(policy?.spec.namespaceSelector ?? {}, this.#options.namespaces.list());
    } catch (error) {
      if (!(error instanceof NamespaceSelectorError)) {
        throw error;
      }
      this.#options.reader.use(key, []);
      subject.result = { compliant: 'NonCompliant', message: `NonCompliant; ${error.message}`, compliancyDetails: {} };
      throw new Stalled(POLICY_REASONS.selectorInvalid, error.message, { cause: error });
    }
  }

  async #evaluate(subject: Subject, signal: AbortSignal): Promise<ReconcileResult | void> {
    const { policy } = subject;
    if (policy === undefined) {
      return;
    }
    const { share } = this.#options;
    const spec = { kind: CERTIFICATE_POLICIES.kind, key: subject.key, generation: policy.metadata.generation };
    const waitMs = share.waitMs(spec, Date.now());
    if (waitMs > 0) {
      return { requeueAfterMs: waitMs };
    }
    share.begin(spec, Date.now());
    const secrets = await this.#secrets(subject, signal);
    // Other work of the process comes first: evaluations in a row must not delay it.
    await setImmediate();
    const now = Date.now();
    const start = performance.now();
    const evaluation = evaluateCertificates(policy.spec, secrets, now, policy.status?.compliancyDetails, (secret) =>
      this.#certificates.of(secret),
    );
    share.end(spec, performance.now() - start, evaluation.isExceeded, Date.now());
    subject.result = evaluation;
    const { nextChange } = evaluation;
    return nextChange === undefined ? {} : { requeueAfterMs: Math.min(nextChange - now, MAX_DELAY_MS) };
  }

  /** @throws ReconcileError if the governance account may not read Secrets; ApiError, ClusterError */
  async #secrets({ key, namespaces }: Subject, signal: AbortSignal): Promise<readonly NamespaceSecrets[]> {
    const { reader } = this.#options;
    const selections = namespaces.map((namespace) => ({ type: SECRETS, namespace }));
    reader.use(key, selections);
    if (selections.length === 0) {
      return [];
    }
    try {
      const objects = await reader.open(SECRETS, signal);
      return namespaces.map((namespace) => ({ namespace, secrets: objects.list(namespace) }));
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 403) {
        throw error;
      }
      const message = `The governance account may not list and watch Secrets: grant it the right. ${error.message}`;
      throw new ReconcileError(POLICY_REASONS.unreadable, message, { cause: error });
    }
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
