// Subresources, for discovery and OpenAPI.
import type { ResourceDefinition } from './resource-definition.ts';

/** A subresource. */
export interface Subresource {
  readonly name: string;
  readonly verbs: readonly string[];
  /** The kind of its objects; absent for the resource's own kind. */
  readonly kind?: { readonly group: string; readonly version: string; readonly kind: string };
}

const READ_WRITE = ['get', 'patch', 'update'] as const;

/** Subresources of single kinds, by `group/resource`. */
const KIND_SUBRESOURCES: ReadonlyMap<string, readonly Subresource[]> = new Map([
  ['/namespaces', [{ name: 'finalize', verbs: ['update'] }]],
  [
    '/pods',
    [
      { name: 'binding', verbs: ['create'], kind: { group: '', version: 'v1', kind: 'Binding' } },
      { name: 'eviction', verbs: ['create'], kind: { group: 'policy', version: 'v1', kind: 'Eviction' } },
    ],
  ],
  [
    '/serviceaccounts',
    [
      {
        name: 'token',
        verbs: ['create'],
        kind: { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' },
      },
    ],
  ],
]);

/** The subresources of a kind, by name. */
export function subresourcesOf(definition: ResourceDefinition): readonly Subresource[] {
  const own = KIND_SUBRESOURCES.get(`${definition.group}/${definition.resource}`) ?? [];
  const scale: Subresource = {
    name: 'scale',
    verbs: READ_WRITE,
    kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
  };
  return [
    ...own,
    ...(definition.scale === undefined ? [] : [scale]),
    ...(definition.hasStatus ? [{ name: 'status', verbs: READ_WRITE }] : []),
  ].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Verbs of stored kinds, in discovery's order. */
const STORED_VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'] as const;

/** Verbs of custom resources, in discovery's order. */
const CUSTOM_VERBS = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'] as const;

/** The verbs of a resource. */
export function verbsOf(definition: ResourceDefinition): readonly string[] {
  return definition.verbs ?? (definition.origin === 'custom' ? CUSTOM_VERBS : STORED_VERBS);
}
