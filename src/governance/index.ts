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
