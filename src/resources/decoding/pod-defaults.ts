// Defaults of pods and pod templates, of admission plugins among them.
import { fieldsAt, listAt, ensureFieldsAt, setDefault } from './fields.ts';
import type { Fields, TypeDefaults } from './fields.ts';
import { canonicalQuantity } from './quantities.ts';

/** Default mode of files from ConfigMaps and Secrets. */
const FILE_MODE = 0o644;

function podSpec(spec: Fields): void {
  setDefault(spec, 'dnsPolicy', 'ClusterFirst');
  setDefault(spec, 'restartPolicy', 'Always');
  setDefault(spec, 'securityContext', {});
  setDefault(spec, 'terminationGracePeriodSeconds', 30);
  setDefault(spec, 'schedulerName', 'default-scheduler');
  // `serviceAccount` is the old name of the field.
  const account = spec['serviceAccountName'] ?? spec['serviceAccount'];
  if (account !== undefined) {
    spec['serviceAccountName'] = account;
    spec['serviceAccount'] = account;
  }
}

/** Defaults of pods only. Pod templates do not have them. */
function pod(object: Fields): void {
  const spec = fieldsAt(object, 'spec');
  if (spec === undefined) {
    return;
  }
  const containers = [...listAt(spec, 'containers'), ...listAt(spec, 'initContainers')];
  for (const container of containers) {
    defaultRequests(fieldsAt(container, 'resources'));
  }
  defaultRequests(fieldsAt(spec, 'resources'));
  setDefault(spec, 'enableServiceLinks', true);
  if (spec['hostNetwork'] === true) {
    for (const port of containers.flatMap((container) => listAt(container, 'ports'))) {
      port['hostPort'] ||= port['containerPort'];
    }
  }
  if (spec['priorityClassName'] === undefined || spec['priorityClassName'] === '') {
    setDefault(spec, 'priority', 0);
    setDefault(spec, 'preemptionPolicy', 'PreemptLowerPriority');
  }
  addNodeTolerations(spec);
  const status = ensureFieldsAt(object, 'status');
  setDefault(status, 'phase', 'Pending');
  setDefault(status, 'qosClass', qosClassOf(spec));
}

/** Keeps `podIP` and the first of `podIPs` equal. If they differ, the older field `podIP` wins. */
function podStatus(status: Fields): void {
  const { podIP } = status;
  const first = listAt(status, 'podIPs')[0]?.['ip'];
  if (podIP !== undefined && first !== podIP) {
    status['podIPs'] = [{ ip: podIP }];
  } else {
    setDefault(status, 'podIP', first);
  }
}

/** Requests default to limits. */
function defaultRequests(resources: Fields | undefined): void {
  const limits = resources === undefined ? undefined : fieldsAt(resources, 'limits');
  if (resources !== undefined && limits !== undefined && Object.keys(limits).length > 0) {
    resources['requests'] = { ...limits, ...fieldsAt(resources, 'requests') };
  }
}

/** Adds tolerations of five minutes for nodes that are not ready or unreachable (admission plugin DefaultTolerationSeconds). */
function addNodeTolerations(spec: Fields): void {
  const tolerations = listAt(spec, 'tolerations');
  const missing = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'].filter(
    (taint) =>
      !tolerations.some(
        ({ key = '', effect = '' }) => (key === taint || key === '') && (effect === 'NoExecute' || effect === ''),
      ),
  );
  if (missing.length > 0) {
    const added = missing.map((key) => ({ effect: 'NoExecute', key, operator: 'Exists', tolerationSeconds: 300 }));
    spec['tolerations'] = [...tolerations, ...added];
  }
}

/** The QoS class of a pod (https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/). */
function qosClassOf(spec: Fields): 'BestEffort' | 'Burstable' | 'Guaranteed' {
  const containers = [...listAt(spec, 'containers'), ...listAt(spec, 'initContainers')];
  const own = fieldsAt(spec, 'resources');
  const resources = own === undefined ? containers.map((container) => fieldsAt(container, 'resources')) : [own];
  const amounts = resources.map((entry) => ({
    requests: computeResources(entry, 'requests'),
    limits: computeResources(entry, 'limits'),
  }));
  if (amounts.every(({ requests, limits }) => requests.size + limits.size === 0)) {
    return 'BestEffort';
  }
  const isGuaranteed = amounts.every(
    ({ requests, limits }) => limits.size === 2 && [...limits].every(([name, amount]) => requests.get(name) === amount),
  );
  return isGuaranteed ? 'Guaranteed' : 'Burstable';
}

function computeResources(resources: Fields | undefined, field: string): ReadonlyMap<string, string> {
  const amounts = (resources === undefined ? undefined : fieldsAt(resources, field)) ?? {};
  return new Map(
    ['cpu', 'memory'].flatMap((name) => {
      const amount = Object.hasOwn(amounts, name) ? String(canonicalQuantity(amounts[name])) : '0';
      return amount === '0' ? [] : [[name, amount]];
    }),
  );
}

function container(fields: Fields): void {
  setDefault(fields, 'imagePullPolicy', pullPolicyOf(fields['image']));
  setDefault(fields, 'terminationMessagePath', '/dev/termination-log');
  setDefault(fields, 'terminationMessagePolicy', 'File');
}

/** `Always` for the tag `latest`, and for images without tag and digest. */
function pullPolicyOf(image: unknown): string {
  const name = typeof image === 'string' ? image : '';
  const lastPart = name.slice(name.lastIndexOf('/') + 1);
  const isPinned = lastPart.includes('@') || (lastPart.includes(':') && !lastPart.endsWith(':latest'));
  return isPinned || name === '' ? 'IfNotPresent' : 'Always';
}

function probe(fields: Fields): void {
  fields['timeoutSeconds'] ||= 1;
  fields['periodSeconds'] ||= 10;
  fields['successThreshold'] ||= 1;
  fields['failureThreshold'] ||= 3;
}

function volume(fields: Fields): void {
  if (Object.keys(fields).every((name) => name === 'name')) {
    fields['emptyDir'] = {};
  }
}

const withFileMode: TypeDefaults = (fields) => setDefault(fields, 'defaultMode', FILE_MODE);

/** By component name without `io.k8s.api.`. */
export const POD_DEFAULTS: Readonly<Record<string, TypeDefaults>> = {
  'core.v1.Pod': pod,
  'core.v1.PodSpec': podSpec,
  'core.v1.PodStatus': podStatus,
  'core.v1.Container': container,
  'core.v1.EphemeralContainer': container,
  'core.v1.Probe': probe,
  'core.v1.GRPCAction': (fields) => setDefault(fields, 'service', ''),
  'core.v1.HTTPGetAction': (fields) => {
    setDefault(fields, 'path', '/');
    setDefault(fields, 'scheme', 'HTTP');
  },
  'core.v1.Volume': volume,
  'core.v1.SecretVolumeSource': withFileMode,
  'core.v1.ConfigMapVolumeSource': withFileMode,
  'core.v1.DownwardAPIVolumeSource': withFileMode,
  'core.v1.ProjectedVolumeSource': withFileMode,
  'core.v1.HostPathVolumeSource': (fields) => setDefault(fields, 'type', ''),
  'core.v1.ImageVolumeSource': (fields) => setDefault(fields, 'pullPolicy', pullPolicyOf(fields['reference'])),
  'core.v1.ServiceAccountTokenProjection': (fields) => setDefault(fields, 'expirationSeconds', 3600),
  'core.v1.ObjectFieldSelector': (fields) => setDefault(fields, 'apiVersion', 'v1'),
  'core.v1.ResourceFieldSelector': (fields) => setDefault(fields, 'divisor', '0'),
};
