/** The API group of roles and bindings. */
export const RBAC_GROUP = 'rbac.authorization.k8s.io';

export const ROLES = { group: RBAC_GROUP, resource: 'roles' } as const;
export const CLUSTER_ROLES = { group: RBAC_GROUP, resource: 'clusterroles' } as const;
export const ROLE_BINDINGS = { group: RBAC_GROUP, resource: 'rolebindings' } as const;
export const CLUSTER_ROLE_BINDINGS = { group: RBAC_GROUP, resource: 'clusterrolebindings' } as const;

/** The group whose members have all rights, whatever RBAC says. */
export const MASTERS_GROUP = 'system:masters';
