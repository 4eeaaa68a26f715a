// Kinds of installed objects, and of objects that the commands read.
import type { Cluster } from '../../cluster/index.ts';
import { ALL_KINDS, type KubernetesObject, type ResourceType } from '../../resources/index.ts';
import { CliError } from '../errors.ts';

const type = (group: string, version: string, kind: string, resource: string, namespaced: boolean): ResourceType => ({
  group,
  version,
  kind,
  resource,
  namespaced,
});

export const CRDS = type('apiextensions.k8s.io', 'v1', 'CustomResourceDefinition', 'customresourcedefinitions', false);
export const NAMESPACES = type('', 'v1', 'Namespace', 'namespaces', false);
export const PODS = type('', 'v1', 'Pod', 'pods', true);
export const SERVICES = type('', 'v1', 'Service', 'services', true);
export const SECRETS = type('', 'v1', 'Secret', 'secrets', true);
export const DEPLOYMENTS = type('apps', 'v1', 'Deployment', 'deployments', true);
export const WEBHOOK_CONFIGURATIONS = ['Validating', 'Mutating'].map((what) =>
  type(
    'admissionregistration.k8s.io',
    'v1',
    `${what}WebhookConfiguration`,
    `${what.toLowerCase()}webhookconfigurations`,
    false,
  ),
);
/** The guard of the controller's rights. */
export const ACCESS_GUARDS = ['Binding', ''].map((what) =>
  type(
    'admissionregistration.k8s.io',
    'v1',
    `ValidatingAdmissionPolicy${what}`,
    what === '' ? 'validatingadmissionpolicies' : 'validatingadmissionpolicybindings',
    false,
  ),
);
const RBAC = 'rbac.authorization.k8s.io';
export const CLUSTER_BINDINGS = type(RBAC, 'v1', 'ClusterRoleBinding', 'clusterrolebindings', false);
export const CLUSTER_ROLES = type(RBAC, 'v1', 'ClusterRole', 'clusterroles', false);
export const ROLE_BINDINGS = type(RBAC, 'v1', 'RoleBinding', 'rolebindings', true);
export const ROLES = type(RBAC, 'v1', 'Role', 'roles', true);

/** Namespaced kinds whose objects with our labels `uninstall` deletes, in this order. */
export const OWNED_KINDS: readonly ResourceType[] = [
  // Kinds of operators that a cluster may not have.
  type('monitoring.coreos.com', 'v1', 'PrometheusRule', 'prometheusrules', true),
  type('monitoring.coreos.com', 'v1', 'PodMonitor', 'podmonitors', true),
  type('cert-manager.io', 'v1', 'Certificate', 'certificates', true),
  type('policy', 'v1', 'PodDisruptionBudget', 'poddisruptionbudgets', true),
  SERVICES,
  type('networking.k8s.io', 'v1', 'NetworkPolicy', 'networkpolicies', true),
  type('', 'v1', 'ConfigMap', 'configmaps', true),
  SECRETS,
  ROLE_BINDINGS,
  ROLES,
  type('', 'v1', 'ServiceAccount', 'serviceaccounts', true),
];

/** The type of an object, also of our own kinds before they are installed. @throws CliError when the cluster does not serve it */
export async function typeOf(cluster: Cluster, { apiVersion, kind }: KubernetesObject): Promise<ResourceType> {
  const own = ALL_KINDS.find((one) => `${one.group}/${one.version}` === apiVersion && one.kind === kind);
  const found = own ?? (await cluster.discovery.find(apiVersion, kind));
  if (found === undefined) {
    throw new CliError(`the cluster has no kind ${kind} in ${apiVersion}, which the values need`, {
      hint: 'Install its operator first (cert-manager, the Prometheus operator), or leave that value at its default.',
    });
  }
  return found;
}
