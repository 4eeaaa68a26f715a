/** Rights to resources (`PolicyRule` of rbac.authorization.k8s.io/v1). */
export interface AccessRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  /** The names of objects. Default: all. Lists and watches then need a field selector for `metadata.name`. */
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}
