/** Used fields of a PolicyRule (`rbac.authorization.k8s.io/v1`). */
export interface AccessRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}
