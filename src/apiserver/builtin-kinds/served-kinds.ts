import {
  builtinKind,
  componentNameOf,
  componentSchema,
  selectableFieldsOf,
  tableColumnsOf,
} from '../../resources/index.ts';
import type { ResourceDefinition } from '../resource-definition.ts';
import { applyBuiltinDefaults } from '../../resources/decoding/index.ts';
import { cellsOf } from './printers/kind-cells.ts';
import { validateBuiltin } from './validation/validate-builtin.ts';
import { builtinWarnings } from './warnings/builtin-warnings.ts';

/** The properties of a kind beyond its names. */
type Details = Partial<
  Pick<ResourceDefinition, 'hasStatus' | 'scale' | 'nameRule' | 'countsGenerations' | 'verbs' | 'deprecation'>
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

/** The kinds by group. Groups have the order of API servers, kinds that of `kubectl api-resources`. */
const SERVED: Readonly<Record<string, Readonly<Record<string, Details>>>> = {
  '': {
    ConfigMap: {},
    Endpoints: { deprecation: 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice' },
    Event: {},
    LimitRange: {},
    Namespace: { hasStatus: true, nameRule: 'dns-label' },
    Node: STATUS,
    PersistentVolumeClaim: STATUS,
    PersistentVolume: STATUS,
    Pod: WORKLOAD,
    ReplicationController: SCALED,
    ResourceQuota: STATUS,
    Secret: {},
    ServiceAccount: {},
    Service: { hasStatus: true, nameRule: 'dns-label-1035' },
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
    ReplicaSet: SCALED,
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
  batch: { CronJob: WORKLOAD, Job: WORKLOAD },
  'coordination.k8s.io': { Lease: {} },
  'discovery.k8s.io': { EndpointSlice: GENERATIONS },
  'events.k8s.io': { Event: {} },
  'networking.k8s.io': { IngressClass: GENERATIONS, Ingress: WORKLOAD, NetworkPolicy: GENERATIONS },
  policy: { PodDisruptionBudget: WORKLOAD },
  'rbac.authorization.k8s.io': { ClusterRoleBinding: RBAC, ClusterRole: RBAC, RoleBinding: RBAC, Role: RBAC },
  'scheduling.k8s.io': { PriorityClass: GENERATIONS },
  'storage.k8s.io': { StorageClass: {} },
};

/** The builtin kinds of an embedded cluster; docs/embedded-kinds.md lists them. */
export const SERVED_KINDS: readonly ResourceDefinition[] = Object.entries(SERVED).flatMap(([group, kinds]) =>
  Object.entries(kinds).map(([kind, details]) => definition(group, kind, details)),
);

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
    selectableFields: selectableFieldsOf(group, kind),
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
    warnings: builtinWarnings,
    applyDefaults: (object) => applyBuiltinDefaults(object, componentSchema(component)),
  };
}
