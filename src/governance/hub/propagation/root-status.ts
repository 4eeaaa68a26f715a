// The status of a Policy by those of its copies.
import { compareStrings } from '../../../go/index.ts';
import {
  type ComplianceState,
  type Condition,
  DEPENDENCIES_VALID,
  findCondition,
  type PendingTemplate,
  type Policy,
  type PolicyStatus,
  READY,
  type Readiness,
  RECONCILING,
  setCondition,
  setReadiness,
  STALLED,
} from '../../../resources/index.ts';
import { listed } from '../../../values/index.ts';
import { POLICY_REASONS } from '../../policy/policy-reasons.ts';
import type { Target } from '../../targets/targets.ts';
import type { RolloutReport } from '../revisions/rollout-report.ts';
import { worstCompliance } from '../../policy/worst-compliance.ts';

/** Clusters that a message names. */
const MAX_NAMED = 10;
/** Templates that wait, on all clusters together: each cluster can add as many as a Policy has. */
const MAX_PENDING = 1000;

/** The status of a Policy that applies nowhere. @param revisions undefined where none are kept */
export function notAppliedStatus(
  root: Policy,
  whyNot: Readiness,
  now: number,
  revisions?: RolloutReport,
): PolicyStatus {
  const readiness = revisions?.problem ?? whyNot;
  return {
    ...revisions?.fields,
    message: readiness.message,
    conditions: setReadiness(root.status?.conditions, readiness, root.metadata.generation ?? 0, now),
    observedGeneration: root.metadata.generation ?? 0,
  };
}

/** What a cluster reports about a Policy. */
export interface TargetResult {
  readonly target: Target;
  /** The copy with the present spec; undefined before it was written. */
  readonly copy: Policy | undefined;
  /** Why the copy could not be written. */
  readonly failure: Readiness | undefined;
}

/** A cluster with what its copy says about the present spec. */
interface Report extends TargetResult {
  readonly status: PolicyStatus;
}

/**
 * The status of a Policy with copies: the compliance of each cluster, and the worst of them. A cluster that does not
 * report has none, and nothing is Compliant while there is one.
 */
export function rootStatus(
  root: Policy,
  results: readonly TargetResult[],
  now: number,
  revisions?: RolloutReport,
): PolicyStatus {
  const reports = results
    .toSorted((left, right) => compareStrings(left.target.name, right.target.name))
    .map((result) => ({ ...result, status: reportedBy(result.copy) }));
  const compliant = worstCompliance(reports.map(({ status }) => status.compliant));
  const message = [revisions?.problem?.message ?? '', messageOf(reports)].filter((text) => text !== '').join('; ');
  const pending = pendingOf(reports);
  const generation = root.metadata.generation ?? 0;
  const readiness = revisions?.problem ?? readinessOf(reports);
  const own = setReadiness(root.status?.conditions, readiness, generation, now);
  return {
    ...revisions?.fields,
    ...(compliant === undefined ? {} : { compliant }),
    ...(message === '' ? {} : { message }),
    ...(pending.length === 0 ? {} : { pending }),
    status: reports.map(({ target, status }) => ({
      clustername: target.name,
      clusternamespace: target.namespace,
      ...(status.compliant === undefined ? {} : { compliant: status.compliant }),
    })),
    conditions: withDependencies(own, reports, generation, now),
    observedGeneration: generation,
  };
}

/** The status of a copy, unless it is about an older spec. */
function reportedBy(copy: Policy | undefined): PolicyStatus {
  return copy?.status?.observedGeneration === copy?.metadata.generation ? (copy?.status ?? {}) : {};
}

/** The message of the only cluster; of several, which have which compliance, the worst first. */
function messageOf(reports: readonly Report[]): string {
  const [first, ...others] = reports;
  if (others.length === 0) {
    return first?.failure?.message ?? first?.status.message ?? '';
  }
  const named = (state: ComplianceState | undefined): readonly string[] =>
    reports.filter(({ status }) => status.compliant === state).map(({ target }) => target.name);
  const groups = (['NonCompliant', 'Pending', undefined] as const).map(
    (state) => [state ?? 'not known', named(state)] as const,
  );
  return groups
    .filter(([, names]) => names.length > 0)
    .map(([state, names]) => `${state} on ${listed(names, MAX_NAMED)}`)
    .join('; ');
}

/** The templates that wait on any cluster, those that wait for the same on several once. */
function pendingOf(reports: readonly Report[]): readonly PendingTemplate[] {
  const all = reports.flatMap(({ status }) => status.pending ?? []);
  const distinct = new Map(all.map((one) => [JSON.stringify([one.template, one.reason, one.message]), one]));
  return [...distinct.values()].slice(0, MAX_PENDING);
}

/** The conditions with `DependenciesValid` of the copies: that of the first which has a problem. */
function withDependencies(
  own: readonly Condition[],
  reports: readonly Report[],
  observedGeneration: number,
  now: number,
): readonly Condition[] {
  const reported = reports.flatMap(({ status }) => findCondition(status.conditions, DEPENDENCIES_VALID) ?? []);
  const valid = reported.find(({ status }) => status !== 'True') ?? reported[0];
  return valid === undefined
    ? own.filter(({ type }) => type !== DEPENDENCIES_VALID)
    : setCondition(own, { ...valid, observedGeneration }, now);
}

/** The readiness of the cluster that is furthest from ready; of several clusters, its message names it. */
function readinessOf(reports: readonly Report[]): Readiness {
  const all = reports.map(({ target, failure, status }) => ({
    target,
    readiness: failure ?? readinessIn(status.conditions),
  }));
  const worst = (['stalled', 'reconciling', 'ready'] as const)
    .map((state) => all.find(({ readiness }) => readiness.state === state))
    .find((one) => one !== undefined);
  if (worst === undefined) {
    return EVALUATING;
  }
  const { target, readiness } = worst;
  return all.length === 1 ? readiness : { ...readiness, message: `${target.name}: ${readiness.message}` };
}

const EVALUATING: Readiness = {
  state: 'reconciling',
  reason: POLICY_REASONS.evaluating,
  message: 'the Policy is being evaluated',
};

function readinessIn(conditions: readonly Condition[] | undefined): Readiness {
  const ready = findCondition(conditions, READY);
  if (ready === undefined) {
    return EVALUATING;
  }
  const { reason, message } = ready;
  const isStalled = findCondition(conditions, STALLED) !== undefined;
  const isReconciling = findCondition(conditions, RECONCILING) !== undefined;
  return { state: isStalled ? 'stalled' : isReconciling ? 'reconciling' : 'ready', reason, message };
}
