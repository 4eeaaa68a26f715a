// Discovery documents: by group, and aggregated (https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api).
import { createHash } from 'node:crypto';
import type { ResourceDefinition } from '../resource-definition.ts';
import { mediaRanges } from './negotiation.ts';
import { subresourcesOf, verbsOf } from '../subresources.ts';

/** A version of a group, with its kinds. */
interface ServedVersion {
  readonly version: string;
  readonly definitions: readonly ResourceDefinition[];
}

/** A group; the preferred version first. */
interface ServedGroup {
  readonly name: string;
  readonly versions: readonly ServedVersion[];
}

/** The discovery documents of a set of definitions. */
export class DiscoveryDocuments {
  readonly #groups: readonly ServedGroup[];

  /** @param definitions in any order, but the preferred version of a group before its others */
  constructor(definitions: readonly ResourceDefinition[]) {
    const groups = new Map<string, Map<string, ResourceDefinition[]>>();
    for (const definition of definitions) {
      const versions = groups.get(definition.group) ?? new Map<string, ResourceDefinition[]>();
      groups.set(definition.group, versions);
      const served = versions.get(definition.version) ?? [];
      versions.set(definition.version, served);
      served.push(definition);
    }
    this.#groups = [...groups].map(([name, versions]) => ({
      name,
      versions: [...versions].map(([version, served]) => ({ version, definitions: served.toSorted(byResource) })),
    }));
  }

  /** All groups and versions: `v1`, `apps/v1`. */
  groupVersions(): readonly string[] {
    return this.#groups.flatMap(({ name, versions }) => versions.map(({ version }) => joined(name, version)));
  }

  /** `/api` */
  coreVersions(serverAddress: string): object {
    return {
      kind: 'APIVersions',
      versions: this.#group('')?.versions.map(({ version }) => version) ?? [],
      serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress }],
    };
  }

  /** `/apis` */
  groupList(): object {
    return { kind: 'APIGroupList', apiVersion: 'v1', groups: this.#named().map((group) => groupOf(group)) };
  }

  /** `/apis/apps` */
  group(name: string): object | undefined {
    const group = name === '' ? undefined : this.#group(name);
    return group === undefined ? undefined : { kind: 'APIGroup', apiVersion: 'v1', ...groupOf(group) };
  }

  /** `/api/v1`, `/apis/apps/v1` */
  resourceList(group: string, version: string): object | undefined {
    const served = this.#group(group)?.versions.find((candidate) => candidate.version === version);
    if (served === undefined) {
      return undefined;
    }
    return {
      kind: 'APIResourceList',
      apiVersion: 'v1',
      groupVersion: joined(group, version),
      resources: served.definitions.flatMap((definition) => resourcesOf(definition)),
    };
  }

  /** `/api` or `/apis` in one document. */
  aggregated(isCore: boolean, version: 'v2' | 'v2beta1'): object {
    const groups = isCore ? this.#groups.filter(({ name }) => name === '') : this.#named();
    return {
      kind: 'APIGroupDiscoveryList',
      apiVersion: `apidiscovery.k8s.io/${version}`,
      metadata: {},
      items: groups.map(({ name, versions }) => ({
        metadata: name === '' ? {} : { name },
        versions: versions.map((served) => ({
          version: served.version,
          resources: served.definitions.map((definition) => aggregatedResource(definition)),
          freshness: 'Current',
        })),
      })),
    };
  }

  #group(name: string): ServedGroup | undefined {
    return this.#groups.find((group) => group.name === name);
  }

  #named(): readonly ServedGroup[] {
    return this.#groups.filter(({ name }) => name !== '');
  }
}

/** The version of aggregated discovery that a client accepts; undefined when it wants documents by group. */
export function aggregatedVersion(accept: string | undefined): 'v2' | 'v2beta1' | undefined {
  for (const { type, parameters } of mediaRanges(accept)) {
    if (type !== 'application/json' && type !== '*/*') {
      continue;
    }
    if (!parameters.has('as')) {
      return undefined;
    }
    const version = parameters.get('v');
    const isAggregated =
      parameters.get('g') === 'apidiscovery.k8s.io' && parameters.get('as') === 'APIGroupDiscoveryList';
    if (isAggregated && (version === 'v2' || version === 'v2beta1')) {
      return version;
    }
  }
  return undefined;
}

/** The content type of an aggregated document. */
export function aggregatedContentType(version: 'v2' | 'v2beta1'): string {
  return `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;
}

function byResource(a: ResourceDefinition, b: ResourceDefinition): number {
  return a.resource < b.resource ? -1 : 1;
}

function joined(group: string, version: string): string {
  return group === '' ? version : `${group}/${version}`;
}

function groupOf({ name, versions }: ServedGroup): object {
  const all = versions.map(({ version }) => ({ groupVersion: joined(name, version), version }));
  return { name, versions: all, preferredVersion: all[0] };
}

function resourcesOf(definition: ResourceDefinition): object[] {
  const { resource, singular, namespaced, kind, shortNames, categories } = definition;
  const isStored = definition.verbs === undefined;
  return [
    {
      name: resource,
      singularName: singular,
      namespaced,
      kind,
      verbs: verbsOf(definition),
      ...(shortNames.length === 0 ? {} : { shortNames }),
      ...(categories.length === 0 ? {} : { categories }),
      ...(isStored ? { storageVersionHash: storageVersionHash(definition) } : {}),
    },
    ...subresourcesOf(definition).map(({ name, verbs, kind: other }) => ({
      name: `${resource}/${name}`,
      singularName: '',
      namespaced,
      ...(other === undefined ? { kind } : withoutEmptyGroup(other)),
      verbs,
    })),
  ];
}

function withoutEmptyGroup(type: { readonly group: string; readonly version: string; readonly kind: string }): object {
  const { group, version, kind } = type;
  return group === '' ? { kind } : { group, version, kind };
}

/** An opaque hash that changes with the storage version, as clients expect. */
function storageVersionHash({ group, version, kind }: ResourceDefinition): string {
  return createHash('sha256').update(`${group}/${version}/${kind}`).digest().subarray(0, 8).toString('base64');
}

function aggregatedResource(definition: ResourceDefinition): object {
  const { group, version, resource, singular, namespaced, kind, shortNames, categories } = definition;
  const subresources = subresourcesOf(definition);
  return {
    resource,
    responseKind: { group, version, kind },
    scope: namespaced ? 'Namespaced' : 'Cluster',
    singularResource: singular,
    verbs: verbsOf(definition),
    ...(shortNames.length === 0 ? {} : { shortNames }),
    ...(categories.length === 0 ? {} : { categories }),
    ...(subresources.length === 0
      ? {}
      : {
          subresources: subresources.map((subresource) => ({
            subresource: subresource.name,
            responseKind: subresource.kind ?? { group, version, kind },
            verbs: subresource.verbs,
          })),
        }),
  };
}

/** The group and version in a discovery path. Undefined for other paths. */
export function discoveryPath(
  path: string,
): { readonly group: string; readonly version: string | undefined } | 'core' | 'groups' | undefined {
  const segments = path.split('/').slice(1);
  const [root, first = '', second, ...rest] = segments;
  if (path === '/api') {
    return 'core';
  }
  if (path === '/apis') {
    return 'groups';
  }
  if (root === 'api' && second === undefined) {
    return { group: '', version: first };
  }
  if (root === 'apis' && rest.length === 0) {
    return { group: first, version: second };
  }
  return undefined;
}
