// Finds the resource of a kind. Kinds of CustomResourceDefinitions are read from a cache, so that a kind is known as soon as
// it is served, without requests.
import type { Discovery } from '../../cluster/index.ts';
import {
  apiVersionOf,
  type Condition,
  groupVersionOf,
  isConditionTrue,
  knownKind,
  type KubernetesObject,
  type ResourceType,
} from '../../resources/index.ts';
import type { CachedObjects } from '../../runtime/index.ts';

/** The fields of a CustomResourceDefinition that are kept. */
export interface CustomResourceDefinition extends KubernetesObject {
  readonly spec: {
    readonly group: string;
    readonly scope: string;
    readonly names: { readonly kind: string; readonly plural: string };
    readonly versions: readonly { readonly name: string; readonly served: boolean }[];
  };
  readonly status?: { readonly conditions?: readonly Condition[] };
}

export const CUSTOM_RESOURCE_DEFINITIONS = knownKind<CustomResourceDefinition>(
  'apiextensions.k8s.io/v1',
  'CustomResourceDefinition',
);

/** Reduces a CustomResourceDefinition to what {@link KindMappings} needs: schemas are most of it. */
export function withoutSchemas(definition: CustomResourceDefinition): CustomResourceDefinition {
  const { apiVersion, kind, spec, status } = definition;
  const { name = '', uid, resourceVersion, labels, deletionTimestamp } = definition.metadata;
  const conditions = status?.conditions;
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(labels === undefined ? {} : { labels }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    },
    spec: {
      group: spec.group,
      scope: spec.scope,
      names: { kind: spec.names.kind, plural: spec.names.plural },
      versions: spec.versions.map(({ name: version, served }) => ({ name: version, served })),
    },
    ...(conditions === undefined ? {} : { status: { conditions } }),
  };
}

/** Maps kinds to resources. */
export class KindMappings {
  readonly #discovery: Discovery;
  readonly #definitions: Pick<CachedObjects<CustomResourceDefinition>, 'list'>;

  constructor(discovery: Discovery, definitions: Pick<CachedObjects<CustomResourceDefinition>, 'list'>) {
    this.#discovery = discovery;
    this.#definitions = definitions;
  }

  /** The resource of a kind, undefined when the cluster does not serve it. @throws ApiError, ClusterError */
  async find(apiVersion: string, kind: string, signal: AbortSignal): Promise<ResourceType | undefined> {
    const { group } = groupVersionOf(apiVersion);
    const definitions = this.#definitions.list().filter(({ spec }) => spec.group === group);
    // An API server does not serve one group from definitions and from its own code.
    return definitions.length > 0
      ? definitions.map((definition) => servedType(definition, apiVersion, kind)).find((type) => type !== undefined)
      : await this.#discovery.find(apiVersion, kind, { signal });
  }

  /** The labels of the definition of a kind; undefined when it has none. */
  labelsOf(apiVersion: string, kind: string): Readonly<Record<string, string>> | undefined {
    const { group } = groupVersionOf(apiVersion);
    const found = this.#definitions.list().find(({ spec }) => spec.group === group && spec.names.kind === kind);
    return found === undefined ? undefined : (found.metadata.labels ?? {});
  }
}

function servedType(
  { spec, status }: CustomResourceDefinition,
  apiVersion: string,
  kind: string,
): ResourceType | undefined {
  const { group, version } = groupVersionOf(apiVersion);
  const isServed =
    spec.names.kind === kind &&
    spec.versions.some((one) => one.name === version && one.served) &&
    isConditionTrue(status?.conditions, 'Established');
  return isServed
    ? { group, version, resource: spec.names.plural, kind, namespaced: spec.scope === 'Namespaced' }
    : undefined;
}

/** The key of a type in maps. */
export function typeKey(type: ResourceType): string {
  return `${apiVersionOf(type)}/${type.resource}`;
}
