export { afterPrevalidation } from './after-prevalidation.ts';
export type { PrevalidatedRevision, PrevalidationOutcome } from './after-prevalidation.ts';
export { creation, planRollout } from './plan-rollout.ts';
export { REASONS } from './reasons.ts';
export {
  answeringRevision,
  cannotServe,
  deadlineOf,
  desiredRevision,
  evaluatesAs,
  goalRevision,
  handledRefresh,
  hasFailed,
  hasOtherParameters,
  hasServed,
  isDeclared,
  isFailedOn,
  isFailurePolicyInForce,
  isLoadedOn,
  isServingOn,
  isSwitchedTo,
  isUnservable,
  lastGoodRevision,
  lastServedRevision,
  rollbackOf,
  servingRevision,
} from './revision-choice.ts';
export { fitting, revisionSummaries } from './revision-summaries.ts';
export { lastAppliedSpec } from './revisions/last-applied.ts';
export { revisionFacts, RevisionStore } from './revisions/revision-store.ts';
export { PREVIOUS, rollBack } from './revisions/rollbacks.ts';
export {
  MAX_DISARM_REASON,
  MAX_HISTORY_LIMIT,
  MAX_PROGRESS_DEADLINE_MS,
  MIN_PROGRESS_DEADLINE_MS,
  parseRevisionNumber,
  parseRolloutAnnotations,
} from './rollout-settings.ts';
export type { AnnotationProblem } from './rollout-settings.ts';
export { DEFAULT_ROLLOUT_SETTINGS } from './rollout-view.ts';
export type {
  DegradedBehaviour,
  ReplicaFacts,
  ReplicaRevisionFacts,
  RevisionFacts,
  RolloutPlan,
  RolloutRules,
  RolloutSettings,
  RolloutStep,
  RolloutStrategy,
  RolloutView,
  UnservedBehaviour,
} from './rollout-view.ts';
