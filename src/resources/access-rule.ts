/** `rbac.authorization.k8s.io/v1` PolicyRule, as far as it is used. */
export interface AccessRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}
