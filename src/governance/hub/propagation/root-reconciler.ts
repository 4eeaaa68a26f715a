// Summarises the copies of a Policy in its status.
import type { Cluster } from '../../../cluster/index.ts';
import {
  GOVERNANCE_LABELS,
  keyOf,
  keyText,
  type ObjectKey,
  type Policy,
  type PolicyStatus,
  type Readiness,
} from '../../../resources/index.ts';
import { type Clock, type ObjectCache, type ReconcileResult, SYSTEM_CLOCK } from '../../../runtime/index.ts';
import { OwnObjects } from '../../policy/own-objects.ts';
import { copyName } from '../../targets/policy-copy.ts';
import type { Target, Targets } from '../../targets/targets.ts';
import { isDeclared } from '../../../rollout/index.ts';
import type { PolicyRevisions, RootRollout } from '../revisions/policy-revisions.ts';
import { rolloutReport } from '../revisions/rollout-report.ts';
import type { CopyPlan, CopyPlans } from './copy-plans.ts';
import type { CopyRecord, CopyRecords } from './copy-records.ts';
import { notAppliedStatus, rootStatus } from './root-status.ts';

/**
 * Shortest time between two statuses of a Policy on several clusters: a change on all of them at once gives a few writes,
 * each as long as there are clusters. Milliseconds.
 */
const BATCH_MS = 1000;

/** A copy, and what became of it. */
interface CopyState {
  readonly target: Target;
  /** Whether the Policy goes to its cluster. */
  readonly isWanted: boolean;
  readonly copy: Policy | undefined;
  readonly record: CopyRecord | undefined;
}

export interface RootReconcilerOptions {
  readonly cluster: Cluster;
  readonly targets: Pick<Targets, 'hasCopies'>;
  readonly plans: CopyPlans;
  readonly policies: ObjectCache<Policy>;
  /** The copies of a root. */
  readonly copiesOf: (root: ObjectKey) => readonly Policy[];
  readonly records: CopyRecords;
  /** Default: nobody keeps revisions. */
  readonly revisions?: Pick<PolicyRevisions, 'rolloutOf'> | undefined;
  readonly clock?: Clock;
}

/** Keeps the status of Policies that are no copies. */
export class RootReconciler {
  readonly #options: RootReconcilerOptions;
  readonly #roots: OwnObjects<Policy>;
  readonly #clock: Clock;
  /** When the last status of a Policy on several clusters was written. */
  readonly #written = new Map<string, number>();

  constructor(options: RootReconcilerOptions) {
    this.#options = options;
    this.#roots = new OwnObjects(options.cluster, options.policies);
    this.#clock = options.clock ?? SYSTEM_CLOCK;
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult> {
    const root = this.#roots.get(key);
    if (
      root === undefined ||
      root.metadata.deletionTimestamp !== undefined ||
      this.#options.targets.hasCopies(key.namespace ?? '')
    ) {
      this.#written.delete(keyText(key));
      return {};
    }
    const waitMs = (this.#written.get(keyText(key)) ?? -BATCH_MS) + BATCH_MS - this.#clock.now();
    if (waitMs > 0) {
      return { requeueAfterMs: waitMs };
    }
    const rollout = this.#options.revisions?.rolloutOf(root);
    if (rollout !== undefined && !isChecked(rollout)) {
      return {};
    }
    const plan = this.#options.plans.of(rollout?.served?.policy ?? root);
    const status = this.#statusOf(root, plan, rollout);
    const isWritten = status !== undefined && (await this.#roots.writeStatus(root, status, signal));
    if (isWritten && 'targets' in plan && plan.targets.length > 1) {
      this.#written.set(keyText(key), this.#clock.now());
    }
    return {};
  }

  /** Undefined while copies still have to be written or deleted: `observedGeneration` says that they were. */
  #statusOf(root: Policy, plan: CopyPlan | Readiness, rollout: RootRollout | undefined): PolicyStatus | undefined {
    const targets = 'targets' in plan ? plan.targets : [];
    const copies = this.#copiesFor(root, targets);
    const { revision } = rollout?.served ?? {};
    const report = rollout && rolloutReport(rollout.view, rollout.failure);
    const isBehind = (record: CopyRecord | undefined): boolean =>
      record?.rootGeneration !== root.metadata.generation || record?.revision !== revision;
    if (copies.some(({ record }) => isBehind(record))) {
      return undefined;
    }
    const results = copies
      .filter(({ isWanted, record }) => isWanted || record?.failure !== undefined)
      .map(({ target, copy, record }) => ({
        target,
        copy: copy?.metadata.generation === record?.copyGeneration ? copy : undefined,
        failure: record?.failure,
      }));
    const failure = results.find((result) => result.failure !== undefined)?.failure;
    return 'targets' in plan
      ? rootStatus(root, results, Date.now(), report)
      : notAppliedStatus(root, failure ?? plan, Date.now(), report);
  }

  /** The copies for the clusters of a root, and those that have to go. */
  #copiesFor(root: Policy, targets: readonly Target[]): readonly CopyState[] {
    const { policies, records, copiesOf } = this.#options;
    const name = copyName(keyOf(root)) ?? '';
    const wanted = targets.map((target) => {
      const key = { namespace: target.namespace, name };
      return { target, isWanted: true, copy: policies.get(key), record: records.get(key) };
    });
    const namespaces = new Set(targets.map(({ namespace }) => namespace));
    const others = copiesOf(keyOf(root)).filter(({ metadata }) => !namespaces.has(metadata.namespace ?? ''));
    return [
      ...wanted,
      ...others.map((copy) => ({ target: targetOf(copy), isWanted: false, copy, record: records.get(keyOf(copy)) })),
    ];
  }
}

/** Whether a change has a revision that was checked, or why it has none is known: before, there is nothing new to say. */
function isChecked({ view, failure }: RootRollout): boolean {
  const newest = view.revisions.at(-1);
  return failure !== undefined || (isDeclared(view) && (newest?.state !== 'Candidate' || newest.reason !== ''));
}

/** The cluster that a copy was written for. */
function targetOf({ metadata }: Policy): Target {
  const { namespace = '', labels } = metadata;
  return { name: labels?.[GOVERNANCE_LABELS.clusterName] ?? namespace, namespace };
}
