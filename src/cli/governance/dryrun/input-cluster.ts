// A cluster that is given as manifests: without validation, defaults and controllers, so that differences show what users wrote.
import { EventEmitter, once } from 'node:events';
import {
  ApiError,
  type ApiResource,
  type Cluster,
  type ObjectList,
  type RequestOptions,
  type WatchEvent,
  type WatchOptions,
  type WriteOptions,
} from '../../../cluster/index.ts';
import {
  groupResourceOf,
  type JsonObject,
  keyOf,
  keyText,
  type KubernetesObject,
  type ObjectKey,
  type ResourceType,
} from '../../../resources/index.ts';
import { CliError } from '../../errors.ts';
import { oneLine } from '../../table.ts';
import { InputKinds } from './input-kinds.ts';

/** The namespace that every cluster has. */
const DEFAULT_NAMESPACE = 'default';
/** Fields that servers set. */
const SERVER_FIELDS: ReadonlySet<string> = new Set([
  'creationTimestamp',
  'generateName',
  'generation',
  'managedFields',
  'resourceVersion',
  'selfLink',
  'uid',
]);

/** The version of the manifests. */
const FIRST_VERSION = 1;

interface Stored {
  readonly type: ResourceType;
  readonly object: KubernetesObject;
}

export class InputCluster implements Cluster {
  readonly discovery: InputKinds;
  /** By type and key. */
  readonly #objects = new Map<string, Stored>();
  /** All changes, in the order of their versions; the first one leads from {@link FIRST_VERSION} to the next version. */
  readonly #events: { readonly type: ResourceType; readonly event: WatchEvent }[] = [];
  readonly #changes = new EventEmitter().setMaxListeners(0);

  /** @throws CliError when an object is invalid. Of two objects with one name the first one counts */
  constructor(manifests: readonly KubernetesObject[], mappings: readonly ApiResource[]) {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: DEFAULT_NAMESPACE } };
    this.discovery = new InputKinds(manifests, mappings);
    for (const manifest of [...manifests, namespace]) {
      const type = this.discovery.kind(manifest.apiVersion, manifest.kind);
      if (type === undefined) {
        throw new CliError(`no mapping of kind ${oneLine(manifest.kind)}: name it with --mappings-file`);
      }
      const object = asStored(manifest, type);
      const id = idOf(type, keyOf(object));
      if (!this.#objects.has(id)) {
        this.#objects.set(id, { type, object });
      }
    }
  }

  /** The names of all namespaces. */
  get namespaces(): readonly string[] {
    return this.#of({ group: '', resource: 'namespaces' }).map(({ metadata }) => metadata.name ?? '');
  }

  async get<T extends KubernetesObject>(type: ResourceType<T>, key: ObjectKey): Promise<T> {
    const found = this.#objects.get(idOf(type, key));
    if (found === undefined) {
      return await Promise.reject(ApiError.notFound(type, key.name));
    }
    return found.object as T;
  }

  async list<T extends KubernetesObject>(
    type: ResourceType<T>,
    { namespace }: { readonly namespace?: string } = {},
  ): Promise<ObjectList<T>> {
    const items = this.#of(type, namespace) as readonly T[];
    return await Promise.resolve({ metadata: { resourceVersion: String(FIRST_VERSION + this.#events.length) }, items });
  }

  async *watch<T extends KubernetesObject>(
    type: ResourceType<T>,
    { namespace, resourceVersion = String(FIRST_VERSION), signal }: WatchOptions = {},
  ): AsyncIterable<WatchEvent<T>> {
    for (let index = Number(resourceVersion) - FIRST_VERSION; signal?.aborted !== true; index += 1) {
      if (index >= this.#events.length) {
        try {
          await once(this.#changes, 'change', signal === undefined ? {} : { signal });
        } catch {
          return;
        }
      }
      const change = this.#events[index];
      const isIn = namespace === undefined || change?.event.object.metadata.namespace === namespace;
      if (change !== undefined && isIn && groupResourceOf(change.type) === groupResourceOf(type)) {
        yield change.event as WatchEvent<T>;
      }
    }
  }

  async create<T extends KubernetesObject>(
    type: ResourceType<T>,
    object: KubernetesObject,
    { dryRun = false }: WriteOptions = {},
  ): Promise<T> {
    if (this.#objects.has(idOf(type, keyOf(object)))) {
      return await Promise.reject(ApiError.alreadyExists(type, object.metadata.name ?? ''));
    }
    return dryRun ? (object as T) : this.#put(type, object, 'ADDED');
  }

  async update<T extends KubernetesObject>(
    type: ResourceType<T>,
    object: KubernetesObject,
    { dryRun = false }: WriteOptions = {},
  ): Promise<T> {
    return await Promise.resolve(dryRun ? (object as T) : this.#put<T>(type, object, 'MODIFIED'));
  }

  patch(): Promise<never> {
    return Promise.reject(new ApiError(405, 'MethodNotAllowed', 'a dry run patches nothing'));
  }

  async delete<T extends KubernetesObject>(type: ResourceType<T>, key: ObjectKey): Promise<undefined> {
    const object = await this.get(type, key);
    this.#objects.delete(idOf(type, key));
    this.#emit(type, 'DELETED', object);
    return undefined;
  }

  deleteCollection(_type: ResourceType, _options?: RequestOptions): Promise<never> {
    return Promise.reject(new ApiError(405, 'MethodNotAllowed', 'a dry run deletes no collections'));
  }

  #put<T extends KubernetesObject>(type: ResourceType<T>, object: KubernetesObject, event: 'ADDED' | 'MODIFIED'): T {
    this.#objects.set(idOf(type, keyOf(object)), { type, object });
    this.#emit(type, event, object);
    return object as T;
  }

  #emit(type: ResourceType, event: WatchEvent['type'], object: KubernetesObject): void {
    const metadata = { ...object.metadata, resourceVersion: String(FIRST_VERSION + this.#events.length + 1) };
    this.#events.push({ type, event: { type: event, object: { ...object, metadata } } });
    this.#changes.emit('change');
  }

  #of(type: Pick<ResourceType, 'group' | 'resource'>, namespace?: string): readonly KubernetesObject[] {
    return [...this.#objects.values()]
      .filter((stored) => groupResourceOf(stored.type) === groupResourceOf(type))
      .map(({ object }) => object)
      .filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace);
  }
}

/** The object without fields of a server, in a namespace if its kind has them. */
function asStored(manifest: KubernetesObject, type: ApiResource): KubernetesObject {
  const metadata = Object.fromEntries(
    Object.entries(manifest.metadata).filter(([field]) => !SERVER_FIELDS.has(field) && field !== 'namespace'),
  );
  const { namespace = DEFAULT_NAMESPACE } = manifest.metadata;
  const object = { ...manifest, metadata: type.namespaced ? { ...metadata, namespace } : metadata };
  return type.kind === 'CustomResourceDefinition' ? established(object) : object;
}

/** A CustomResourceDefinition that is served. */
function established(definition: KubernetesObject): KubernetesObject & { readonly status: JsonObject } {
  const condition = { type: 'Established', status: 'True', reason: 'DryRun', message: '' };
  return { ...definition, status: { conditions: [condition] } };
}

function idOf(type: ResourceType, key: ObjectKey): string {
  return `${groupResourceOf(type)} ${keyText(key)}`;
}
