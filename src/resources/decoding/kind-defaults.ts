// Defaults of all types except those of pods.
import { fieldsAt, listAt, ensureFieldsAt, setDefault } from './fields.ts';
import type { Fields, TypeDefaults } from './fields.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';

function deploymentSpec(spec: Fields): void {
  setDefault(spec, 'replicas', 1);
  setDefault(spec, 'revisionHistoryLimit', 10);
  setDefault(spec, 'progressDeadlineSeconds', 600);
  const strategy = ensureFieldsAt(spec, 'strategy');
  setDefault(strategy, 'type', 'RollingUpdate');
  if (strategy['type'] === 'RollingUpdate') {
    const rollingUpdate = ensureFieldsAt(strategy, 'rollingUpdate');
    setDefault(rollingUpdate, 'maxUnavailable', '25%');
    setDefault(rollingUpdate, 'maxSurge', '25%');
  }
}

function daemonSetSpec(spec: Fields): void {
  setDefault(spec, 'revisionHistoryLimit', 10);
  const strategy = ensureFieldsAt(spec, 'updateStrategy');
  setDefault(strategy, 'type', 'RollingUpdate');
  if (strategy['type'] === 'RollingUpdate') {
    const rollingUpdate = ensureFieldsAt(strategy, 'rollingUpdate');
    setDefault(rollingUpdate, 'maxUnavailable', 1);
    setDefault(rollingUpdate, 'maxSurge', 0);
  }
}

function statefulSetSpec(spec: Fields): void {
  setDefault(spec, 'podManagementPolicy', 'OrderedReady');
  setDefault(spec, 'replicas', 1);
  setDefault(spec, 'revisionHistoryLimit', 10);
  const strategy = ensureFieldsAt(spec, 'updateStrategy');
  if (strategy['type'] === undefined || strategy['type'] === '') {
    strategy['type'] = 'RollingUpdate';
    ensureFieldsAt(strategy, 'rollingUpdate');
  }
  const rollingUpdate = strategy['type'] === 'RollingUpdate' ? fieldsAt(strategy, 'rollingUpdate') : undefined;
  if (rollingUpdate !== undefined) {
    setDefault(rollingUpdate, 'partition', 0);
  }
  const retention = ensureFieldsAt(spec, 'persistentVolumeClaimRetentionPolicy');
  setDefault(retention, 'whenDeleted', 'Retain');
  setDefault(retention, 'whenScaled', 'Retain');
  // API servers set the type of claim templates, too.
  for (const claim of listAt(spec, 'volumeClaimTemplates')) {
    setDefault(claim, 'apiVersion', 'v1');
    setDefault(claim, 'kind', 'PersistentVolumeClaim');
    setDefault(ensureFieldsAt(claim, 'status'), 'phase', 'Pending');
  }
}

/** The labels and the selector default to the labels of the pod template. */
function replicationController(object: Fields): void {
  const spec = fieldsAt(object, 'spec');
  const labels = templateLabels(spec);
  if (spec !== undefined && labels !== undefined) {
    if (Object.keys(fieldsAt(spec, 'selector') ?? {}).length === 0) {
      spec['selector'] = { ...labels };
    }
    defaultLabels(object, labels);
  }
}

function templateLabels(spec: Fields | undefined): Fields | undefined {
  const template = spec === undefined ? undefined : fieldsAt(spec, 'template');
  const metadata = template === undefined ? undefined : fieldsAt(template, 'metadata');
  return metadata === undefined ? undefined : fieldsAt(metadata, 'labels');
}

function defaultLabels(object: Fields, labels: Fields): void {
  const metadata = ensureFieldsAt(object, 'metadata');
  if (Object.keys(fieldsAt(metadata, 'labels') ?? {}).length === 0 && Object.keys(labels).length > 0) {
    metadata['labels'] = { ...labels };
  }
}

function job(object: Fields): void {
  const spec = fieldsAt(object, 'spec');
  if (spec === undefined) {
    return;
  }
  jobSpec(spec);
  const { uid, name, resourceVersion } = ensureFieldsAt(object, 'metadata');
  // An object with a resourceVersion is updated: its selector is immutable.
  if (spec['manualSelector'] !== true && typeof uid === 'string' && resourceVersion === undefined) {
    selectOwnPods(spec, uid, name);
  }
  const labels = templateLabels(spec);
  if (labels !== undefined) {
    defaultLabels(object, labels);
  }
}

/** Generates the selector of a Job, by its uid. */
function selectOwnPods(spec: Fields, uid: string, name: unknown): void {
  const labels = ensureFieldsAt(ensureFieldsAt(ensureFieldsAt(spec, 'template'), 'metadata'), 'labels');
  for (const label of ['job-name', 'batch.kubernetes.io/job-name']) {
    setDefault(labels, label, name);
  }
  for (const label of ['controller-uid', 'batch.kubernetes.io/controller-uid']) {
    setDefault(labels, label, uid);
  }
  const selector = ensureFieldsAt(spec, 'selector');
  setDefault(ensureFieldsAt(selector, 'matchLabels'), 'batch.kubernetes.io/controller-uid', uid);
}

function jobSpec(spec: Fields): void {
  if (spec['completions'] === undefined && spec['parallelism'] === undefined) {
    spec['completions'] = 1;
  }
  setDefault(spec, 'parallelism', 1);
  setDefault(spec, 'backoffLimit', spec['backoffLimitPerIndex'] === undefined ? 6 : 2 ** 31 - 1);
  setDefault(spec, 'completionMode', 'NonIndexed');
  setDefault(spec, 'suspend', false);
  setDefault(spec, 'podReplacementPolicy', spec['podFailurePolicy'] === undefined ? 'TerminatingOrFailed' : 'Failed');
  setDefault(spec, 'manualSelector', false);
}

function cronJobSpec(spec: Fields): void {
  setDefault(spec, 'concurrencyPolicy', 'Allow');
  setDefault(spec, 'suspend', false);
  setDefault(spec, 'successfulJobsHistoryLimit', 3);
  setDefault(spec, 'failedJobsHistoryLimit', 1);
}

function serviceSpec(spec: Fields): void {
  setDefault(spec, 'sessionAffinity', 'None');
  if (spec['sessionAffinity'] === 'None') {
    delete spec['sessionAffinityConfig'];
  } else if (spec['sessionAffinity'] === 'ClientIP') {
    setDefault(ensureFieldsAt(ensureFieldsAt(spec, 'sessionAffinityConfig'), 'clientIP'), 'timeoutSeconds', 10_800);
  }
  setDefault(spec, 'type', 'ClusterIP');
  const { type } = spec;
  const isExternal = type === 'LoadBalancer' || type === 'NodePort';
  if (isExternal || (type === 'ClusterIP' && Array.isArray(spec['externalIPs']) && spec['externalIPs'].length > 0)) {
    setDefault(spec, 'externalTrafficPolicy', 'Cluster');
  }
  if (isExternal || type === 'ClusterIP') {
    setDefault(spec, 'internalTrafficPolicy', 'Cluster');
  }
  if (type === 'LoadBalancer') {
    setDefault(spec, 'allocateLoadBalancerNodePorts', true);
  }
}

function servicePort(port: Fields): void {
  setDefault(port, 'protocol', 'TCP');
  port['targetPort'] ||= port['port'];
}

/** Merges `stringData`, which is write-only, into `data`. */
function secret(object: Fields): void {
  setDefault(object, 'type', 'Opaque');
  const texts = fieldsAt(object, 'stringData');
  if (texts !== undefined) {
    const encoded = Object.entries(texts).map(([key, text]) => [key, Buffer.from(String(text)).toString('base64')]);
    object['data'] = { ...fieldsAt(object, 'data'), ...Object.fromEntries(encoded) };
    delete object['stringData'];
  }
}

function namespace(object: Fields): void {
  const metadata = ensureFieldsAt(object, 'metadata');
  if (typeof metadata['name'] === 'string' && metadata['name'] !== '') {
    ensureFieldsAt(metadata, 'labels')['kubernetes.io/metadata.name'] = metadata['name'];
  }
  const spec = ensureFieldsAt(object, 'spec');
  // The namespace controller removes this finalizer when the namespace is empty.
  if (metadata['deletionTimestamp'] === undefined) {
    setDefault(spec, 'finalizers', ['kubernetes']);
  }
  setDefault(ensureFieldsAt(object, 'status'), 'phase', 'Active');
}

function nodeStatus(status: Fields): void {
  if (status['capacity'] !== undefined) {
    setDefault(status, 'allocatable', structuredClone(status['capacity']));
  }
}

/** Keeps `podCIDR` and the first of `podCIDRs` equal. If they differ, the older field `podCIDR` wins. */
function nodeSpec(spec: Fields): void {
  const { podCIDR, podCIDRs } = spec;
  const [first] = Array.isArray(podCIDRs) ? (podCIDRs as readonly unknown[]) : [];
  if (podCIDR !== undefined && first !== podCIDR) {
    spec['podCIDRs'] = [podCIDR];
  } else {
    setDefault(spec, 'podCIDR', first);
  }
}

function limitRangeItem(item: Fields): void {
  if (item['type'] === 'Container') {
    const defaults = { ...fieldsAt(item, 'max'), ...fieldsAt(item, 'default') };
    const requests = { ...fieldsAt(item, 'min'), ...defaults, ...fieldsAt(item, 'defaultRequest') };
    item['default'] = defaults;
    item['defaultRequest'] = requests;
  }
}

function networkPolicySpec(spec: Fields): void {
  if (!Array.isArray(spec['policyTypes']) || spec['policyTypes'].length === 0) {
    const hasEgress = Array.isArray(spec['egress']) && spec['egress'].length > 0;
    spec['policyTypes'] = hasEgress ? ['Ingress', 'Egress'] : ['Ingress'];
  }
}

function horizontalPodAutoscalerSpec(spec: Fields): void {
  setDefault(spec, 'minReplicas', 1);
  if (listAt(spec, 'metrics').length === 0) {
    const target = { type: 'Utilization', averageUtilization: 80 };
    spec['metrics'] = [{ type: 'Resource', resource: { name: 'cpu', target } }];
  }
  const behavior = fieldsAt(spec, 'behavior');
  if (behavior !== undefined) {
    const percent = { type: 'Percent', value: 100, periodSeconds: 15 };
    const up = ensureFieldsAt(behavior, 'scaleUp');
    setDefault(up, 'stabilizationWindowSeconds', 0);
    setDefault(up, 'policies', [{ type: 'Pods', value: 4, periodSeconds: 15 }, percent]);
    setDefault(up, 'selectPolicy', 'Max');
    const down = ensureFieldsAt(behavior, 'scaleDown');
    setDefault(down, 'policies', [{ ...percent }]);
    setDefault(down, 'selectPolicy', 'Max');
  }
}

function webhook(fields: Fields): void {
  setDefault(fields, 'failurePolicy', 'Fail');
  matchResources(fields);
  setDefault(fields, 'timeoutSeconds', 10);
}

function matchResources(fields: Fields): void {
  setDefault(fields, 'matchPolicy', 'Equivalent');
  setDefault(fields, 'namespaceSelector', {});
  setDefault(fields, 'objectSelector', {});
}

function customResourceDefinitionSpec(spec: Fields): void {
  const names = ensureFieldsAt(spec, 'names');
  const { kind } = names;
  if (typeof kind === 'string' && kind !== '') {
    names['singular'] ||= kind.toLowerCase();
    names['listKind'] ||= `${kind}List`;
  }
  setDefault(spec, 'conversion', { strategy: 'None' });
}

function customResourceDefinition(object: Fields): void {
  const status = ensureFieldsAt(object, 'status');
  const stored = listAt(fieldsAt(object, 'spec'), 'versions').find((version) => version['storage'] === true);
  if (stored !== undefined && (!Array.isArray(status['storedVersions']) || status['storedVersions'].length === 0)) {
    status['storedVersions'] = [stored['name'] ?? ''];
  }
}

/** Sets the annotation in which `apps/v1` keeps `templateGeneration`, a field of older versions. */
function daemonSet(object: Fields): void {
  setDefault(
    ensureFieldsAt(ensureFieldsAt(object, 'metadata'), 'annotations'),
    'deprecated.daemonset.template.generation',
    '1',
  );
}

const withRoleGroup: TypeDefaults = (object) => {
  const reference = ensureFieldsAt(object, 'roleRef');
  reference['apiGroup'] ||= RBAC_GROUP;
};

const withHttpsPort: TypeDefaults = (fields) => setDefault(fields, 'port', 443);

/** By component name, without the prefix `io.k8s.api.`. */
export const KIND_DEFAULTS: Readonly<Record<string, TypeDefaults>> = {
  'admissionregistration.v1.MatchResources': matchResources,
  'admissionregistration.v1.MutatingWebhook': (fields) => {
    webhook(fields);
    setDefault(fields, 'reinvocationPolicy', 'Never');
  },
  'admissionregistration.v1.NamedRuleWithOperations': (fields) => setDefault(fields, 'scope', '*'),
  'admissionregistration.v1.RuleWithOperations': (fields) => setDefault(fields, 'scope', '*'),
  'admissionregistration.v1.ServiceReference': withHttpsPort,
  'admissionregistration.v1.ValidatingAdmissionPolicySpec': (fields) => setDefault(fields, 'failurePolicy', 'Fail'),
  'admissionregistration.v1.ValidatingWebhook': webhook,
  'apps.v1.DaemonSet': daemonSet,
  'apps.v1.DaemonSetSpec': daemonSetSpec,
  'apps.v1.DeploymentSpec': deploymentSpec,
  'apps.v1.ReplicaSetSpec': (spec) => setDefault(spec, 'replicas', 1),
  'apps.v1.StatefulSetSpec': statefulSetSpec,
  'autoscaling.v2.HorizontalPodAutoscalerSpec': horizontalPodAutoscalerSpec,
  'batch.v1.CronJobSpec': cronJobSpec,
  'batch.v1.Job': job,
  'batch.v1.PodFailurePolicyOnPodConditionsPattern': (fields) => setDefault(fields, 'status', 'True'),
  'core.v1.EndpointPort': (port) => setDefault(port, 'protocol', 'TCP'),
  'core.v1.LimitRangeItem': limitRangeItem,
  'core.v1.Namespace': namespace,
  'core.v1.NodeSpec': nodeSpec,
  'core.v1.NodeStatus': nodeStatus,
  'core.v1.PersistentVolumeClaimSpec': (spec) => setDefault(spec, 'volumeMode', 'Filesystem'),
  'core.v1.PersistentVolumeClaim': (object) => setDefault(ensureFieldsAt(object, 'status'), 'phase', 'Pending'),
  'core.v1.PersistentVolume': (object) => {
    const status = ensureFieldsAt(object, 'status');
    setDefault(status, 'phase', 'Pending');
    if (status['phase'] === 'Pending') {
      setDefault(status, 'lastPhaseTransitionTime', ensureFieldsAt(object, 'metadata')['creationTimestamp']);
    }
  },
  'core.v1.PersistentVolumeSpec': (spec) => {
    setDefault(spec, 'persistentVolumeReclaimPolicy', 'Retain');
    setDefault(spec, 'volumeMode', 'Filesystem');
  },
  'core.v1.ReplicationController': replicationController,
  'core.v1.Secret': secret,
  'core.v1.ServicePort': servicePort,
  'core.v1.ServiceSpec': serviceSpec,
  'discovery.v1.EndpointPort': (port) => {
    setDefault(port, 'name', '');
    setDefault(port, 'protocol', 'TCP');
  },
  'networking.v1.IngressClassParametersReference': (fields) => setDefault(fields, 'scope', 'Cluster'),
  'networking.v1.NetworkPolicyPort': (port) => setDefault(port, 'protocol', 'TCP'),
  'networking.v1.NetworkPolicySpec': networkPolicySpec,
  'rbac.v1.ClusterRoleBinding': withRoleGroup,
  'rbac.v1.RoleBinding': withRoleGroup,
  'rbac.v1.Subject': (subject) => {
    if (subject['kind'] === 'User' || subject['kind'] === 'Group') {
      subject['apiGroup'] ||= RBAC_GROUP;
    }
  },
  'scheduling.v1.PriorityClass': (object) => setDefault(object, 'preemptionPolicy', 'PreemptLowerPriority'),
  'storage.v1.StorageClass': (object) => {
    setDefault(object, 'reclaimPolicy', 'Delete');
    setDefault(object, 'volumeBindingMode', 'Immediate');
  },
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition': customResourceDefinition,
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec': customResourceDefinitionSpec,
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ServiceReference': withHttpsPort,
};
