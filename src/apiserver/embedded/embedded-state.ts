import { groupResourceOf } from '../../resources/index.ts';
import type { KubernetesObject } from '../../resources/index.ts';
import type { ClusterState } from './request/request.ts';
import type { CollectionStore } from './store/collection-store.ts';

type GroupResource = { readonly group: string; readonly resource: string };

/** Reads of the store for authorization and admission. */
export class EmbeddedState implements ClusterState {
  readonly #store: CollectionStore;

  constructor(store: CollectionStore) {
    this.#store = store;
  }

  get(type: GroupResource, namespace: string | undefined, name: string): KubernetesObject | undefined {
    return this.#store.get(groupResourceOf(type), namespace ?? '', name);
  }

  list(type: GroupResource, namespace?: string): Iterable<KubernetesObject> {
    return this.#store.collection(groupResourceOf(type)).list(namespace);
  }

  revisionOf(type: GroupResource): number {
    return this.#store.collection(groupResourceOf(type)).revision;
  }
}
