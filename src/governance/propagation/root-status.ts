// The status of a Policy by that of its copy.
import {
  type Condition,
  DEPENDENCIES_VALID,
  findCondition,
  type Policy,
  READY,
  type Readiness,
  RECONCILING,
  setCondition,
  setReadiness,
  STALLED,
} from '../../resources/index.ts';
import { POLICY_REASONS, type PolicyStatus } from '../policy-reasons.ts';

/** A Policy that applies nowhere, and why. */
export interface NotApplied {
  readonly reason: string;
  readonly message: string;
  /** Whether nothing changes without a change by a user. */
  readonly isStalled: boolean;
}

/** The status of a Policy that applies nowhere. */
export function notAppliedStatus(root: Policy, { reason, message, isStalled }: NotApplied, now: number): PolicyStatus {
  const readiness: Readiness = { state: isStalled ? 'stalled' : 'ready', reason, message };
  return {
    message,
    conditions: setReadiness(root.status?.conditions, readiness, root.metadata.generation ?? 0, now),
    observedGeneration: root.metadata.generation ?? 0,
  };
}

/**
 * The status of a Policy with a copy.
 * @param copy the copy with the present spec; undefined before it was written
 * @param failure the failure of the pass that ends with this status
 */
export function rootStatus(
  root: Policy,
  copy: Policy | undefined,
  clusterName: string,
  failure: Readiness | undefined,
  now: number,
): PolicyStatus {
  const isSeen = copy?.status?.observedGeneration === copy?.metadata.generation;
  const { compliant, message: reported, pending, conditions } = (isSeen ? copy?.status : undefined) ?? {};
  const message = failure?.message ?? reported ?? '';
  const generation = root.metadata.generation ?? 0;
  const readiness = failure ?? readinessOf(conditions);
  const cluster = { clustername: clusterName, clusternamespace: clusterName };
  return {
    ...(compliant === undefined ? {} : { compliant }),
    ...(message === '' ? {} : { message }),
    ...(pending === undefined ? {} : { pending }),
    status: [{ ...cluster, ...(compliant === undefined ? {} : { compliant }) }],
    conditions: withDependencies(
      setReadiness(root.status?.conditions, readiness, generation, now),
      conditions,
      root,
      now,
    ),
    observedGeneration: generation,
  };
}

/** The conditions with `DependenciesValid` of the copy. */
function withDependencies(
  own: readonly Condition[],
  ofCopy: readonly Condition[] | undefined,
  { metadata }: Policy,
  now: number,
): readonly Condition[] {
  const valid = findCondition(ofCopy, DEPENDENCIES_VALID);
  return valid === undefined
    ? own.filter(({ type }) => type !== DEPENDENCIES_VALID)
    : setCondition(own, { ...valid, observedGeneration: metadata.generation ?? 0 }, now);
}

/** The readiness of a copy, for its root. */
function readinessOf(conditions: readonly Condition[] | undefined): Readiness {
  const ready = findCondition(conditions, READY);
  if (ready === undefined) {
    return { state: 'reconciling', reason: POLICY_REASONS.evaluating, message: 'the Policy is being evaluated' };
  }
  const { reason, message } = ready;
  const isStalled = findCondition(conditions, STALLED) !== undefined;
  const isReconciling = findCondition(conditions, RECONCILING) !== undefined;
  return { state: isStalled ? 'stalled' : isReconciling ? 'reconciling' : 'ready', reason, message };
}
