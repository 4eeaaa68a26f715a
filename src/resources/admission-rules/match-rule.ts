/** `admissionregistration.k8s.io/v1` RuleWithOperations, with all defaults applied. */
export interface MatchRule {
  readonly operations: readonly string[];
  readonly apiGroups: readonly string[];
  readonly apiVersions: readonly string[];
  // `pods`, `pods/log`, `*` and the like, without defaults.
  readonly resources: readonly string[];
  readonly scope: string;
}
