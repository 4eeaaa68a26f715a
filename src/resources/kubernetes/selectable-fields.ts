/** Of `v1` events and those of `events.k8s.io`, whose selectable fields are the same. */
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

/** The selectable fields of a builtin kind besides `metadata.name` and `metadata.namespace`. */
export function selectableFieldsOf(group: string, kind: string): readonly string[] {
  const key = `${group}/${kind}`;
  return Object.hasOwn(FIELDS, key) ? (FIELDS[key] ?? []) : [];
}
