// Kinds of installed objects, and of objects that the commands read.
import { knownKind, type ResourceType } from '../resources/index.ts';

export const CRDS = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
export const NAMESPACES = knownKind('v1', 'Namespace');
export const PODS = knownKind('v1', 'Pod');
export const SERVICES = knownKind('v1', 'Service');
export const SECRETS = knownKind('v1', 'Secret');
export const DEPLOYMENTS = knownKind('apps/v1', 'Deployment');
const ADMISSION = 'admissionregistration.k8s.io/v1';
export const WEBHOOK_CONFIGURATIONS = ['Validating', 'Mutating'].map((what) =>
  knownKind(ADMISSION, `${what}WebhookConfiguration`),
);
/** The guard of the controller's rights. */
export const ACCESS_GUARDS = ['Binding', ''].map((what) => knownKind(ADMISSION, `ValidatingAdmissionPolicy${what}`));
const RBAC = 'rbac.authorization.k8s.io/v1';
export const CLUSTER_BINDINGS = knownKind(RBAC, 'ClusterRoleBinding');
export const CLUSTER_ROLES = knownKind(RBAC, 'ClusterRole');
export const ROLE_BINDINGS = knownKind(RBAC, 'RoleBinding');
export const ROLES = knownKind(RBAC, 'Role');

/** Namespaced kinds whose objects with our labels `uninstall` deletes, in this order. */
export const OWNED_KINDS: readonly ResourceType[] = [
  // Kinds of operators that a cluster may not have.
  {
    group: 'monitoring.coreos.com',
    version: 'v1',
    kind: 'PrometheusRule',
    resource: 'prometheusrules',
    namespaced: true,
  },
  { group: 'monitoring.coreos.com', version: 'v1', kind: 'PodMonitor', resource: 'podmonitors', namespaced: true },
  { group: 'cert-manager.io', version: 'v1', kind: 'Certificate', resource: 'certificates', namespaced: true },
  knownKind('policy/v1', 'PodDisruptionBudget'),
  SERVICES,
  knownKind('networking.k8s.io/v1', 'NetworkPolicy'),
  knownKind('v1', 'ConfigMap'),
  SECRETS,
  ROLE_BINDINGS,
  ROLES,
  knownKind('v1', 'ServiceAccount'),
];
