export type { AccessRule } from './access-rule.ts';
export type { MatchRule } from './admission-rules/match-rule.ts';
export type { ConditionUpdate } from './conditions.ts';
export { findCondition, isConditionTrue, removeCondition, setCondition, timeText } from './conditions.ts';
export type { Condition, ConditionStatus } from './conditions.ts';
export {
  addErrors,
  duplicate,
  forbidden,
  invalid,
  invalidText,
  limitErrors,
  MAX_ERROR_CHARACTERS,
  notSupported,
  required,
  tooMany,
} from './field-error.ts';
export type { FieldError } from './field-error.ts';
export { isJsonObject, own, textOf, textsOf, valueAt } from '../values/index.ts';
export type { JsonObject, JsonValue } from '../values/index.ts';
export { LAST_APPLIED_ANNOTATION } from './kubernetes-object.ts';
export type {
  KubernetesObject,
  ManagedFieldsEntry,
  MutableObject,
  ObjectMeta,
  OwnerReference,
} from './kubernetes-object.ts';
export { labelsText, MANAGED_BY, MANAGED_BY_SELECTOR } from './managed-by.ts';
export { guessedKind } from './guessed-kind.ts';
export { apiVersionOf, groupResourceOf, groupVersionOf, keyOf, keyText } from './resource-type.ts';
export type { GroupVersionKind, GroupVersionResource, ObjectKey, ResourceType } from './resource-type.ts';
export type { Schema, ValidationRule } from './schema.ts';
export type { CustomColumn, TableColumn } from './table-column.ts';
export { FieldSelector, parseFieldSelector } from './field-selector.ts';
export { parseLabelSelector } from './label-selector-text.ts';
export { labelErrors, labelSelector, labelSelectorErrors, Selector, SelectorError } from './selectors.ts';
export type { LabelRequirement, Labels } from './selectors.ts';
export { hasOrAll, isInNamespace, ruleMatches, splitResource, unmetConstraint } from './admission-rules/rule-match.ts';
export type { RuleRequest } from './admission-rules/rule-match.ts';
export { impossibleRules } from './admission-rules/impossible-rules.ts';
export type { RequestRule } from './admission-rules/impossible-rules.ts';
export { kindName, matchedKinds, unservedRules } from './admission-rules/served-rules.ts';
export type { MatchedKinds, ServedResource, UnservedRule } from './admission-rules/served-rules.ts';
export { RuleSet } from './admission-rules/rule-set.ts';
export { unionRules } from './admission-rules/union-rules.ts';
export { ageOf, humanDuration } from './kubernetes/age.ts';
export { isRemovedVersion } from './kubernetes/removed-versions.ts';
export { allBuiltinKinds, builtinKind, builtinKinds, knownKind, kubernetesKind } from './kubernetes/builtin-kinds.ts';
export {
  componentNameOf,
  componentOf,
  componentSchema,
  kubernetesSchema,
  QUANTITY_FORMAT,
} from './kubernetes/component-schemas.ts';
export { kubernetesOpenApi, kubernetesVersion, tableColumnsOf } from './kubernetes/openapi-data.ts';
export type { OpenApiSchema } from './kubernetes/openapi-data.ts';
export { OpenApiComponents, OpenApiSchemas } from './kubernetes/open-api-schemas.ts';
export { selectableFieldsOf } from './kubernetes/selectable-fields.ts';
export { applyJsonPatch, applyPatchSteps, MAX_SHIFTED_ELEMENTS } from './patch/json-patch.ts';
export type { PatchStep } from './patch/json-patch.ts';
export { applyMergePatch } from './patch/merge-patch.ts';
export { checkDepth, MAX_PATCH_DEPTH, PatchError } from './patch/patch-error.ts';
export { withObjectMeta } from './object-meta-schema.ts';
export {
  ADMISSION_POLICIES,
  ADMISSION_POLICY_GROUPS,
  CLUSTER_ADMISSION_POLICIES,
  CLUSTER_ADMISSION_POLICY_GROUPS,
  DEFAULT_POLICY_SERVER,
} from './policies/admission-policies.ts';
export type { AdmissionPolicy, ClusterAdmissionPolicy } from './policies/admission-policies.ts';
export {
  CONDITIONS,
  MAX_MONITORED_REQUESTS,
  POLICIES_GROUP,
  PORTCULLIS_GROUP,
} from './kind-declarations/common-schemas.ts';
export { excessText, MAX_PARAMETERS_LENGTH, namespaceText, parametersText } from './policies/parameter-objects.ts';
export { MAX_NAMESPACE_KEYS, MAX_OVERRIDABLE_KEYS, MAX_SETTINGS_EXPRESSION } from './policies/policy-parameters.ts';
export type { PolicyParameters } from './policies/policy-parameters.ts';
export { monitoredText } from './policies/monitored-text.ts';
export { CHECKING, ISSUE_REASONS, issueText } from './policies/policy-issue.ts';
export {
  MAX_ISSUE_LENGTH,
  MAX_ISSUES,
  MAX_LISTED_REVISIONS,
  MAX_WARNING_LENGTH,
  MAX_WARNINGS,
  MODULES_KEPT,
  POLICY_ENFORCED,
} from './kind-declarations/common-schemas.ts';
export { MAX_AUDIT_MESSAGE, MAX_AUDITED_KINDS, MAX_LISTED_FINDINGS } from './kind-declarations/audit-status.ts';
export type { AuditStatus } from './kind-declarations/audit-status.ts';
export { MAX_PREVIEW_MESSAGE } from './kind-declarations/revision-preview.ts';
export type { RevisionPreview } from './kind-declarations/revision-preview.ts';
export { unknownAudit } from './policies/unknown-audit.ts';
export type { AuditAbsence } from './policies/unknown-audit.ts';
export type {
  MonitoredRequest,
  MonitoredStatus,
  PolicyIssue,
  AdmissionPolicyStatus,
  PolicyPhase,
  ContextAwareResource,
  RefreshedStatus,
  RevisionSummary,
  CopiesStatus,
  ServingStatus,
} from './kind-declarations/common-schemas.ts';
export { ALL_KINDS, NETWORK_POLICY_KINDS, OWN_KINDS, POLICY_KINDS, productKind } from './own-kinds/own-kinds.ts';
export { customResourceDefinition } from './kind-declarations/own-kind.ts';
export type { OwnKind } from './kind-declarations/own-kind.ts';
export {
  ANNOTATIONS,
  refreshRequest,
  CONTEXT_AWARE_LABEL,
  AUDITOR_ACCOUNT,
  AUDITOR_FIELD_MANAGER,
  AUDITOR_LABEL,
  CONTROLLER_FIELD_MANAGER,
  KUBEWARDEN_FINALIZERS,
  ROLLBACK_FAILED,
  isGroupSpec,
  isNamespacedPolicyId,
  isRevisedGovernanceKind,
  namespaceOfPolicyId,
  POLICY_SERVER_LABEL,
  POLICY_UID_LABEL,
  policyId,
  revisionName,
} from './policies/policy-names.ts';
export type { AdmissionPolicyObject, AdmissionPolicySpec } from './policies/policy-names.ts';
export {
  effectiveFailurePolicy,
  usesAuthorizer,
  equivalentGroups,
  GUARDED_GROUPS,
  isNamespacedBucket,
  isOwnBucket,
  NAMESPACE_NAME_LABEL,
  podTemplatesAction,
  policyMatch,
  policyOfBucket,
} from './policies/policy-match.ts';
export { MAX_EXCEPTION_POLICIES, MAX_USED_BY, POLICY_EXCEPTIONS } from './policies/policy-exception.ts';
export type { PolicyException } from './policies/policy-exception.ts';
export {
  acceptedTerms,
  exceptedPolicyId,
  exceptionProblems,
  exceptionTerms,
  EXPIRING_SOON_MS,
  expiryOf,
} from './policies/exception-terms.ts';
export type { ExceptionTerms } from './policies/exception-terms.ts';
export { DEFAULT_EXEMPT_NAMESPACES, outsideExemptNamespaces } from './policies/exempt-namespaces.ts';
export {
  CLUSTER_COLLECTORS,
  isPrivileged,
  PRIVILEGED_GROUPS,
  privilegedNames,
  TOKEN_REQUESTS,
} from './policies/namespaced-exemptions.ts';
export type { MatchCondition, MatchSelector, PodTemplatesAction, PolicyMatch } from './policies/policy-match.ts';
export {
  isPodTemplatesBucket,
  NAMESPACED_WORKLOADS,
  PODS,
  podTemplatesBucket,
  webhookMatches,
  workloadOf,
  WORKLOADS,
} from './policies/pod-templates.ts';
export type { Workload } from './policies/pod-templates.ts';
export {
  MAX_PARAMETERS_FINGERPRINT,
  POLICY_REVISIONS,
  revisionParts,
  servesInsteadOf,
  snapshotOf,
} from './policies/policy-revision.ts';
export type { PolicyRevision, ServingTurn } from './policies/policy-revision.ts';
export { DEGRADED_REJECTED, DISARMED } from './kind-declarations/revision-states.ts';
export type { RevisionState } from './kind-declarations/revision-states.ts';
export { revisionMismatch } from './policies/revision-identity.ts';
export { CONTROLLER_REPLICAS } from './policies/controller-replica.ts';
export type { ControllerReplica } from './policies/controller-replica.ts';
export { MAX_DEVIATIONS, POLICY_SERVER_REPLICAS } from './policies/policy-server-replica.ts';
export type { PolicyServerReplica } from './policies/policy-server-replica.ts';
export { POLICY_SERVERS } from './policies/policy-server.ts';
export type { PolicyServerObject } from './policies/policy-server.ts';
export { READY, RECONCILING, setReadiness, setUninstalled, UNINSTALLED, STALLED } from './readiness.ts';
export type { Readiness } from './readiness.ts';
export { CERTIFICATE_POLICIES } from './governance/certificate-policy.ts';
export type {
  CertificatePolicy,
  NamespaceCertificates,
  NonCompliantCertificate,
} from './governance/certificate-policy.ts';
export { CONFIGURATION_POLICIES } from './governance/configuration-policy.ts';
export type { ConfigurationPolicy, ObjectTemplateStatus, RelatedObject } from './governance/configuration-policy.ts';
export { GOVERNANCE_KINDS } from './governance/governance-kinds.ts';
export {
  DEPENDENCIES_VALID,
  GOVERNANCE_ANNOTATIONS,
  GOVERNANCE_GROUP,
  GOVERNANCE_LABELS,
  PRUNE_FINALIZER,
} from './governance/governance-names.ts';
export { MAX_HISTORY } from './governance/governance-schemas.ts';
export type { ComplianceState } from './governance/governance-schemas.ts';
export { POLICY_SETS } from './governance/policy-set.ts';
export type { PolicySet } from './governance/policy-set.ts';
export { MAX_DEPENDENCIES, POLICIES } from './governance/policy.ts';
export type {
  PendingDependency,
  PendingTemplate,
  Policy,
  PolicyDependency,
  PolicyHistoryEntry,
  PolicyStatus,
  PolicyTemplate,
  TemplateDetails,
  TemplateState,
} from './governance/policy.ts';
export { NETWORK_POLICY_PROVIDERS } from './network-policy/network-policy-provider.ts';
export type { NetworkPolicyProvider } from './network-policy/network-policy-provider.ts';
export { NETWORK_POLICY_STATUS_MANAGER, NETWORK_POLICY_STATUSES } from './network-policy/network-policy-status.ts';
export type { FeatureEntry, NetworkPolicyStatus, ProviderEntry } from './network-policy/network-policy-status.ts';
export { withoutManagedFields } from './without-managed-fields.ts';
export { REPORT_FORMATS, REPORT_RESULTS, REPORT_SEVERITIES, reportDefinitions } from './reports/open-reports.ts';
export type { OpenReport, ReportApi, ReportResult, ReportSummary } from './reports/open-reports.ts';
