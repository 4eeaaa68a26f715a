// Copies a Policy to the namespace of the cluster, and summarises the status of the copy on it.
import { type Cluster, unlessGone } from '../../cluster/index.ts';
import {
  CONTROLLER_FIELD_MANAGER,
  keyText,
  type ObjectKey,
  POLICIES,
  type Policy,
  type PolicyDependency,
  type PolicySet,
  type Readiness,
} from '../../resources/index.ts';
import {
  type EventSink,
  type LastStep,
  type ObjectCache,
  type ReconcileAttempt,
  type ReconcileResult,
  type ReconcileStep,
  runSteps,
  withStatus,
} from '../../runtime/index.ts';
import type { ClusterNamespace } from '../cluster-namespace.ts';
import {
  canonicalDependencies,
  checkDependencyCount,
  DependencyError,
  readDependencies,
} from '../dependencies/index.ts';
import { type GovernanceSettings, isGoverned } from '../governance-settings.ts';
import { OwnObjects } from '../own-objects.ts';
import type { HubTemplates } from './hub-templates.ts';
import { copyName, isCopy, isUpToDate, replicatedPolicy } from './replicated-policy.ts';
import { POLICY_REASONS } from '../policy-reasons.ts';
import { type NotApplied, notAppliedStatus, rootStatus } from './root-status.ts';

/** Upstream's reason of events about templates of the hub. */
const UNRESOLVED = 'PolicyPropagation';
/** Maximum number of events about one change of a copy. */
const MAX_ERROR_EVENTS = 10;

export interface PropagationOptions {
  readonly cluster: Cluster;
  readonly settings: GovernanceSettings;
  readonly policies: ObjectCache<Policy>;
  readonly policySets: ObjectCache<PolicySet>;
  readonly namespace: Pick<ClusterNamespace, 'ensure'>;
  readonly hubTemplates: Pick<HubTemplates, 'resolve' | 'forget'>;
  readonly events: EventSink;
}

/** Generations of a root, and of the copy that was written for it. */
interface CopiedGeneration {
  readonly root: number | undefined;
  readonly copy: number | undefined;
}

/** State of one pass, shared by its steps. */
interface Subject {
  readonly key: ObjectKey;
  readonly root: Policy | undefined;
  readonly copyKey: ObjectKey | undefined;
  /** The desired copy, first with unresolved templates of the hub; undefined if there should be no copy. */
  wanted: Policy | undefined;
  /** Why the Policy applies nowhere; undefined if it applies. */
  readonly notApplied: NotApplied | undefined;
}

/** Reconciles Policies outside of the namespace of the cluster. */
export class PropagationReconciler {
  readonly #options: PropagationOptions;
  readonly #policies: OwnObjects<Policy>;
  /** Which generation of a root its copy has, by the key of the root. */
  readonly #copied = new Map<string, CopiedGeneration>();
  readonly #steps: readonly ReconcileStep<Subject>[] = [
    (subject, signal) => this.#remove(subject, signal),
    (_subject, signal) => this.#options.namespace.ensure(signal),
    (subject, signal) => this.#resolve(subject, signal),
    (subject, signal) => this.#copy(subject, signal),
  ];

  constructor(options: PropagationOptions) {
    this.#options = options;
    this.#policies = new OwnObjects(options.cluster, options.policies);
  }

  async reconcile(key: ObjectKey, signal: AbortSignal, attempt: ReconcileAttempt): Promise<ReconcileResult> {
    const subject = this.#subject(key);
    return await withStatus(
      attempt,
      async (failure, stopped) => await this.#writeStatus(key, subject, failure, stopped),
      async () => await runSteps(this.#steps, subject, signal),
    );
  }

  #subject(key: ObjectKey): Subject {
    const root = this.#policies.get(key);
    const name = copyName(key);
    const copyKey = name === undefined ? undefined : { namespace: this.#options.settings.clusterName, name };
    const isGone = root === undefined || root.metadata.deletionTimestamp !== undefined;
    const notApplied = isGone ? undefined : this.#notApplied(root, name);
    if (isGone || name === undefined || notApplied !== undefined) {
      return { key, root, copyKey, wanted: undefined, notApplied };
    }
    try {
      return { key, root, copyKey, wanted: this.#wanted(root, name), notApplied };
    } catch (error) {
      if (!(error instanceof DependencyError)) {
        throw error;
      }
      const invalid = { reason: POLICY_REASONS.dependenciesInvalid, message: error.message, isStalled: true };
      return { key, root, copyKey, wanted: undefined, notApplied: invalid };
    }
  }

  /** Why a Policy applies nowhere. */
  #notApplied({ metadata, spec }: Policy, name: string | undefined): NotApplied | undefined {
    const { settings } = this.#options;
    const namespace = metadata.namespace ?? '';
    if (!isGoverned(namespace, settings)) {
      const message = `Policies in namespace ${namespace} do not count: see --governance-namespaces`;
      return { reason: POLICY_REASONS.namespaceNotGoverned, message, isStalled: true };
    }
    if (name === undefined) {
      const message = 'the name is too long: its copy is named NAMESPACE.NAME, which has at most 253 characters';
      return { reason: POLICY_REASONS.nameTooLong, message, isStalled: true };
    }
    if (spec.disabled) {
      return { reason: POLICY_REASONS.disabled, message: 'the Policy is disabled', isStalled: false };
    }
    return settings.mode === 'hub'
      ? { reason: POLICY_REASONS.notPlaced, message: 'the Policy is placed on no cluster', isStalled: false }
      : undefined;
  }

  /** Deletes the copy of a Policy that applies nowhere. A Policy that is no copy of it stays. */
  async #remove({ key, copyKey, wanted }: Subject, signal: AbortSignal): Promise<LastStep | void> {
    if (wanted !== undefined) {
      return;
    }
    this.#options.hubTemplates.forget(key);
    this.#copied.delete(keyText(key));
    const copy = copyKey === undefined ? undefined : this.#policies.get(copyKey);
    if (copyKey !== undefined && copy !== undefined && isCopy(copy, this.#options.settings.clusterName)) {
      await unlessGone(this.#options.cluster.delete(POLICIES, copyKey, { signal }));
    }
    return { isLast: true };
  }

  async #resolve(subject: Subject, signal: AbortSignal): Promise<ReconcileResult | LastStep | void> {
    const { key, root, copyKey, wanted } = subject;
    if (root === undefined || copyKey === undefined || wanted === undefined) {
      return;
    }
    const { hubTemplates, events, settings } = this.#options;
    const resolved = await hubTemplates.resolve(root, wanted, signal);
    const stored = this.#policies.get(copyKey);
    if ('waitMs' in resolved) {
      const copied = this.#copied.get(keyText(key));
      const isCurrent = copied?.root === root.metadata.generation && copied?.copy === stored?.metadata.generation;
      subject.wanted = isCurrent ? stored : wanted;
      return { isLast: true, ...(resolved.waitMs === undefined ? {} : { requeueAfterMs: resolved.waitMs }) };
    }
    const { copy, errors, retryAfterMs } = resolved;
    subject.wanted = copy;
    if (stored === undefined || !isUpToDate(stored, copy)) {
      const cluster = `${settings.clusterName}/${settings.clusterName}`;
      for (const error of errors.slice(0, MAX_ERROR_EVENTS)) {
        events.event(root, 'Warning', UNRESOLVED, `Failed to resolve templates for cluster ${cluster}: ${error}`);
      }
    }
    return retryAfterMs === undefined ? {} : { requeueAfterMs: retryAfterMs };
  }

  async #copy({ key, root, copyKey, wanted }: Subject, signal: AbortSignal): Promise<void> {
    if (wanted === undefined || copyKey === undefined) {
      return;
    }
    const stored = this.#policies.get(copyKey);
    const isCurrent = stored !== undefined && isUpToDate(stored, wanted);
    const copy = isCurrent ? stored : await this.#write(copyKey, stored, wanted, signal);
    this.#copied.set(keyText(key), { root: root?.metadata.generation, copy: copy.metadata.generation });
  }

  async #write(copyKey: ObjectKey, stored: Policy | undefined, wanted: Policy, signal: AbortSignal): Promise<Policy> {
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
    this.#policies.recordWrite(copyKey, written);
    return written;
  }

  /** @throws DependencyError */
  #wanted(root: Policy, name: string): Policy {
    const { settings, policySets } = this.#options;
    const namespace = root.metadata.namespace ?? '';
    const copy = replicatedPolicy(
      root,
      name,
      settings.clusterName,
      (dependencies) =>
        canonicalDependencies(
          readDependencies(dependencies),
          namespace,
          (set) => policySets.get(set)?.spec.policies,
          // The states are those of the root, which the schema of the kind has checked.
        ) as readonly PolicyDependency[],
    );
    checkDependencyCount(
      copy.spec.dependencies?.length ?? 0,
      copy.spec['policy-templates'].map(({ extraDependencies = [] }) => extraDependencies.length),
    );
    return copy;
  }

  async #writeStatus(
    key: ObjectKey,
    subject: Subject,
    failure: Readiness | undefined,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const root = this.#policies.get(key);
    if (root !== undefined && root.metadata.deletionTimestamp === undefined) {
      await this.#policies.writeStatus(root, this.#statusOf(root, subject, failure), signal);
    }
    return {};
  }

  #statusOf(
    root: Policy,
    { copyKey, wanted, notApplied }: Subject,
    failure: Readiness | undefined,
  ): NonNullable<Policy['status']> {
    const now = Date.now();
    if (notApplied !== undefined && failure === undefined) {
      return notAppliedStatus(root, notApplied, now);
    }
    const copy = copyKey === undefined ? undefined : this.#policies.get(copyKey);
    const isCurrent = copy !== undefined && wanted !== undefined && isUpToDate(copy, wanted);
    return rootStatus(root, isCurrent ? copy : undefined, this.#options.settings.clusterName, failure, now);
  }
}
