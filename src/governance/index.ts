export { evaluateCertificates } from './certificates/index.ts';
export type { CertificateEvaluation, CertificateSpec, CompliancyDetails } from './certificates/index.ts';
export {
  canonicalDependencies,
  complianceOf,
  DependencyError,
  DependencyGraph,
  explainPending,
  graphAsDot,
  graphAsMermaid,
  graphAsText,
  graphPolicy,
  isPolicyKind,
  objectId,
  requirementText,
} from './dependencies/index.ts';
export type {
  Dependency,
  DependencyFinding,
  DependencyLookup,
  DependencyObject,
  Explanation,
  GraphPolicy,
  GraphSource,
  Requirement,
  UnmetDependency,
  UnmetReason,
} from './dependencies/index.ts';
export { GovernanceControllers } from './governance-controllers.ts';
export type { GovernanceOptions } from './governance-controllers.ts';
export { registerGovernanceMetrics } from './governance-metrics.ts';
export {
  GOVERNANCE_ACCOUNT,
  GOVERNANCE_ACCOUNT_RULES,
  GOVERNANCE_CONTROLLER_RULES,
  governanceNamespaceRules,
} from './governance-rules.ts';
export { DEFAULT_GOVERNANCE_SETTINGS, isGoverned } from './governance-settings.ts';
export type { GovernanceMode, GovernanceSettings } from './governance-settings.ts';
export { rootOf } from './propagation/replicated-policy.ts';
export { isRunning, OTHER_CONTROLLERS, OtherControllers } from './other-controllers.ts';
export {
  hasTemplates,
  namespaceGate,
  NO_TEMPLATE_OBJECTS,
  resolveHubTemplates,
  resolveTemplates,
} from './templates/index.ts';
export type {
  ListAnswer,
  NoAnswer,
  ObjectAnswer,
  ReadGate,
  TemplateLookup,
  TemplateObjects,
  TemplateOptions,
  TemplateResult,
} from './templates/index.ts';
