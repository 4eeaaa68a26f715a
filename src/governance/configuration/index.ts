export {
  complianceMessage,
  complianceState,
  conditionType,
  customComplianceMessage,
  failedCustomMessage,
  noTemplatesMessage,
  resultBatches,
  templateCondition,
  withInterval,
} from './compliance-message.ts';
export type { ObjectResult, TemplateCondition } from './compliance-message.ts';
export { REASONS } from './compliance-reasons.ts';
export type { DefinitionContext, DefinitionResolver, ResolvedDefinition } from './desired-objects.ts';
export { isUnchanged, objectDiff } from './object-diff.ts';
export { afterDryRun, afterWrite } from './object-plan.ts';
export type { DryRunOutcome, ObjectPlan, WriteOutcome } from './object-plan.ts';
export { ObjectReadError } from './object-source.ts';
export type { ObjectTemplate } from './object-template.ts';
export type { ObjectSource } from './object-source.ts';
export { planEvaluation, templateHistories } from './plan-evaluation.ts';
export type { EvaluatedPolicy, ObjectTemplatePlan } from './plan-evaluation.ts';
export { CONDENSED_NAME, mergedRelatedObjects, objectEntry, relatedKey, relatedObjects } from './related-objects.ts';
export type { RelatedObjectEntry } from './related-objects.ts';
export { NamespaceSelectorError, selectNamespaces } from './select-namespaces.ts';
