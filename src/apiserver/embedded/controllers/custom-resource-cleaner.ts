// Deletes the objects of CustomResourceDefinitions that are being deleted (k8s.io/apiextensions-apiserver,
// pkg/controller/finalizer).
import { unlessGone } from '../../../cluster/index.ts';
import type { Cluster } from '../../../cluster/index.ts';
import { isConditionTrue } from '../../../resources/index.ts';
import type { Condition, KubernetesObject } from '../../../resources/index.ts';
import { collectionOf, CRD_COLLECTION, CRD_FINALIZER } from '../kinds/custom-resources.ts';
import type { ResourceRegistry } from '../kinds/resource-registry.ts';
import type { StoredChange } from '../store/change-log.ts';
import type { CollectionStore } from '../store/collection-store.ts';
import { TimeSlice } from '../../../threads/index.ts';
import { ReconcileQueue } from './reconcile-queue.ts';
import type { OnReconcileError } from './reconcile-queue.ts';

export class CustomResourceCleaner {
  readonly #store: CollectionStore;
  readonly #registry: ResourceRegistry;
  readonly #cluster: Cluster;
  readonly queue: ReconcileQueue;

  constructor(store: CollectionStore, registry: ResourceRegistry, cluster: Cluster, onError: OnReconcileError) {
    this.#store = store;
    this.#registry = registry;
    this.#cluster = cluster;
    this.queue = new ReconcileQueue((name) => this.#reconcile(name), onError);
  }

  start(): void {
    for (const object of this.#store.collection(CRD_COLLECTION).list()) {
      this.#enqueue(object);
    }
  }

  readonly onChange = (collection: string, { type, object }: StoredChange): void => {
    if (collection === CRD_COLLECTION && type === 'DELETED') {
      this.#enqueueUnaccepted();
    } else if (collection === CRD_COLLECTION) {
      this.#enqueue(object);
    } else if (type === 'DELETED') {
      const definition = this.#store.get(CRD_COLLECTION, '', collection);
      if (definition !== undefined) {
        this.#enqueue(definition);
      }
    }
  };

  #enqueue({ metadata: { name = '', deletionTimestamp, finalizers = [] } }: KubernetesObject): void {
    if (deletionTimestamp !== undefined && finalizers.includes(CRD_FINALIZER)) {
      this.queue.add(name);
    }
  }

  /** Enqueues definitions whose names were not accepted, because a deletion may have freed these names. */
  #enqueueUnaccepted(): void {
    for (const other of this.#store.collection(CRD_COLLECTION).list()) {
      if (!areNamesAccepted(other)) {
        this.queue.add(other.metadata.name ?? '');
      }
    }
  }

  async #reconcile(name: string): Promise<void> {
    const definition = this.#store.get(CRD_COLLECTION, '', name);
    if (definition === undefined) {
      return;
    }
    if (definition.metadata.deletionTimestamp === undefined) {
      // Each write of a definition checks its names again.
      await this.#update(definition);
      return;
    }
    const collection = this.#store.collection(collectionOf(definition));
    const served = this.#registry.ofCollection(collection.name);
    if (served !== undefined) {
      const slice = new TimeSlice();
      for (const { metadata } of Array.from(collection.list())) {
        if (metadata.deletionTimestamp === undefined) {
          const { namespace, name: object = '' } = metadata;
          await this.#delete(
            served.definition,
            namespace === undefined ? { name: object } : { namespace, name: object },
          );
          await slice.yield();
        }
      }
    }
    if (collection.size === 0) {
      await this.#removeFinalizer(definition);
    }
  }

  async #delete(...[type, key]: Parameters<Cluster['delete']>): Promise<void> {
    await unlessGone(this.#cluster.delete(type, key));
  }

  async #removeFinalizer(definition: KubernetesObject): Promise<void> {
    const finalizers = (definition.metadata.finalizers ?? []).filter((one) => one !== CRD_FINALIZER);
    await this.#update({ ...definition, metadata: { ...definition.metadata, finalizers } });
  }

  async #update(definition: KubernetesObject): Promise<void> {
    const served = this.#registry.ofCollection(CRD_COLLECTION);
    if (served !== undefined) {
      await this.#cluster.update(served.definition, definition);
    }
  }
}

function areNamesAccepted({ status }: KubernetesObject): boolean {
  const { conditions } = (status ?? {}) as { conditions?: readonly Condition[] };
  return isConditionTrue(conditions, 'NamesAccepted');
}
