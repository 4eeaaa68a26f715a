// Objects of many kinds and shapes, some of which policies reject.
import type { KubernetesObject } from '../cluster/cluster.ts';
import { EXAMPLES_HOLD } from './install-policies.ts';

/** Namespaces by name, with their labels. */
export const AGREEMENT_NAMESPACES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  held: { ...EXAMPLES_HOLD, owner: 'team-a' },
  ownerless: { ...EXAMPLES_HOLD, 'max-keys': '2' },
  prod: { tier: 'prod', 'max-keys': '4' },
  play: {},
};

const GROUP = 'agreement.example';
const WIDGET = { group: GROUP, plural: 'widgets', kind: 'Widget' };

/** A kind with two versions of the same schema, defaults, and a status as subresource. */
export const WIDGETS = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${WIDGET.plural}.${GROUP}` },
  spec: {
    group: GROUP,
    scope: 'Namespaced',
    names: { plural: WIDGET.plural, singular: 'widget', kind: WIDGET.kind },
    versions: ['v1', 'v1beta1'].map((name) => ({
      name,
      served: true,
      storage: name === 'v1',
      subresources: { status: {} },
      schema: {
        openAPIV3Schema: {
          type: 'object',
          properties: {
            spec: {
              type: 'object',
              properties: {
                size: { type: 'integer', default: 1 },
                parts: { type: 'array', items: { type: 'string' } },
              },
            },
            status: { type: 'object', properties: { seen: { type: 'boolean' } } },
          },
        },
      },
    })),
  },
};

/** A choice that looks random, and is the same each time: for a number, and for what is chosen. */
function pick<T>(values: readonly [T, ...T[]], index: number, what: string): T {
  let hash = Math.imul(index + 1, 0x9e37_79b1);
  for (const char of what) {
    hash = Math.imul(hash ^ char.charCodeAt(0), 0x0100_0193);
  }
  return values[((hash ^ (hash >>> 15)) >>> 0) % values.length] ?? values[0];
}

/** Some fields in one of several cases. */
function sometimes(oneIn: number, index: number, what: string, fields: object): object {
  return pick([true, ...Array.from({ length: oneIn - 1 }, () => false)], index, what) ? fields : {};
}

/** Later Services have no address: the test cluster has some hundred. */
const MOST_WITH_ADDRESSES = 1_000;
const GOOD_IMAGE = 'example.com/shop/web:1.0';
const LIMITS = { cpu: '100m', memory: '64Mi' };

function podSpec(index: number, more: object = {}): object {
  const image = pick([GOOD_IMAGE, GOOD_IMAGE, GOOD_IMAGE, 'web:latest', 'example.com/shop/web'], index, 'image');
  const limits = pick([LIMITS, LIMITS, LIMITS, { cpu: '3', memory: '1Gi' }, {}], index, 'limits');
  const port = { containerPort: 8_080, ...sometimes(2, index, 'host port', { hostPort: 8_080 }) };
  const main = {
    name: 'main',
    image,
    resources: { limits },
    ...sometimes(8, index, 'privileged', { securityContext: { privileged: true } }),
  };
  const side = { name: 'side', image: GOOD_IMAGE, resources: { limits: LIMITS }, ports: [port] };
  return {
    containers: pick([true, false, false], index, 'side') ? [main, side] : [main],
    ...sometimes(8, index, 'network', { hostNetwork: true }),
    ...sometimes(10, index, 'processes', { hostPID: true }),
    ...sometimes(3, index, 'seccomp', { securityContext: { seccompProfile: { type: 'RuntimeDefault' } } }),
    ...sometimes(12, index, 'volume', { volumes: [{ name: 'node', hostPath: { path: '/var/log' } }] }),
    ...more,
  };
}

interface Content {
  readonly apiVersion: string;
  readonly kind: string;
  readonly [field: string]: unknown;
}

/** Kinds by turns: three pods, and one of each other. */
const CONTENTS: readonly ((index: number) => Content)[] = [
  pod,
  (index) => workload('Deployment', index, { replicas: pick([0, 1, 2, 6], index, 'replicas') }),
  service,
  pod,
  configMap,
  ingress,
  widget,
  pod,
  (index) => pick([job, cronJob, statefulSet, daemonSet], index, 'kind')(index),
  (index) => pick([networkPolicy, claim, role, account, budget], index, 'kind')(index),
];

function pod(index: number): Content {
  return { apiVersion: 'v1', kind: 'Pod', spec: podSpec(index) };
}

function workload(kind: string, index: number, more: object): Content {
  const labels = { app: `app-${index}` };
  const template = { metadata: { labels }, spec: podSpec(index) };
  return { apiVersion: 'apps/v1', kind, spec: { selector: { matchLabels: labels }, template, ...more } };
}

const statefulSet = (index: number): Content =>
  workload('StatefulSet', index, { serviceName: 'none', replicas: pick([0, 1], index, 'replicas') });
const daemonSet = (index: number): Content => workload('DaemonSet', index, {});

function jobSpec(index: number): object {
  return { template: { spec: podSpec(index, { restartPolicy: 'Never' }) }, parallelism: 1 };
}

const job = (index: number): Content => ({ apiVersion: 'batch/v1', kind: 'Job', spec: jobSpec(index) });
const cronJob = (index: number): Content => ({
  apiVersion: 'batch/v1',
  kind: 'CronJob',
  spec: { schedule: '0 0 1 1 *', jobTemplate: { spec: jobSpec(index) } },
});

function service(index: number): Content {
  const hasAddress = index < MOST_WITH_ADDRESSES;
  const type = pick(['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'], index, 'type');
  const external = { type: 'ExternalName', externalName: 'elsewhere.example' };
  const headless = { type: 'ClusterIP', clusterIP: 'None', selector: { app: 'web' } };
  const own = type === 'ClusterIP' && pick([true, false, false], index, 'headless');
  const addressed = own ? headless : { type, selector: { app: 'web' } };
  const spec = type === 'ExternalName' ? external : hasAddress ? addressed : headless;
  return { apiVersion: 'v1', kind: 'Service', spec: { ports: [{ port: 80 + (index % 3) }], ...spec } };
}

function configMap(index: number): Content {
  const data = Object.fromEntries(Array.from({ length: index % 7 }, (_, key) => [`key-${key}`, `value ${index}`]));
  return { apiVersion: 'v1', kind: 'ConfigMap', data };
}

function ingress(index: number): Content {
  const backend = { service: { name: 'web', port: { number: 80 } } };
  const host = pick(['shop.example.com', '*.example.com', 'other.test'], index, 'host');
  const tls = sometimes(2, index, 'tls', { tls: [{ hosts: [host], secretName: 'cert' }] });
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    spec: { rules: [{ host, http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }], ...tls },
  };
}

function widget(index: number): Content {
  const spec = pick<object>([{}, { size: 3 }, { size: 12, parts: ['a'] }, { parts: [] }], index, 'spec');
  return {
    apiVersion: `${GROUP}/${pick(['v1', 'v1beta1'], index, 'version')}`,
    kind: WIDGET.kind,
    spec,
    status: { seen: true },
  };
}

const networkPolicy = (index: number): Content => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  spec: { podSelector: {}, ...pick<object>([{ policyTypes: ['Egress'] }, { ingress: [{}] }], index, 'rules') },
});
const claim = (index: number): Content => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: `${1 + (index % 20)}Gi` } } },
});
const role = (index: number): Content => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'Role',
  rules: [{ apiGroups: [''], resources: ['pods'], verbs: [pick(['get', '*'], index, 'verb')] }],
});
const account = (): Content => ({ apiVersion: 'v1', kind: 'ServiceAccount' });
const budget = (index: number): Content => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  spec: { minAvailable: index % 3, selector: { matchLabels: { app: `app-${index}` } } },
});

/** That many objects in the namespaces, the same ones each time. */
export function agreementObjects(count: number): readonly KubernetesObject[] {
  const [first = '', ...others] = Object.keys(AGREEMENT_NAMESPACES);
  return Array.from({ length: count }, (_, index) => {
    const { apiVersion, kind, ...rest } = (CONTENTS[index % CONTENTS.length] ?? pod)(index);
    const labels = {
      ...sometimes(2, index, 'name', { 'app.kubernetes.io/name': 'web' }),
      ...sometimes(4, index, 'exception', { 'security.example.com/exception': 'yes' }),
      ...pick<object>([{}, {}, {}, { tier: 'critical' }, { tier: 'batch' }], index, 'tier'),
    };
    const namespace = pick([first, ...others], index, 'namespace');
    return { apiVersion, kind, metadata: { namespace, name: `o-${index}`, labels }, ...rest };
  });
}
