// Policies of all kinds, with all types of modules. Each has an object that it rejects or changes.
import type { KubernetesObject } from '../cluster/cluster.ts';

/** A policy, and an object that it rejects or changes. */
export interface PolicyCase {
  /** The plural of its kind. */
  readonly resource: string;
  readonly policy: KubernetesObject;
  /** The API path for the creation of the object. */
  readonly path: string;
  readonly object: object;
  /** Matches the response. */
  readonly expected: RegExp;
}

/** A policy, with the fields that tests read. */
export interface PolicyObject {
  readonly metadata: { readonly name: string };
  readonly [key: string]: unknown;
}

const API = 'policies.kubewarden.io/v1';

/** The label of namespaces that the example policies match. */
export const EXAMPLES_HOLD = { 'examples.portcullis.dev/enforce': 'true' };

/** A pod that the Pod Security Standard `restricted` admits, with changes. */
export function pod(spec: object = {}, container: object = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { generateName: 'asked-' },
    spec: {
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'main',
          image: 'example.com/shop/web:1.0',
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
          resources: { limits: { cpu: '100m', memory: '64Mi' } },
          ...container,
        },
      ],
      ...spec,
    },
  };
}

/** Policies of a namespace that match its Services. */
export function namespacedPolicies(namespace: string): readonly PolicyCase[] {
  const services = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['services'], operations: ['CREATE'] }];
  const claims = [
    { apiGroups: [''], apiVersions: ['v1'], resources: ['persistentvolumeclaims'], operations: ['CREATE'] },
  ];
  const refusing = (message: string): object => ({
    module: 'builtin:cel',
    settings: { validations: [{ expression: 'false', message }] },
  });
  return [
    {
      resource: 'admissionpolicies',
      policy: {
        apiVersion: API,
        kind: 'AdmissionPolicy',
        metadata: { name: 'no-services', namespace },
        spec: { ...refusing('no services here'), mutating: false, rules: services },
      },
      path: `/api/v1/namespaces/${namespace}/services`,
      object: { apiVersion: 'v1', kind: 'Service', metadata: { name: 'asked' }, spec: { ports: [{ port: 80 }] } },
      expected: /no services here/,
    },
    {
      resource: 'admissionpolicygroups',
      policy: {
        apiVersion: API,
        kind: 'AdmissionPolicyGroup',
        metadata: { name: 'no-claims', namespace },
        spec: {
          expression: 'one() || other()',
          message: 'no claims here',
          policies: { one: refusing('one'), other: refusing('other') },
          rules: claims,
        },
      },
      path: `/api/v1/namespaces/${namespace}/persistentvolumeclaims`,
      object: {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'asked' },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      },
      expected: /no claims here/,
    },
  ];
}

/** By example: an object that it rejects, and the message. `default-seccomp` and `cost-center` change objects instead. */
export const REFUSED_BY_EXAMPLES: Readonly<Record<string, readonly [object: object, expected: RegExp]>> = {
  'pod-privileged': [pod({}, { securityContext: { privileged: true } }), /cap\/pod-privileged/],
  'host-namespaces': [pod({ hostNetwork: true }), /cap\/host-namespaces/],
  'container-limits': [pod({}, { resources: {} }), /cap\/container-limits/],
  'pod-security': [pod({ hostPID: true }), /cap\/pod-security/],
  'privileged-by-exception': [pod({}, { securityContext: { privileged: true } }), /capg\/privileged-by-exception/],
};

/** The mutating policies `closed` and `counted`. Webhooks are called in the order of the names of the policies. */
export function mutatingPolicies(
  first: 'closed' | 'counted',
  labels: Readonly<Record<string, string>>,
): PolicyObject[] {
  const closed = `Object{spec: Object.spec{containers: object.spec.containers.map(c,
    Object.spec.containers{name: c.name, securityContext: Object.spec.containers.securityContext{allowPrivilegeEscalation: false}})}}`;
  const counted = `[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'containers': string(object.spec.containers.size())}}]`;
  const mutations = {
    closed: { patchType: 'ApplyConfiguration', applyConfiguration: { expression: closed } },
    counted: { patchType: 'JSONPatch', jsonPatch: { expression: counted } },
  };
  const names = first === 'closed' ? (['closed', 'counted'] as const) : (['counted', 'closed'] as const);
  return names.map((name, index) => ({
    apiVersion: API,
    kind: 'ClusterAdmissionPolicy',
    metadata: { name: `mutating-${first}-${index}` },
    spec: {
      module: 'builtin:cel',
      mutating: true,
      rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
      namespaceSelector: { matchLabels: labels },
      settings: { mutations: [mutations[name]] },
    },
  }));
}

/** A policy that rejects pods without the changes of the mutating policies. */
export const VALIDATED_AFTERWARDS = {
  apiVersion: API,
  kind: 'ClusterAdmissionPolicy',
  metadata: { name: 'validated-afterwards' },
  spec: {
    module: 'builtin:cel',
    mutating: false,
    rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
    namespaceSelector: { matchExpressions: [{ key: 'mutated', operator: 'Exists' }] },
    settings: {
      validations: [
        {
          expression:
            'object.spec.containers.all(c, has(c.securityContext) && c.securityContext.?allowPrivilegeEscalation.orValue(true) == false)',
          message: 'a container is open',
        },
        {
          expression: "object.metadata.annotations['containers'] == string(object.spec.containers.size())",
          message: 'containers are counted wrong',
        },
        { expression: 'object.spec.containers.size() < 3', message: 'too many containers' },
      ],
    },
  },
};
