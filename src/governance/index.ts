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
} from './dependencies/index.ts';
export type {
  Dependency,
  DependencyFinding,
  DependencyLookup,
  DependencyObject,
  Explanation,
  GraphPolicy,
  GraphSource,
  UnmetDependency,
  UnmetReason,
} from './dependencies/index.ts';
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
