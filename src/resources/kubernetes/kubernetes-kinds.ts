import type { ResourceDefinition } from '../resource-definition.ts';
import { apiVersionOf } from '../resource-type.ts';
import { builtinKind } from './builtin-kinds.ts';
import { componentSchema } from './component-schemas.ts';
import { applyBuiltinDefaults } from './defaults/apply-defaults.ts';
import { tableColumnsOf } from './openapi-data.ts';
import { cellsOf } from './printers/kind-cells.ts';
import { validateBuiltin } from './validation/validate-builtin.ts';

/** What a kind has beyond its names. */
type Details = Partial<
  Pick<ResourceDefinition, 'hasStatus' | 'scale' | 'nameRule' | 'countsGenerations' | 'verbs' | 'selectableFields'>
>;

const REPLICAS_SCALE = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.spec.selector',
} as const;

const STATUS: Details = { hasStatus: true };
const GENERATIONS: Details = { countsGenerations: true };
const WORKLOAD: Details = { hasStatus: true, countsGenerations: true };
const SCALED: Details = { ...WORKLOAD, scale: REPLICAS_SCALE };
const REVIEW: Details = { verbs: ['create'] };
const RBAC: Details = { nameRule: 'path-segment' };

/** Of `v1` events, and of those of `events.k8s.io`, whose fields have the same names in selectors. */
const EVENT: Details = {
  selectableFields: [
    ...['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'].map(
      (field) => `involvedObject.${field}`,
    ),
    'reason',
    'reportingComponent',
    'source',
    'type',
  ],
};

const POD_FIELDS = [
  'spec.nodeName',
  'spec.restartPolicy',
  'spec.schedulerName',
  'spec.serviceAccountName',
  'spec.hostNetwork',
  'status.phase',
  'status.podIP',
  'status.nominatedNodeName',
];

/** By group, in the order in which API servers list them: kinds in the order of `kubectl api-resources`. */
const SERVED: Readonly<Record<string, Readonly<Record<string, Details>>>> = {
  '': {
    ConfigMap: {},
    Endpoints: {},
    Event: EVENT,
    LimitRange: {},
    Namespace: { hasStatus: true, nameRule: 'dns-label', selectableFields: ['status.phase'] },
    Node: { hasStatus: true, selectableFields: ['spec.unschedulable'] },
    PersistentVolumeClaim: STATUS,
    PersistentVolume: STATUS,
    Pod: { ...WORKLOAD, selectableFields: POD_FIELDS },
    ReplicationController: { ...SCALED, selectableFields: ['status.replicas'] },
    ResourceQuota: STATUS,
    Secret: { selectableFields: ['type'] },
    ServiceAccount: {},
    Service: { hasStatus: true, nameRule: 'dns-label-1035', selectableFields: ['spec.clusterIP', 'spec.type'] },
  },
  'admissionregistration.k8s.io': {
    MutatingWebhookConfiguration: GENERATIONS,
    ValidatingAdmissionPolicy: WORKLOAD,
    ValidatingAdmissionPolicyBinding: GENERATIONS,
    ValidatingWebhookConfiguration: GENERATIONS,
  },
  'apiextensions.k8s.io': { CustomResourceDefinition: WORKLOAD },
  apps: {
    DaemonSet: WORKLOAD,
    Deployment: SCALED,
    ReplicaSet: { ...SCALED, selectableFields: ['status.replicas'] },
    StatefulSet: SCALED,
  },
  'authentication.k8s.io': { SelfSubjectReview: REVIEW, TokenReview: REVIEW },
  'authorization.k8s.io': {
    LocalSubjectAccessReview: REVIEW,
    SelfSubjectAccessReview: REVIEW,
    SelfSubjectRulesReview: REVIEW,
    SubjectAccessReview: REVIEW,
  },
  autoscaling: { HorizontalPodAutoscaler: STATUS },
  batch: { CronJob: WORKLOAD, Job: { ...WORKLOAD, selectableFields: ['status.successful'] } },
  'coordination.k8s.io': { Lease: {} },
  'discovery.k8s.io': { EndpointSlice: GENERATIONS },
  'events.k8s.io': { Event: EVENT },
  'networking.k8s.io': { IngressClass: GENERATIONS, Ingress: WORKLOAD, NetworkPolicy: GENERATIONS },
  policy: { PodDisruptionBudget: WORKLOAD },
  'rbac.authorization.k8s.io': { ClusterRoleBinding: RBAC, ClusterRole: RBAC, RoleBinding: RBAC, Role: RBAC },
  'scheduling.k8s.io': { PriorityClass: GENERATIONS },
  'storage.k8s.io': { StorageClass: {} },
};

/** The prefixes of component names of groups whose folder in the sources of Kubernetes is not called as they are. */
const COMPONENT_PREFIXES: Readonly<Record<string, string>> = {
  '': 'io.k8s.api.core',
  'apiextensions.k8s.io': 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions',
  'rbac.authorization.k8s.io': 'io.k8s.api.rbac',
};

/** The kinds of Kubernetes that an embedded cluster has. docs/embedded-kinds.md lists them. */
export const KUBERNETES_KINDS: readonly ResourceDefinition[] = Object.entries(SERVED).flatMap(([group, kinds]) =>
  Object.entries(kinds).map(([kind, details]) => definition(group, kind, details)),
);

const BY_NAME: ReadonlyMap<string, ResourceDefinition> = new Map(
  KUBERNETES_KINDS.map((entry) => [`${apiVersionOf(entry)}/${entry.kind}`, entry]),
);

/** The definition of a kind of Kubernetes: `kubernetesKind('apps/v1', 'Deployment')`. Undefined when there is none. */
export function kubernetesKind(apiVersion: string, kind: string): ResourceDefinition | undefined {
  return BY_NAME.get(`${apiVersion}/${kind}`);
}

function definition(group: string, kind: string, details: Details): ResourceDefinition {
  const names = builtinKind(group, kind);
  if (names === undefined) {
    throw new Error(`${kind} of ${group} is not among the names of builtin-kinds.ts`);
  }
  const component = componentNameOf(names);
  return {
    ...names,
    hasStatus: false,
    countsGenerations: false,
    origin: 'builtin',
    ...details,
    printer: {
      get columns() {
        return tableColumnsOf(group, names.version, kind);
      },
      cells: cellsOf(kind),
    },
    schema: () => componentSchema(component),
    validate: validateBuiltin,
    applyDefaults: (object) => applyBuiltinDefaults(object, componentSchema(component)),
  };
}

/** The name of the component of a kind of Kubernetes: `io.k8s.api.apps.v1.Deployment`. */
export function componentNameOf({
  group,
  version,
  kind,
}: Pick<ResourceDefinition, 'group' | 'version' | 'kind'>): string {
  const prefix = COMPONENT_PREFIXES[group] ?? `io.k8s.api.${group.split('.')[0]}`;
  return `${prefix}.${version}.${kind}`;
}
