// The default ClusterRoles and ClusterRoleBindings of Kubernetes 1.34 (Apache-2.0), without those of components that an
// embedded cluster does not run.
import type { KubernetesObject } from '../../../resources/index.ts';
import { AUTHENTICATED_GROUP, UNAUTHENTICATED_GROUP } from '../request/identities.ts';
import { MASTERS_GROUP, RBAC_GROUP } from './rbac-resources.ts';

const API_VERSION = `${RBAC_GROUP}/v1`;

const READ = ['get', 'list', 'watch'];
const WRITE = ['create', 'delete', 'deletecollection', 'patch', 'update'];
const READ_WRITE = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

interface Rule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
}

/** The end of the label `rbac.authorization.k8s.io/aggregate-to-…`. */
type Aggregate = 'admin' | 'edit' | 'view';

const aggregationLabel = (aggregate: Aggregate): Readonly<Record<string, string>> => ({
  [`${RBAC_GROUP}/aggregate-to-${aggregate}`]: 'true',
});

function rule(verbs: readonly string[], group: string, resources: readonly string[]): Rule {
  return { verbs, apiGroups: [group], resources };
}

function urls(verbs: readonly string[], nonResourceURLs: readonly string[]): Rule {
  return { verbs, nonResourceURLs };
}

function metadata(name: string, aggregateTo?: Aggregate): KubernetesObject['metadata'] {
  return {
    name,
    labels: {
      'kubernetes.io/bootstrapping': 'rbac-defaults',
      ...(aggregateTo === undefined ? {} : aggregationLabel(aggregateTo)),
    },
    annotations: { 'rbac.authorization.kubernetes.io/autoupdate': 'true' },
  };
}

function clusterRole(name: string, rules: readonly Rule[], aggregateTo?: Aggregate): KubernetesObject {
  return { apiVersion: API_VERSION, kind: 'ClusterRole', metadata: metadata(name, aggregateTo), rules };
}

/** An aggregated ClusterRole; see `aggregation.ts`. */
function aggregated(name: string, selects: Aggregate, aggregateTo?: Aggregate): KubernetesObject {
  const aggregationRule = { clusterRoleSelectors: [{ matchLabels: aggregationLabel(selects) }] };
  return {
    apiVersion: API_VERSION,
    kind: 'ClusterRole',
    metadata: metadata(name, aggregateTo),
    rules: null,
    aggregationRule,
  };
}

/** Binds the ClusterRole of the same name to groups. */
function clusterRoleBinding(name: string, groups: readonly string[]): KubernetesObject {
  return {
    apiVersion: API_VERSION,
    kind: 'ClusterRoleBinding',
    metadata: metadata(name),
    subjects: groups.map((group) => ({ kind: 'Group', apiGroup: RBAC_GROUP, name: group })),
    roleRef: { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name },
  };
}

/** The RBAC objects of a new cluster. */
export const BOOTSTRAP_RBAC: readonly KubernetesObject[] = [
  aggregated('admin', 'admin'),
  clusterRole('cluster-admin', [rule(['*'], '*', ['*']), urls(['*'], ['*'])]),
  aggregated('edit', 'edit', 'admin'),
  clusterRole(
    'system:aggregate-to-admin',
    [
      rule(['create'], 'authorization.k8s.io', ['localsubjectaccessreviews']),
      rule(READ_WRITE, 'rbac.authorization.k8s.io', ['rolebindings', 'roles']),
    ],
    'admin',
  ),
  clusterRole(
    'system:aggregate-to-edit',
    [
      rule(READ, '', ['pods/attach', 'pods/exec', 'pods/portforward', 'pods/proxy', 'secrets', 'services/proxy']),
      rule(['impersonate'], '', ['serviceaccounts']),
      rule(WRITE, '', ['pods', 'pods/attach', 'pods/exec', 'pods/portforward', 'pods/proxy']),
      rule(['create'], '', ['pods/eviction']),
      rule(WRITE, '', [
        'configmaps',
        'events',
        'persistentvolumeclaims',
        'replicationcontrollers',
        'replicationcontrollers/scale',
        'secrets',
        'serviceaccounts',
        'services',
        'services/proxy',
      ]),
      rule(['create'], '', ['serviceaccounts/token']),
      rule(WRITE, 'apps', [
        'daemonsets',
        'deployments',
        'deployments/rollback',
        'deployments/scale',
        'replicasets',
        'replicasets/scale',
        'statefulsets',
        'statefulsets/scale',
      ]),
      rule(WRITE, 'autoscaling', ['horizontalpodautoscalers']),
      rule(WRITE, 'batch', ['cronjobs', 'jobs']),
      rule(WRITE, 'extensions', [
        'daemonsets',
        'deployments',
        'deployments/rollback',
        'deployments/scale',
        'ingresses',
        'networkpolicies',
        'replicasets',
        'replicasets/scale',
        'replicationcontrollers/scale',
      ]),
      rule(WRITE, 'policy', ['poddisruptionbudgets']),
      rule(WRITE, 'networking.k8s.io', ['ingresses', 'networkpolicies']),
      rule(READ_WRITE, 'coordination.k8s.io', ['leases']),
      rule(WRITE, 'resource.k8s.io', ['resourceclaims', 'resourceclaimtemplates']),
    ],
    'edit',
  ),
  clusterRole(
    'system:aggregate-to-view',
    [
      rule(READ, '', [
        'configmaps',
        'endpoints',
        'persistentvolumeclaims',
        'persistentvolumeclaims/status',
        'pods',
        'replicationcontrollers',
        'replicationcontrollers/scale',
        'serviceaccounts',
        'services',
        'services/status',
      ]),
      rule(READ, '', [
        'bindings',
        'events',
        'limitranges',
        'namespaces/status',
        'pods/log',
        'pods/status',
        'replicationcontrollers/status',
        'resourcequotas',
        'resourcequotas/status',
      ]),
      rule(READ, '', ['namespaces']),
      rule(READ, 'discovery.k8s.io', ['endpointslices']),
      rule(READ, 'apps', [
        'controllerrevisions',
        'daemonsets',
        'daemonsets/status',
        'deployments',
        'deployments/scale',
        'deployments/status',
        'replicasets',
        'replicasets/scale',
        'replicasets/status',
        'statefulsets',
        'statefulsets/scale',
        'statefulsets/status',
      ]),
      rule(READ, 'autoscaling', ['horizontalpodautoscalers', 'horizontalpodautoscalers/status']),
      rule(READ, 'batch', ['cronjobs', 'cronjobs/status', 'jobs', 'jobs/status']),
      rule(READ, 'extensions', [
        'daemonsets',
        'daemonsets/status',
        'deployments',
        'deployments/scale',
        'deployments/status',
        'ingresses',
        'ingresses/status',
        'networkpolicies',
        'replicasets',
        'replicasets/scale',
        'replicasets/status',
        'replicationcontrollers/scale',
      ]),
      rule(READ, 'policy', ['poddisruptionbudgets', 'poddisruptionbudgets/status']),
      rule(READ, 'networking.k8s.io', ['ingresses', 'ingresses/status', 'networkpolicies']),
      rule(READ, 'resource.k8s.io', ['resourceclaims', 'resourceclaims/status', 'resourceclaimtemplates']),
    ],
    'view',
  ),
  clusterRole('system:auth-delegator', [
    rule(['create'], 'authentication.k8s.io', ['tokenreviews']),
    rule(['create'], 'authorization.k8s.io', ['subjectaccessreviews']),
  ]),
  clusterRole('system:basic-user', [
    rule(['create'], 'authorization.k8s.io', ['selfsubjectaccessreviews', 'selfsubjectrulesreviews']),
    rule(['create'], 'authentication.k8s.io', ['selfsubjectreviews']),
  ]),
  clusterRole('system:discovery', [
    urls(
      ['get'],
      [
        '/api',
        '/api/*',
        '/apis',
        '/apis/*',
        '/healthz',
        '/livez',
        '/openapi',
        '/openapi/*',
        '/readyz',
        '/version',
        '/version/',
      ],
    ),
  ]),
  clusterRole('system:monitoring', [
    urls(
      ['get'],
      ['/healthz', '/healthz/*', '/livez', '/livez/*', '/metrics', '/metrics/slis', '/readyz', '/readyz/*'],
    ),
    rule(['get'], '', ['nodes/metrics']),
  ]),
  clusterRole('system:public-info-viewer', [urls(['get'], ['/healthz', '/livez', '/readyz', '/version', '/version/'])]),
  clusterRole('system:service-account-issuer-discovery', [
    urls(
      ['get'],
      [
        '/.well-known/openid-configuration',
        '/.well-known/openid-configuration/',
        '/openid/v1/jwks',
        '/openid/v1/jwks/',
      ],
    ),
  ]),
  aggregated('view', 'view', 'edit'),
  clusterRoleBinding('cluster-admin', [MASTERS_GROUP]),
  clusterRoleBinding('system:basic-user', [AUTHENTICATED_GROUP]),
  clusterRoleBinding('system:discovery', [AUTHENTICATED_GROUP]),
  clusterRoleBinding('system:monitoring', ['system:monitoring']),
  clusterRoleBinding('system:public-info-viewer', [AUTHENTICATED_GROUP, UNAUTHENTICATED_GROUP]),
  clusterRoleBinding('system:service-account-issuer-discovery', ['system:serviceaccounts']),
];
