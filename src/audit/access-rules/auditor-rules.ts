// Access rules of the auditor. It may not read Secrets, and nothing by `*`.
import {
  type AccessRule,
  GOVERNANCE_GROUP,
  GOVERNANCE_KINDS,
  NETWORK_POLICY_KINDS,
  POLICIES_GROUP,
  POLICY_EXCEPTIONS,
  POLICY_KINDS,
  POLICY_REVISIONS,
  POLICY_SERVERS,
  PORTCULLIS_GROUP,
  REPORT_FORMATS,
} from '../../resources/index.ts';

const READ = ['get', 'list', 'watch'] as const;

/** Rights in the whole cluster that an auditor cannot do without. */
export const AUDITOR_RULES: readonly AccessRule[] = [
  { apiGroups: [POLICIES_GROUP], resources: POLICY_KINDS.map(({ resource }) => resource), verbs: READ },
  { apiGroups: [PORTCULLIS_GROUP], resources: [POLICY_EXCEPTIONS.resource], verbs: ['list', 'watch'] },
  {
    apiGroups: [POLICIES_GROUP],
    resources: POLICY_KINDS.map(({ resource }) => `${resource}/status`),
    verbs: ['patch'],
  },
  { apiGroups: [PORTCULLIS_GROUP], resources: [`${POLICY_EXCEPTIONS.resource}/status`], verbs: ['patch'] },
  // It changes reports with its labels only, which RBAC cannot say.
  ...Object.values(REPORT_FORMATS).map(({ reports, clusterReports }) => ({
    apiGroups: [reports.group],
    resources: [reports.resource, clusterReports.resource],
    verbs: [...READ, 'create', 'update', 'delete'],
  })),
];

/** Rights in the namespace of the product: previews, and Leases, by which auditors know of each other. */
export const AUDITOR_NAMESPACE_RULES: readonly AccessRule[] = [
  { apiGroups: [PORTCULLIS_GROUP], resources: [POLICY_REVISIONS.resource], verbs: READ },
  // A guard limits it to `status.preview`.
  { apiGroups: [PORTCULLIS_GROUP], resources: [`${POLICY_REVISIONS.resource}/status`], verbs: ['patch'] },
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'list', 'create', 'update', 'delete'] },
];

/** Resources of Kubernetes that policies are mostly for, by group. */
const KUBERNETES: Readonly<Record<string, readonly string[]>> = {
  '': [
    'configmaps',
    'endpoints',
    'limitranges',
    'namespaces',
    'nodes',
    'persistentvolumeclaims',
    'persistentvolumes',
    'pods',
    'podtemplates',
    'replicationcontrollers',
    'resourcequotas',
    'serviceaccounts',
    'services',
  ],
  'admissionregistration.k8s.io': [
    'mutatingwebhookconfigurations',
    'validatingadmissionpolicies',
    'validatingadmissionpolicybindings',
    'validatingwebhookconfigurations',
  ],
  'apiextensions.k8s.io': ['customresourcedefinitions'],
  apps: ['controllerrevisions', 'daemonsets', 'deployments', 'replicasets', 'statefulsets'],
  autoscaling: ['horizontalpodautoscalers'],
  batch: ['cronjobs', 'jobs'],
  'gateway.networking.k8s.io': ['gatewayclasses', 'gateways', 'grpcroutes', 'httproutes'],
  'networking.k8s.io': ['ingressclasses', 'ingresses', 'networkpolicies'],
  policy: ['poddisruptionbudgets'],
  'rbac.authorization.k8s.io': ['clusterrolebindings', 'clusterroles', 'rolebindings', 'roles'],
  'scheduling.k8s.io': ['priorityclasses'],
  'storage.k8s.io': ['csidrivers', 'storageclasses'],
};

/** Kinds that it may read by default. Administrators add others with ClusterRoles that have AUDITOR_LABEL. */
export const AUDITOR_READ_RULES: readonly AccessRule[] = [
  ...Object.entries(KUBERNETES).map(([group, resources]) => ({ apiGroups: [group], resources, verbs: READ })),
  { apiGroups: [POLICIES_GROUP], resources: [POLICY_SERVERS.resource], verbs: READ },
  { apiGroups: [PORTCULLIS_GROUP], resources: NETWORK_POLICY_KINDS.map(({ resource }) => resource), verbs: READ },
  { apiGroups: [GOVERNANCE_GROUP], resources: GOVERNANCE_KINDS.map(({ resource }) => resource), verbs: READ },
];
