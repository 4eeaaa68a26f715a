export {
  canonicalDependencies,
  checkDependencyCount,
  MAX_TEMPLATE_DEPENDENCIES,
  policySetsOf,
} from './canonical-dependencies.ts';
export type { PolicySetLookup } from './canonical-dependencies.ts';
export { complianceOf } from './compliance-of.ts';
export type { Compliance } from './compliance-of.ts';
export { DependencyError, isPolicyKind, objectId, readDependencies, requirementOf } from './dependency.ts';
export type { Dependency, DependencyErrorCode, Requirement } from './dependency.ts';
export { partText, requirementText } from './graph/dependency-text.ts';
export { DependencyGraph, MAX_GRAPH_DEPENDENCIES } from './graph/dependency-graph.ts';
export type { DependencyFinding, DependencyTarget } from './graph/dependency-graph.ts';
export { explainPending } from './graph/explain-pending.ts';
export type { Explanation } from './graph/explain-pending.ts';
export { graphPolicy } from './graph/graph-policy.ts';
export type { GraphPolicy, GraphSource, GraphTemplate } from './graph/graph-policy.ts';
export { graphAsDot, graphAsMermaid, graphAsText } from './graph/render-graph.ts';
export { conditionsOf, kstatusOf } from './kstatus.ts';
export type { ObjectState } from './kstatus.ts';
export { pendingMessage, templateErrorMessage } from './pending-message.ts';
export { hasUniqueNames, planTemplate } from './plan-template.ts';
export type { ExistingTemplate, TemplateMapping, TemplatePlan, TemplateView } from './plan-template.ts';
export { unionDependencies } from './union-dependencies.ts';
export type { DependencyUnion } from './union-dependencies.ts';
export { pendingDependencies, unmetDependencies, unmetDependency } from './unmet-dependencies.ts';
export type { DependencyLookup, DependencyObject, UnmetDependency, UnmetReason } from './unmet-dependencies.ts';
