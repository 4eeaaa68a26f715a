export {
  DependencyGraph,
  explainPending,
  graphAsDot,
  graphAsMermaid,
  graphAsText,
  isGovernancePolicyKind,
  requirementText,
} from './dependencies/index.ts';
export type {
  DependencyLookup,
  GraphPolicy,
  PendingExplanation,
  Requirement,
  UnmetDependency,
} from './dependencies/index.ts';
export { GovernanceControllers } from './governance-controllers.ts';
export { POLICY_REASONS } from './policy/policy-reasons.ts';
export { neededRights } from './rights/needed-rights.ts';
export type { NeededRight } from './rights/needed-rights.ts';
export { rootOf } from './targets/policy-copy.ts';
export { isRunning, OtherControllers } from './other-controllers.ts';
export { uninstalledGovernanceStatus } from './uninstalled-status.ts';
export { unsupportedKind } from './policy/unsupported-kinds.ts';
export { DependencyReader } from './policy-graph/dependency-reader.ts';
export { clusterPolicies, dependencyFindings, filePolicies, withinNamespace } from './policy-graph/policy-graph.ts';
export type { PolicyGraph, PolicyManifest } from './policy-graph/policy-graph.ts';
export { RIGHTS_ROLE } from './rights/rights-role.ts';
