// Garbage collection by owner references (k8s.io/kubernetes, pkg/controller/garbagecollector).
import { isNotFound } from '../../../cluster/index.ts';
import type { Cluster } from '../../../cluster/index.ts';
import type { JsonValue, KubernetesObject, ObjectKey, OwnerReference } from '../../../resources/index.ts';
import { FOREGROUND_FINALIZER, ORPHAN_FINALIZER } from '../../../resources/validation/index.ts';
import type { ResourceRegistry, ServedResource } from '../resource-registry.ts';
import type { Change } from '../store/change-log.ts';
import type { ObjectStore } from '../store/object-store.ts';
import { TimeSlice } from '../time-slice.ts';
import { parsePath, pathText } from './object-path.ts';
import { ReconcileQueue } from './reconcile-queue.ts';
import type { OnReconcileError } from './reconcile-queue.ts';

/** The owners of an object by their state, as in Kubernetes' garbage collector. */
interface Owners {
  /** Exist, and do not wait for this object's deletion. */
  readonly solid: readonly OwnerReference[];
  /** Wait for the deletion of their dependents. */
  readonly waiting: readonly OwnerReference[];
  /** Do not exist. */
  readonly absent: readonly OwnerReference[];
  /** Of kinds that are not served, or of a scope that cannot own the object. */
  readonly unknown: readonly OwnerReference[];
}

export class GarbageCollector {
  readonly #store: ObjectStore;
  readonly #registry: ResourceRegistry;
  readonly #cluster: Cluster;
  /** Paths of objects by the uid of an owner. */
  readonly #dependents = new Map<string, Set<string>>();
  /** Deleted owners with dependents, and their former paths: their kind may be gone as well. */
  readonly #gone = new Map<string, string | undefined>();
  /** Paths of objects with an owner whose kind is not served. */
  readonly #undecided = new Set<string>();
  readonly queue: ReconcileQueue;

  constructor(store: ObjectStore, registry: ResourceRegistry, cluster: Cluster, onError: OnReconcileError) {
    this.#store = store;
    this.#registry = registry;
    this.#cluster = cluster;
    this.queue = new ReconcileQueue((key) => this.#reconcile(key), onError);
  }

  /** Queues the stored objects. */
  start(): void {
    for (const collection of this.#store.collections()) {
      for (const object of collection.list()) {
        this.#notice(collection.name, { type: 'ADDED', revision: 0, object, previous: undefined });
      }
    }
  }

  /** Queues the objects that a change may affect. */
  readonly onChange = (collection: string, change: Change): void => this.#notice(collection, change);

  /** Queues undecided objects again. */
  readonly onKindsChange = (): void => {
    for (const path of this.#undecided) {
      this.queue.add(path);
    }
    this.#undecided.clear();
  };

  #notice(collection: string, { type, object, previous }: Change): void {
    const { metadata } = object;
    const owners = metadata.ownerReferences ?? [];
    const before = previous?.metadata.ownerReferences ?? [];
    if (owners.length > 0 || before.length > 0) {
      const path = pathOf({ collection }, object);
      this.#index(path, type === 'DELETED' ? [] : owners, before);
      if (type === 'DELETED') {
        this.#undecided.delete(path);
      } else {
        this.queue.add(path);
      }
      this.#noticeOwners(metadata.namespace ?? '', [...owners, ...before]);
    }
    const { uid = '' } = metadata;
    const dependents = this.#dependents.get(uid);
    if (type === 'DELETED' && dependents !== undefined) {
      this.#gone.set(uid, metadata.namespace);
      for (const dependent of dependents) {
        this.queue.add(dependent);
      }
    } else if (
      type !== 'DELETED' &&
      metadata.deletionTimestamp !== undefined &&
      (isForeground(object) || isOrphaning(object))
    ) {
      this.queue.add(pathOf({ collection }, object));
    }
  }

  #index(path: string, owners: readonly OwnerReference[], before: readonly OwnerReference[]): void {
    for (const { uid } of before) {
      const dependents = this.#dependents.get(uid);
      dependents?.delete(path);
      if (dependents?.size === 0) {
        this.#dependents.delete(uid);
      }
    }
    for (const { uid } of owners) {
      let dependents = this.#dependents.get(uid);
      if (dependents === undefined) {
        dependents = new Set();
        this.#dependents.set(uid, dependents);
      }
      dependents.add(path);
    }
    for (const { uid } of before) {
      if (!this.#dependents.has(uid)) {
        this.#gone.delete(uid);
      }
    }
  }

  /** Queues owners that may wait for this dependent. */
  #noticeOwners(namespace: string, owners: readonly OwnerReference[]): void {
    for (const reference of owners) {
      const owner = this.#find(reference, namespace);
      if (owner !== undefined && owner !== 'unknown' && owner.object.metadata.deletionTimestamp !== undefined) {
        this.queue.add(pathOf(owner.served, owner.object));
      }
    }
  }

  async #reconcile(key: string): Promise<void> {
    const { collection, namespace, name } = parsePath(key);
    const object = this.#store.get(collection, namespace, name);
    const served = this.#registry.ofCollection(collection);
    if (object === undefined || served === undefined) {
      return;
    }
    try {
      await this.#look(served, served.view(object));
    } catch (error) {
      // Deleted by another client.
      if (!isNotFound(error)) {
        throw error;
      }
    }
  }

  async #look(served: ServedResource, object: KubernetesObject): Promise<void> {
    const isDeleting = object.metadata.deletionTimestamp !== undefined;
    if (isDeleting && isOrphaning(object)) {
      await this.#orphanDependents(served, object);
    } else if (isDeleting && isForeground(object)) {
      await this.#deleteDependentsFirst(served, object);
    } else if (!isDeleting) {
      await this.#deleteUnlessOwned(served, object);
    }
  }

  async #orphanDependents(served: ServedResource, owner: KubernetesObject): Promise<void> {
    const uid = owner.metadata.uid ?? '';
    const slice = new TimeSlice();
    for (const dependent of this.#dependentsOf(uid)) {
      await this.#removeOwners(dependent.served, dependent.object, new Set([uid]));
      await slice.yield();
    }
    await this.#removeFinalizer(served, owner, ORPHAN_FINALIZER);
  }

  async #deleteDependentsFirst(served: ServedResource, owner: KubernetesObject): Promise<void> {
    const uid = owner.metadata.uid ?? '';
    const blocking = this.#dependentsOf(uid).filter(({ object }) =>
      object.metadata.ownerReferences?.some((one) => one.uid === uid && one.blockOwnerDeletion === true),
    );
    if (blocking.length === 0) {
      await this.#removeFinalizer(served, owner, FOREGROUND_FINALIZER);
      return;
    }
    for (const { served: kind, object } of blocking) {
      if (object.metadata.deletionTimestamp === undefined) {
        this.queue.add(pathOf(kind, object));
      }
    }
  }

  async #deleteUnlessOwned(served: ServedResource, object: KubernetesObject): Promise<void> {
    const references = object.metadata.ownerReferences ?? [];
    if (references.length === 0) {
      return;
    }
    const owners = this.#ownersOf(object, references);
    if (owners.unknown.length > 0) {
      this.#undecided.add(pathOf(served, object));
      return;
    }
    const gone = [...owners.absent, ...owners.waiting];
    if (owners.solid.length > 0) {
      if (gone.length > 0) {
        await this.#removeOwners(served, object, new Set(gone.map(({ uid }) => uid)));
      }
      return;
    }
    const isAwaited = owners.waiting.length > 0 && this.#dependents.has(object.metadata.uid ?? '');
    const isInCircle =
      isAwaited && this.#dependentsOf(object.metadata.uid ?? '').some((one) => isDeletedLast(one.object));
    // In a cycle of waiting owners, one stops waiting.
    const current = isInCircle ? await this.#unblockOwners(served, object) : object;
    const { uid = '', resourceVersion = '' } = current.metadata;
    await this.#cluster.delete(served.definition, keyOf(current), {
      propagationPolicy: isOrphaning(current)
        ? 'Orphan'
        : isForeground(current) || isAwaited
          ? 'Foreground'
          : 'Background',
      // Deletes only the version whose owners were checked.
      preconditions: { uid, resourceVersion },
    });
  }

  #ownersOf(object: KubernetesObject, references: readonly OwnerReference[]): Owners {
    const owners = { solid: [], waiting: [], absent: [], unknown: [] } as Record<keyof Owners, OwnerReference[]>;
    for (const reference of references) {
      const owner = this.#isGone(reference, object)
        ? undefined
        : this.#find(reference, object.metadata.namespace ?? '');
      if (owner === 'unknown') {
        owners.unknown.push(reference);
      } else if (owner === undefined) {
        owners.absent.push(reference);
      } else if (isDeletedLast(owner.object)) {
        owners.waiting.push(reference);
      } else {
        owners.solid.push(reference);
      }
    }
    return owners;
  }

  #isGone({ uid }: OwnerReference, { metadata }: KubernetesObject): boolean {
    const namespace = this.#gone.get(uid) ?? metadata.namespace;
    return this.#gone.has(uid) && namespace === metadata.namespace;
  }

  /** The owner by name and uid. Owners are in the namespace of their dependent, or cluster-scoped. */
  #find(
    { apiVersion, kind, name, uid }: OwnerReference,
    namespace: string,
  ): { readonly served: ServedResource; readonly object: KubernetesObject } | undefined | 'unknown' {
    const served = this.#registry.findKind(apiVersion, kind);
    if (served === undefined || (served.definition.namespaced && namespace === '')) {
      return 'unknown';
    }
    const object = this.#store.get(served.collection, served.definition.namespaced ? namespace : '', name);
    return object !== undefined && object.metadata.uid === uid ? { served, object } : undefined;
  }

  #dependentsOf(uid: string): { readonly served: ServedResource; readonly object: KubernetesObject }[] {
    return [...(this.#dependents.get(uid) ?? [])].flatMap((path) => {
      const { collection, namespace, name } = parsePath(path);
      const object = this.#store.get(collection, namespace, name);
      const served = this.#registry.ofCollection(collection);
      return object === undefined || served === undefined ? [] : [{ served, object: served.view(object) }];
    });
  }

  async #removeOwners(served: ServedResource, object: KubernetesObject, uids: ReadonlySet<string>): Promise<void> {
    const kept = (object.metadata.ownerReferences ?? []).filter(({ uid }) => !uids.has(uid));
    await this.#changeMetadata(served, object, 'ownerReferences', kept as unknown as JsonValue[]);
  }

  async #unblockOwners(served: ServedResource, object: KubernetesObject): Promise<KubernetesObject> {
    const owners = (object.metadata.ownerReferences ?? []).map((one) => ({ ...one, blockOwnerDeletion: false }));
    return this.#changeMetadata(served, object, 'ownerReferences', owners);
  }

  async #removeFinalizer(served: ServedResource, object: KubernetesObject, finalizer: string): Promise<void> {
    const kept = (object.metadata.finalizers ?? []).filter((one) => one !== finalizer);
    await this.#changeMetadata(served, object, 'finalizers', kept);
  }

  async #changeMetadata(
    { definition }: ServedResource,
    object: KubernetesObject,
    field: 'ownerReferences' | 'finalizers',
    list: JsonValue[],
  ): Promise<KubernetesObject> {
    const { uid = '', resourceVersion = '' } = object.metadata;
    const metadata = { uid, resourceVersion, [field]: list.length === 0 ? null : list };
    return this.#cluster.patch(definition, keyOf(object), { type: 'merge', body: { metadata } });
  }
}

function keyOf({ metadata: { namespace, name = '' } }: KubernetesObject): ObjectKey {
  return namespace === undefined ? { name } : { namespace, name };
}

function pathOf({ collection }: { readonly collection: string }, { metadata }: KubernetesObject): string {
  const { namespace = '', name = '' } = metadata;
  return pathText({ collection, namespace, name });
}

/** Whether the object is deleted in the foreground, after its dependents. */
function isDeletedLast(object: KubernetesObject): boolean {
  return object.metadata.deletionTimestamp !== undefined && isForeground(object);
}

function isForeground({ metadata: { finalizers } }: KubernetesObject): boolean {
  return finalizers?.includes(FOREGROUND_FINALIZER) === true;
}

function isOrphaning({ metadata: { finalizers } }: KubernetesObject): boolean {
  return finalizers?.includes(ORPHAN_FINALIZER) === true;
}
