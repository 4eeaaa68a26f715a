export type { BucketResult } from './buckets/admit.ts';
export type { AdmitOptions } from './buckets/bucket-review.ts';
export { loadBuckets, loadReviewMatcher } from './buckets/load-buckets.ts';
export type { Buckets } from './buckets/load-buckets.ts';
export type { PolicyTable } from './buckets/policy-table.ts';
export type { ReviewExclusion, ReviewMatcher } from './buckets/review-matcher.ts';
export { BuiltinSettings } from './builtin-settings.ts';
export type { RequestConstraints } from './builtin-settings.ts';
export { isGranted } from './host-capabilities.ts';
export type { KindSchema, LintFinding, NullRead, SettingsNeed } from './cel-policy/index.ts';
export { ExceptionTable, exceptionsKey } from './exceptions/exception-table.ts';
export { EngineError } from './values/errors.ts';
export { checkSettings, evaluate, readReview, refusedParameters } from './evaluate.ts';
export { templateInMessage } from './pod-templates/template-verdict.ts';
export { FUEL_PER_SECOND, MATCH_CONDITIONS, MAX_ANSWER_BYTES } from './evaluator.ts';
export type { OnUnitStart } from './evaluator.ts';
export type { MonitoredVerdict } from './monitored-verdict.ts';
export type { Observation, Route } from './verdict/observation.ts';
export { createGuest, createManifestsGuest, manifestProblems } from './guests/index.ts';
export { settingsMatch } from './guests/index.ts';
export type { PolicyGuest } from './guests/index.ts';
export { diff, isEqual } from './verdict/json-patch.ts';
export type { PatchOperation } from './verdict/json-patch.ts';
export { canonicalJson, isJsonObject } from './values/json-text.ts';
export type { JsonObject, JsonValue } from './values/json-text.ts';
export { UnknownObject } from './review/object-lookup.ts';
export type { LookupResult, ObjectLookup, ObjectReference } from './review/object-lookup.ts';
export { creationOf, ObjectReview, updateOf } from './review/object-review.ts';
export { judgeObject } from './buckets/object-verdict.ts';
export type { MemberVerdict, ObjectJudgement, ObjectVerdict } from './buckets/object-verdict.ts';
export type { NamespaceKeys, ParametersDefinition, ParametersResource } from './parameters/parameters-definition.ts';
export type { ValidationBudget } from './parameters/validation-budget.ts';
export { settingsExpressionProblem } from './parameters/load-settings.ts';
export { exportPolicy, importPolicies } from './kubernetes-policies.ts';
export type { ExportedPolicy, ExportedRequests } from './cel-policy/export-policy.ts';
export { createFailedPolicy, createPolicy } from './loaded-policy.ts';
export type { LoadedPolicy, PolicyOptions } from './loaded-policy.ts';
export { describeValue, FieldReader, fieldPathText, faultText } from './values/field-reader.ts';
export type { FieldFault, KeyPath } from './values/field-reader.ts';
export { parsePolicies } from './definition/policies-file.ts';
export { definitionHash, settingsHash } from './definition/policy-definition.ts';
export type {
  FailurePolicy,
  ModuleUse,
  PolicyDefinition,
  SinglePolicyDefinition,
} from './definition/policy-definition.ts';
export { constantResult } from './definition/group-expression.ts';
export { isCapabilityPattern, readPolicyDefinition } from './definition/policy-reader.ts';
export type { PolicyFault } from './definition/policy-reader.ts';
export { ReviewError } from './review/review-body.ts';
export type { ReviewErrorCode } from './review/review-body.ts';
export type { Verdict, VerdictCause } from './verdict/verdict.ts';
export { boundedVerdict } from './verdict/verdict-limits.ts';
export type { Review } from './review/admission-review.ts';
