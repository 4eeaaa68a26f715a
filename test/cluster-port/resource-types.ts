// The types of the cases, and small objects of them.
import type { KubernetesObject, ResourceType } from '../../src/resources/index.ts';

export type Data = KubernetesObject & { readonly data?: Readonly<Record<string, string>> };
export type Specified = KubernetesObject & {
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
};

export const CONFIG_MAPS: ResourceType<Data> = {
  group: '',
  version: 'v1',
  resource: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};
export const NAMESPACES: ResourceType<Specified> = {
  group: '',
  version: 'v1',
  resource: 'namespaces',
  kind: 'Namespace',
  namespaced: false,
};
export const PODS: ResourceType<Specified> = {
  group: '',
  version: 'v1',
  resource: 'pods',
  kind: 'Pod',
  namespaced: true,
};
export const SERVICES: ResourceType<Specified> = {
  group: '',
  version: 'v1',
  resource: 'services',
  kind: 'Service',
  namespaced: true,
};
export const SERVICE_ACCOUNTS: ResourceType = {
  group: '',
  version: 'v1',
  resource: 'serviceaccounts',
  kind: 'ServiceAccount',
  namespaced: true,
};
export const DEPLOYMENTS: ResourceType<Specified> = {
  group: 'apps',
  version: 'v1',
  resource: 'deployments',
  kind: 'Deployment',
  namespaced: true,
};
const RBAC = { group: 'rbac.authorization.k8s.io', version: 'v1' } as const;
export const ROLES: ResourceType = { ...RBAC, resource: 'roles', kind: 'Role', namespaced: true };
export const ROLE_BINDINGS: ResourceType = { ...RBAC, resource: 'rolebindings', kind: 'RoleBinding', namespaced: true };
export const CLUSTER_ROLES: ResourceType = {
  ...RBAC,
  resource: 'clusterroles',
  kind: 'ClusterRole',
  namespaced: false,
};
export const CUSTOM_RESOURCES: ResourceType<Specified> = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  resource: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  namespaced: false,
};
export const ACCESS_REVIEWS: ResourceType<Specified> = {
  group: 'authorization.k8s.io',
  version: 'v1',
  resource: 'selfsubjectaccessreviews',
  kind: 'SelfSubjectAccessReview',
  namespaced: false,
};

export function configMap(namespace: string, name: string, data: Record<string, string> = {}): Data {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name }, data };
}

export function pod(namespace: string, name: string, labels: Record<string, string> = {}): Specified {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name, labels },
    spec: { containers: [{ name: 'main', image: 'registry.example/app:1' }] },
  };
}

export function deployment(namespace: string, name: string, replicas = 1): Specified {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { namespace, name },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: { containers: [{ name: 'main', image: 'registry.example/app:1' }] },
      },
    },
  };
}

/** A custom resource of a case: `Crate`, with the features of structural schemas. */
export function crateDefinition(group: string): Specified {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `crates.${group}` },
    spec: {
      group,
      names: { plural: 'crates', singular: 'crate', kind: 'Crate', listKind: 'CrateList', shortNames: ['cr8'] },
      scope: 'Namespaced',
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: {
            status: {},
            scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
          },
          additionalPrinterColumns: [{ name: 'Size', type: 'string', jsonPath: '.spec.size' }],
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: {
                spec: {
                  type: 'object',
                  required: ['size'],
                  properties: {
                    size: { type: 'string', enum: ['small', 'large'] },
                    replicas: { type: 'integer', format: 'int32', minimum: 0, default: 1 },
                    labels: { type: 'object', additionalProperties: { type: 'string' } },
                    free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                    ports: {
                      type: 'array',
                      'x-kubernetes-list-type': 'map',
                      'x-kubernetes-list-map-keys': ['name'],
                      items: {
                        type: 'object',
                        required: ['name'],
                        properties: { name: { type: 'string' }, port: { type: 'integer', maximum: 65535 } },
                      },
                    },
                  },
                  'x-kubernetes-validations': [
                    { rule: "self.size != 'small' || self.replicas <= 3", message: 'a small crate has at most 3' },
                    { rule: 'self.size == oldSelf.size', message: 'size is immutable' },
                  ],
                },
                status: {
                  type: 'object',
                  properties: { replicas: { type: 'integer' }, note: { type: 'string' } },
                },
              },
            },
          },
        },
      ],
    },
  };
}

export function cratesOf(group: string): ResourceType<Specified> {
  return { group, version: 'v1', resource: 'crates', kind: 'Crate', namespaced: true };
}

export function crate(
  group: string,
  namespace: string,
  name: string,
  spec: Record<string, unknown> = { size: 'small' },
): Specified {
  return { apiVersion: `${group}/v1`, kind: 'Crate', metadata: { namespace, name }, spec };
}
