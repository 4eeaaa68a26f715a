import type { ApiResource, Discovery } from '../../cluster/index.ts';
import { apiVersionOf } from '../../resources/index.ts';
import type { ResourceRegistry, RegisteredResource } from './kinds/resource-registry.ts';

/** Verbs of stored kinds. */
const STORED_VERBS: readonly string[] = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
];

/** Subresources besides `status` and `scale`, by collection. */
const SUBRESOURCES: ReadonlyMap<string, readonly string[]> = new Map([
  ['namespaces', ['finalize']],
  ['pods', ['eviction']],
  ['serviceaccounts', ['token']],
]);

/** Discovery of an embedded cluster. */
export class EmbeddedDiscovery implements Discovery {
  readonly #registry: ResourceRegistry;

  constructor(registry: ResourceRegistry) {
    this.#registry = registry;
  }

  async resources(): Promise<readonly ApiResource[]> {
    return this.#registry.all().map(apiResource);
  }

  async find(apiVersion: string, kind: string): Promise<ApiResource | undefined> {
    const served = this.#registry.findKind(apiVersion, kind);
    return served === undefined ? undefined : apiResource(served);
  }
}

function apiResource({ definition, collection }: RegisteredResource): ApiResource {
  const { group, version, resource, kind, namespaced, singular, shortNames, categories, hasStatus, scale } = definition;
  return {
    group,
    version,
    resource,
    kind,
    namespaced,
    singular,
    shortNames,
    categories,
    verbs: definition.verbs ?? STORED_VERBS,
    subresources: [
      ...(hasStatus ? ['status'] : []),
      ...(scale === undefined ? [] : ['scale']),
      ...(apiVersionOf(definition) === 'v1' ? (SUBRESOURCES.get(collection) ?? []) : []),
    ],
  };
}
