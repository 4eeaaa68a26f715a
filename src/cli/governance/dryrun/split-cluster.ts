// The cluster of the controllers in a dry run: governance policies are in one of their own, all else is read from another.
import type { Cluster, Discovery, WatchEvent } from '../../../cluster/index.ts';
import {
  GOVERNANCE_KINDS,
  groupResourceOf,
  type KubernetesObject,
  MANAGED_BY,
  type ResourceType,
} from '../../../resources/index.ts';

const OWN: ReadonlySet<string> = new Set(GOVERNANCE_KINDS.map(groupResourceOf));
const DEFINITIONS = groupResourceOf({ group: 'apiextensions.k8s.io', resource: 'customresourcedefinitions' });
const NAMESPACES = groupResourceOf({ group: '', resource: 'namespaces' });

export interface SplitClusterOptions {
  /** Has the policies and the definitions of their kinds, and takes all writes. */
  readonly own: Cluster;
  /** Is only read. */
  readonly rest: Cluster;
  /** The namespace of copies and templates. */
  readonly clusterName: string;
}

export function splitCluster({ own, rest, clusterName }: SplitClusterOptions): Cluster {
  const isOfRest = (type: ResourceType): boolean => !isOwn(type);
  return {
    discovery: splitDiscovery(own.discovery, rest.discovery),
    list: async (type, options) => {
      if (!isOfRest(type)) {
        return await own.list(type, options);
      }
      const { items, ...list } = await rest.list(type, options);
      const shown = items.flatMap((object) => shownObject(type, object, clusterName) ?? []);
      const isFirstPage = options?.continue === undefined && groupResourceOf(type) === DEFINITIONS;
      return { ...list, items: isFirstPage ? [...(await own.list(type)).items, ...shown] : shown };
    },
    watch: (type, options) =>
      isOfRest(type) ? shownEvents(type, rest.watch(type, options), clusterName) : own.watch(type, options),
    get: (type, key, options) => own.get(type, key, options),
    create: (type, object, options) => own.create(type, object, options),
    update: (type, object, options) => own.update(type, object, options),
    patch: (type, key, patch, options) => own.patch(type, key, patch, options),
    delete: (type, key, options) => own.delete(type, key, options),
    deleteCollection: (type, options) => own.deleteCollection(type, options),
  };
}

function splitDiscovery(own: Discovery, rest: Discovery): Discovery {
  return {
    find: async (apiVersion, kind, options) => {
      const found = await own.find(apiVersion, kind, options);
      return found !== undefined && isOwn(found) ? found : await rest.find(apiVersion, kind, options);
    },
    resources: async (options) => [
      ...(await own.resources(options)).filter(isOwn),
      ...(await rest.resources(options)).filter((type) => !isOwn(type)),
    ],
  };
}

async function* shownEvents<T extends KubernetesObject>(
  type: ResourceType,
  events: AsyncIterable<WatchEvent<T>>,
  clusterName: string,
): AsyncIterable<WatchEvent<T>> {
  for await (const event of events) {
    const object = shownObject(type, event.object, clusterName);
    if (object !== undefined) {
      yield { ...event, object };
    }
  }
}

/** An object of the rest, as controllers see it. Definitions of our kinds, and the namespace of policies, are our own. */
function shownObject<T extends KubernetesObject>(type: ResourceType, object: T, clusterName: string): T | undefined {
  const { metadata } = object;
  switch (groupResourceOf(type)) {
    case DEFINITIONS:
      // A definition is named as its resource.
      return OWN.has(metadata.name ?? '') ? undefined : object;
    case NAMESPACES:
      return metadata.name === clusterName
        ? { ...object, metadata: { ...metadata, labels: { ...metadata.labels, ...MANAGED_BY } } }
        : object;
    default:
      return object;
  }
}

function isOwn(type: Pick<ResourceType, 'group' | 'resource'>): boolean {
  return OWN.has(groupResourceOf(type));
}
