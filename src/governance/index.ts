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
