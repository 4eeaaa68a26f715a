import type { KubernetesObject, ResourceType, Selector } from '../../../resources/index.ts';
import { apiVersionOf, groupVersionOf } from '../../../resources/index.ts';
import { ObjectReadError } from '../object-source.ts';
import type { ObjectSource } from '../object-source.ts';

/** Kinds that a {@link MemorySource} knows, with whether they are namespaced. */
const KINDS: ReadonlyMap<string, readonly [resource: string, namespaced: boolean]> = new Map([
  ['v1 Pod', ['pods', true]],
  ['v1 ConfigMap', ['configmaps', true]],
  ['v1 Secret', ['secrets', true]],
  ['v1 Namespace', ['namespaces', false]],
  ['apps/v1 Deployment', ['deployments', true]],
]);

/** The objects of a cluster in memory, without admission and defaults. */
export class MemorySource implements ObjectSource {
  readonly #objects = new Map<string, KubernetesObject>();
  /** Kinds that cannot be read. */
  readonly unreadable = new Set<string>();
  #uid = 0;

  constructor(objects: readonly KubernetesObject[] = []) {
    for (const object of objects) {
      this.put(object);
    }
  }

  /** Creates or replaces an object, and returns its uid. */
  put(object: KubernetesObject): string {
    const { namespace = '', name = '', uid = `${++this.#uid}` } = object.metadata;
    const stored = { ...object, metadata: { ...object.metadata, uid } };
    this.#objects.set(keyOf(object.apiVersion, object.kind, namespace, name), stored);
    return uid;
  }

  delete(type: ResourceType, namespace: string, name: string): void {
    this.#objects.delete(keyOf(apiVersionOf(type), type.kind, namespace, name));
  }

  kind(apiVersion: string, kind: string): ResourceType | undefined {
    const known = KINDS.get(`${apiVersion} ${kind}`);
    return known === undefined
      ? undefined
      : { ...groupVersionOf(apiVersion), resource: known[0], kind, namespaced: known[1] };
  }

  get(type: ResourceType, namespace: string, name: string): KubernetesObject | undefined {
    this.#check(type);
    return this.#objects.get(keyOf(apiVersionOf(type), type.kind, namespace, name));
  }

  list(type: ResourceType, namespace: string, selector: Selector): readonly KubernetesObject[] {
    this.#check(type);
    return [...this.#objects.values()].filter(
      ({ apiVersion, kind, metadata }) =>
        apiVersion === apiVersionOf(type) &&
        kind === type.kind &&
        (metadata.namespace ?? '') === namespace &&
        selector.matches(metadata.labels),
    );
  }

  names(type: ResourceType, namespace: string, selector: Selector): readonly string[] {
    return this.list(type, namespace, selector).map(({ metadata }) => metadata.name ?? '');
  }

  namespaces(): readonly KubernetesObject[] {
    return [...this.#objects.values()].filter(({ kind }) => kind === 'Namespace');
  }

  #check({ kind }: ResourceType): void {
    if (this.unreadable.has(kind)) {
      throw new ObjectReadError('unreadable', `${kind} is forbidden`);
    }
  }
}

function keyOf(apiVersion: string, kind: string, namespace: string, name: string): string {
  return JSON.stringify([apiVersion, kind, namespace, name]);
}
