// Garbage collection by owner references (k8s.io/kubernetes, pkg/controller/garbagecollector).
import { isNotFound } from '../../../cluster/index.ts';
import type { Cluster } from '../../../cluster/index.ts';
import type { JsonValue, KubernetesObject, ObjectKey, OwnerReference } from '../../../resources/index.ts';
import { FOREGROUND_FINALIZER, ORPHAN_FINALIZER } from '../../../resources/validation/index.ts';
import type { ResourceRegistry, RegisteredResource } from '../kinds/resource-registry.ts';
import type { StoredChange } from '../store/change-log.ts';
import type { CollectionStore } from '../store/collection-store.ts';
import { TimeSlice } from '../../../threads/index.ts';
import { parsePath, pathText } from './object-path.ts';
import { ReconcileQueue } from './reconcile-queue.ts';
import type { OnReconcileError } from './reconcile-queue.ts';
import { asJson } from '../../../values/index.ts';

/** The owners of an object by state, as in the garbage collector of Kubernetes. */
interface Owners {
  /** Owners that exist, and do not wait for the deletion of their dependents. */
  readonly solid: readonly OwnerReference[];
  /** Owners in foreground deletion, which wait for the deletion of their dependents. */
  readonly waiting: readonly OwnerReference[];
  /** Owners that do not exist. */
  readonly absent: readonly OwnerReference[];
  /** Owners of kinds that are not served, or that are namespaced while the object is not. */
  readonly unknown: readonly OwnerReference[];
}

export class GarbageCollector {
  readonly #store: CollectionStore;
  readonly #registry: ResourceRegistry;
  readonly #cluster: Cluster;
  /** Paths of dependents by the uid of their owner. */
  readonly #dependents = new Map<string, Set<string>>();
  /** Namespaces of deleted owners with dependents, by uid. Kept here, because the kind may be deleted as well. */
  readonly #gone = new Map<string, string | undefined>();
  /** Paths of objects with unknown owners. */
  readonly #undecided = new Set<string>();
  readonly queue: ReconcileQueue;

  constructor(store: CollectionStore, registry: ResourceRegistry, cluster: Cluster, onError: OnReconcileError) {
    this.#store = store;
    this.#registry = registry;
    this.#cluster = cluster;
    this.queue = new ReconcileQueue((key) => this.#reconcile(key), onError);
  }

  /** Enqueues the stored objects. */
  start(): void {
    for (const collection of this.#store.collections()) {
      for (const object of collection.list()) {
        this.#enqueueAffected(collection.name, { type: 'ADDED', revision: 0, object, previous: undefined });
      }
    }
  }

  /** Enqueues the objects that a change affects. */
  readonly onChange = (collection: string, change: StoredChange): void => this.#enqueueAffected(collection, change);

  /** Enqueues the objects with unknown owners, which may be known now. */
  readonly onKindsChange = (): void => {
    for (const path of this.#undecided) {
      this.queue.add(path);
    }
    this.#undecided.clear();
  };

  #enqueueAffected(collection: string, { type, object, previous }: StoredChange): void {
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
      this.#enqueueOwners(metadata.namespace ?? '', [...owners, ...before]);
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

  /** Enqueues terminating owners, which may wait for this dependent. */
  #enqueueOwners(namespace: string, owners: readonly OwnerReference[]): void {
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
      await this.#collect(served, served.inServedVersion(object));
    } catch (error) {
      // Deleted by another client.
      if (!isNotFound(error)) {
        throw error;
      }
    }
  }

  async #collect(served: RegisteredResource, object: KubernetesObject): Promise<void> {
    const isDeleting = object.metadata.deletionTimestamp !== undefined;
    if (isDeleting && isOrphaning(object)) {
      await this.#orphanDependents(served, object);
    } else if (isDeleting && isForeground(object)) {
      await this.#deleteDependentsFirst(served, object);
    } else if (!isDeleting) {
      await this.#deleteUnlessOwned(served, object);
    }
  }

  async #orphanDependents(served: RegisteredResource, owner: KubernetesObject): Promise<void> {
    const uid = owner.metadata.uid ?? '';
    const slice = new TimeSlice();
    for (const dependent of this.#dependentsOf(uid)) {
      await this.#removeOwners(dependent.served, dependent.object, new Set([uid]));
      await slice.yield();
    }
    await this.#removeFinalizer(served, owner, ORPHAN_FINALIZER);
  }

  async #deleteDependentsFirst(served: RegisteredResource, owner: KubernetesObject): Promise<void> {
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

  async #deleteUnlessOwned(served: RegisteredResource, object: KubernetesObject): Promise<void> {
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
    const isInCycle =
      isAwaited && this.#dependentsOf(object.metadata.uid ?? '').some((one) => isDeletedLast(one.object));
    // Owners that wait for each other would never be deleted, so this one stops blocking its owners.
    const current = isInCycle ? await this.#unblockOwners(served, object) : object;
    const { uid = '', resourceVersion = '' } = current.metadata;
    await this.#cluster.delete(served.definition, keyOf(current), {
      propagationPolicy: isOrphaning(current)
        ? 'Orphan'
        : isForeground(current) || isAwaited
          ? 'Foreground'
          : 'Background',
      // The owners of a newer version have not been checked.
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

  /** Finds an owner by name and uid, in the namespace of its dependent if the owner is namespaced. */
  #find(
    { apiVersion, kind, name, uid }: OwnerReference,
    namespace: string,
  ): { readonly served: RegisteredResource; readonly object: KubernetesObject } | undefined | 'unknown' {
    const served = this.#registry.findKind(apiVersion, kind);
    if (served === undefined || (served.definition.namespaced && namespace === '')) {
      return 'unknown';
    }
    const object = this.#store.get(served.collection, served.definition.namespaced ? namespace : '', name);
    return object !== undefined && object.metadata.uid === uid ? { served, object } : undefined;
  }

  #dependentsOf(uid: string): { readonly served: RegisteredResource; readonly object: KubernetesObject }[] {
    return [...(this.#dependents.get(uid) ?? [])].flatMap((path) => {
      const { collection, namespace, name } = parsePath(path);
      const object = this.#store.get(collection, namespace, name);
      const served = this.#registry.ofCollection(collection);
      return object === undefined || served === undefined ? [] : [{ served, object: served.inServedVersion(object) }];
    });
  }

  async #removeOwners(served: RegisteredResource, object: KubernetesObject, uids: ReadonlySet<string>): Promise<void> {
    const kept = (object.metadata.ownerReferences ?? []).filter(({ uid }) => !uids.has(uid));
    await this.#changeMetadata(served, object, 'ownerReferences', kept.map(asJson));
  }

  async #unblockOwners(served: RegisteredResource, object: KubernetesObject): Promise<KubernetesObject> {
    const owners = (object.metadata.ownerReferences ?? []).map((one) => ({ ...one, blockOwnerDeletion: false }));
    return this.#changeMetadata(served, object, 'ownerReferences', owners);
  }

  async #removeFinalizer(served: RegisteredResource, object: KubernetesObject, finalizer: string): Promise<void> {
    const kept = (object.metadata.finalizers ?? []).filter((one) => one !== finalizer);
    await this.#changeMetadata(served, object, 'finalizers', kept);
  }

  async #changeMetadata(
    { definition }: RegisteredResource,
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

/** Whether the object is in foreground deletion, and is deleted after its dependents. */
function isDeletedLast(object: KubernetesObject): boolean {
  return object.metadata.deletionTimestamp !== undefined && isForeground(object);
}

function isForeground({ metadata: { finalizers } }: KubernetesObject): boolean {
  return finalizers?.includes(FOREGROUND_FINALIZER) === true;
}

function isOrphaning({ metadata: { finalizers } }: KubernetesObject): boolean {
  return finalizers?.includes(ORPHAN_FINALIZER) === true;
}
