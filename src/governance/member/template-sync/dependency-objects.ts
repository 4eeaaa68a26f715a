// Reads the objects of dependencies.
import { ApiError } from '../../../cluster/index.ts';
import {
  groupVersionOf,
  type KubernetesObject,
  type ObjectKey,
  POLICIES,
  type Policy,
  type ResourceType,
} from '../../../resources/index.ts';
import type { ObjectCache } from '../../../runtime/index.ts';
import { errorText } from '../../../values/index.ts';
import { type DependencyLookup, type DependencyObject, objectId, type Requirement } from '../../dependencies/index.ts';
import { type KindMappings, typeKey } from '../../objects/kind-mappings.ts';
import type { KindObjects, ObjectReader, ReadSelection } from '../../objects/watched-kinds.ts';
import { rootOf } from '../../targets/policy-copy.ts';

/** The kinds of some dependencies. */
export interface MappedDependencies {
  /** By {@link objectId}. */
  readonly objects: ReadonlyMap<string, Mapped>;
  /** Objects whose changes must be followed, besides those of our own kinds. */
  readonly selections: readonly ReadSelection[];
  /** Groups of kinds that the cluster does not serve. */
  readonly missingGroups: ReadonlySet<string>;
}

/** The kind of a dependency, or why it is not known. */
type Mapped = { readonly type: ResourceType; readonly key: ObjectKey } | { readonly failure: DependencyObject };

export interface DependencyObjectsOptions {
  readonly mappings: KindMappings;
  readonly reader: ObjectReader;
  readonly policies: Pick<ObjectCache<Policy>, 'get'>;
  /** The caches of our own kinds. */
  readonly own: readonly ObjectCache[];
}

/** Reads the objects of dependencies: of our own kinds from the controller's caches, others by the governance account. */
export class DependencyObjects {
  readonly #options: DependencyObjectsOptions;

  constructor(options: DependencyObjectsOptions) {
    this.#options = options;
  }

  /** Finds the kinds of dependencies. Never rejects, unless `signal` is aborted. */
  async map(requirements: Iterable<Requirement>, signal: AbortSignal): Promise<MappedDependencies> {
    const unique = new Map([...requirements].map((requirement) => [objectId(requirement), requirement]));
    const entries = await Promise.all(
      [...unique].map(async ([id, requirement]) => [id, await this.#map(requirement, signal)] as const),
    );
    const selections = entries.flatMap(([, mapped]) =>
      'type' in mapped && this.#ownCache(mapped.type) === undefined ? [{ type: mapped.type, ...mapped.key }] : [],
    );
    const missing = entries.flatMap(([id, mapped]) =>
      'failure' in mapped && mapped.failure.type === 'no-such-kind'
        ? [groupVersionOf(unique.get(id)?.apiVersion ?? '').group]
        : [],
    );
    return { objects: new Map(entries), selections, missingGroups: new Set(missing) };
  }

  /** Reads the objects, all at the same moment. */
  async read({ objects, selections }: MappedDependencies, signal: AbortSignal): Promise<DependencyLookup> {
    const kinds = new Map<string, KindObjects | DependencyObject>();
    const types = new Map(selections.map(({ type }) => [typeKey(type), type]));
    await Promise.all([...types].map(async ([key, type]) => kinds.set(key, await this.#open(type, signal))));
    const found = new Map([...objects].map(([id, mapped]) => [id, this.#found(mapped, kinds)]));
    return (requirement) => found.get(objectId(requirement)) ?? { type: 'not-found' };
  }

  async #map({ apiVersion, kind, namespace, name }: Requirement, signal: AbortSignal): Promise<Mapped> {
    try {
      const type = await this.#options.mappings.find(apiVersion, kind, signal);
      return type === undefined
        ? { failure: { type: 'no-such-kind' } }
        : { type, key: type.namespaced ? { namespace, name } : { name } };
    } catch (error) {
      signal.throwIfAborted();
      return { failure: failureOf(error) };
    }
  }

  async #open(type: ResourceType, signal: AbortSignal): Promise<KindObjects | DependencyObject> {
    try {
      return await this.#options.reader.open(type, signal);
    } catch (error) {
      signal.throwIfAborted();
      return failureOf(error);
    }
  }

  #found(mapped: Mapped, kinds: ReadonlyMap<string, KindObjects | DependencyObject>): DependencyObject {
    if ('failure' in mapped) {
      return mapped.failure;
    }
    const { type, key } = mapped;
    if (type.group === POLICIES.group && type.kind === POLICIES.kind && this.#isOutdated(key)) {
      return { type: 'outdated' };
    }
    const objects = this.#ownCache(type) ?? kinds.get(typeKey(type));
    return objects === undefined || 'get' in objects ? foundOrNot(objects?.get(key)) : objects;
  }

  /** Whether the Policy of a copy has changed, and the copy not yet. */
  #isOutdated({ name }: ObjectKey): boolean {
    const root = rootOf(name);
    const policy = root === undefined ? undefined : this.#options.policies.get(root);
    return policy !== undefined && policy.status?.observedGeneration !== policy.metadata.generation;
  }

  #ownCache({ group, kind }: ResourceType): ObjectCache | undefined {
    return this.#options.own.find(({ type }) => type.group === group && type.kind === kind);
  }
}

function failureOf(error: unknown): DependencyObject {
  const isForbidden = error instanceof ApiError && error.code === 403;
  return { type: isForbidden ? 'forbidden' : 'failed', message: errorText(error) };
}

function foundOrNot(object: KubernetesObject | undefined): DependencyObject {
  return object === undefined ? { type: 'not-found' } : { type: 'found', object };
}
