/** Of `v1` events, and of those of `events.k8s.io`, whose fields have the same names in selectors. */
const EVENT_FIELDS = [
  ...['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'].map(
    (field) => `involvedObject.${field}`,
  ),
  'reason',
  'reportingComponent',
  'source',
  'type',
];

/** By group and kind. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  '/Event': EVENT_FIELDS,
  '/Namespace': ['status.phase'],
  '/Node': ['spec.unschedulable'],
  '/Pod': [
    'spec.nodeName',
    'spec.restartPolicy',
    'spec.schedulerName',
    'spec.serviceAccountName',
    'spec.hostNetwork',
    'status.phase',
    'status.podIP',
    'status.nominatedNodeName',
  ],
  '/ReplicationController': ['status.replicas'],
  '/Secret': ['type'],
  '/Service': ['spec.clusterIP', 'spec.type'],
  'apps/ReplicaSet': ['status.replicas'],
  'batch/Job': ['status.successful'],
  'events.k8s.io/Event': EVENT_FIELDS,
};

/** The fields of a kind of Kubernetes that field selectors may name besides `metadata.name` and `metadata.namespace`. */
export function selectableFieldsOf(group: string, kind: string): readonly string[] {
  const key = `${group}/${kind}`;
  return Object.hasOwn(FIELDS, key) ? (FIELDS[key] ?? []) : [];
}
