// Keeps one copy of a Policy: for one cluster, in its namespace.
import { type Cluster, unlessGone } from '../../../cluster/index.ts';
import {
  CONTROLLER_FIELD_MANAGER,
  type ObjectKey,
  POLICIES,
  type Policy,
  type Readiness,
} from '../../../resources/index.ts';
import {
  type EventSink,
  type LastStep,
  type ObjectCache,
  type ReconcileAttempt,
  type ReconcileResult,
  type ReconcileStep,
  runSteps,
  withStatus,
} from '../../../runtime/index.ts';
import { OwnObjects } from '../../policy/own-objects.ts';
import { isCopy, isUpToDate, rootOf } from '../../targets/policy-copy.ts';
import type { Target, Targets } from '../../targets/targets.ts';
import type { ServedPolicies } from '../revisions/served-policies.ts';
import type { ClusterNamespaces } from './cluster-namespaces.ts';
import type { CopyPlans } from './copy-plans.ts';
import type { CopyRecords } from './copy-records.ts';
import type { HubTemplates } from './hub-templates.ts';

/** Upstream's reason of events about templates of the hub. */
const UNRESOLVED = 'PolicyPropagation';
/** Maximum number of events about one change of a copy. */
const MAX_ERROR_EVENTS = 10;

export interface CopyReconcilerOptions {
  readonly cluster: Cluster;
  readonly targets: Pick<Targets, 'hasCopies'>;
  readonly plans: CopyPlans;
  /** What is applied of each Policy. */
  readonly served: ServedPolicies;
  readonly policies: ObjectCache<Policy>;
  readonly namespaces: Pick<ClusterNamespaces, 'ensure'>;
  readonly hubTemplates: Pick<HubTemplates, 'resolve' | 'forget'>;
  readonly records: CopyRecords;
  readonly events: EventSink;
}

/** State of one pass, shared by its steps. */
interface Subject {
  /** Of the copy. */
  readonly key: ObjectKey;
  readonly root: Policy | undefined;
  /** The revision of the root that is applied. */
  readonly revision: number | undefined;
  /** Whether nothing of the root is applied yet: what may be there stays. */
  readonly isUnserved: boolean;
  /** The cluster, and the desired copy, first with unresolved templates of the hub; undefined if there should be none. */
  readonly target: Target | undefined;
  wanted: Policy | undefined;
}

/** Reconciles copies, by their keys. A copy of a Policy that no longer goes to its cluster is deleted. */
export class CopyReconciler {
  readonly #options: CopyReconcilerOptions;
  readonly #copies: OwnObjects<Policy>;
  readonly #steps: readonly ReconcileStep<Subject>[] = [
    ({ isUnserved }) => (isUnserved ? { isLast: true } : undefined),
    (subject, signal) => this.#remove(subject, signal),
    ({ target }, signal) => (target === undefined ? undefined : this.#options.namespaces.ensure(target, signal)),
    (subject, signal) => this.#resolve(subject, signal),
    (subject, signal) => this.#write(subject, signal),
  ];

  constructor(options: CopyReconcilerOptions) {
    this.#options = options;
    this.#copies = new OwnObjects(options.cluster, options.policies);
  }

  async reconcile(key: ObjectKey, signal: AbortSignal, attempt: ReconcileAttempt): Promise<ReconcileResult> {
    const rootKey = rootOf(key.name);
    if (rootKey === undefined) {
      return {};
    }
    const subject = this.#subject(key, rootKey);
    return await withStatus(
      attempt,
      async (failure) => this.#record(subject, rootKey, failure),
      async () => await runSteps(this.#steps, subject, signal),
    );
  }

  #subject(key: ObjectKey, rootKey: ObjectKey): Subject {
    const { targets, plans, policies, served } = this.#options;
    const found = targets.hasCopies(rootKey.namespace ?? '') ? undefined : policies.get(rootKey);
    const declared = found?.metadata.deletionTimestamp === undefined ? found : undefined;
    const { policy, revision } = (declared && served.of(declared)) ?? {};
    const isUnserved = declared !== undefined && policy === undefined;
    const root = policy ?? declared;
    const plan = policy && plans.of(policy);
    if (plan === undefined || !('targets' in plan)) {
      return { key, root, revision, isUnserved, target: undefined, wanted: undefined };
    }
    const target = plan.targets.find(({ namespace }) => namespace === key.namespace);
    return { key, root, revision, isUnserved, target, wanted: target && plan.copyFor(target) };
  }

  /** Deletes the copy of a Policy that does not go to the cluster. A Policy that is no copy stays. */
  async #remove({ key, wanted }: Subject, signal: AbortSignal): Promise<LastStep | void> {
    if (wanted !== undefined) {
      return;
    }
    this.#options.hubTemplates.forget(key);
    const copy = this.#copies.get(key);
    if (copy !== undefined && isCopy(copy)) {
      await unlessGone(this.#options.cluster.delete(POLICIES, key, { signal }));
    }
    return { isLast: true };
  }

  async #resolve(subject: Subject, signal: AbortSignal): Promise<ReconcileResult | LastStep | void> {
    const { key, root, target, wanted } = subject;
    if (root === undefined || target === undefined || wanted === undefined) {
      return;
    }
    const { hubTemplates, events, records } = this.#options;
    const resolved = await hubTemplates.resolve(root, wanted, target, signal);
    const stored = this.#copies.get(key);
    if ('waitMs' in resolved) {
      const record = records.get(key);
      const isCurrent =
        record?.rootGeneration === root.metadata.generation && record?.copyGeneration === stored?.metadata.generation;
      subject.wanted = isCurrent ? stored : wanted;
      return { isLast: true, ...(resolved.waitMs === undefined ? {} : { requeueAfterMs: resolved.waitMs }) };
    }
    const { copy, errors, retryAfterMs } = resolved;
    subject.wanted = copy;
    if (stored === undefined || !isUpToDate(stored, copy)) {
      const cluster = `${target.namespace}/${target.name}`;
      for (const error of errors.slice(0, MAX_ERROR_EVENTS)) {
        events.event(root, 'Warning', UNRESOLVED, `Failed to resolve templates for cluster ${cluster}: ${error}`);
      }
    }
    return retryAfterMs === undefined ? {} : { requeueAfterMs: retryAfterMs };
  }

  async #write({ key, wanted }: Subject, signal: AbortSignal): Promise<void> {
    const stored = this.#copies.get(key);
    if (wanted === undefined || (stored !== undefined && isUpToDate(stored, wanted))) {
      return;
    }
    const { cluster } = this.#options;
    const options = { fieldManager: CONTROLLER_FIELD_MANAGER, signal };
    const { labels = {}, annotations = {} } = wanted.metadata;
    const written =
      stored === undefined
        ? await cluster.create<Policy>(POLICIES, wanted, options)
        : await cluster.update<Policy>(
            POLICIES,
            { ...stored, metadata: { ...stored.metadata, labels, annotations }, spec: wanted.spec },
            options,
          );
    this.#copies.recordWrite(key, written);
  }

  /** Records what became of the copy, for the status of its root. */
  #record(
    { key, root, revision, wanted }: Subject,
    rootKey: ObjectKey,
    failure: Readiness | undefined,
  ): ReconcileResult {
    const { records } = this.#options;
    const stored = this.#copies.get(key);
    const isCurrent = stored !== undefined && wanted !== undefined && isUpToDate(stored, wanted);
    records.set(
      key,
      rootKey,
      root && {
        rootGeneration: root.metadata.generation,
        revision,
        copyGeneration: isCurrent ? stored.metadata.generation : undefined,
        failure,
      },
    );
    return {};
  }
}
