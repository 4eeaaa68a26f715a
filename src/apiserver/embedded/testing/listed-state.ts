import type { KubernetesObject } from '../../../resources/index.ts';
import type { ClusterState } from '../request/request.ts';

interface Type {
  readonly group: string;
  readonly resource: string;
}

/** Irregular plurals. */
const PLURALS: ReadonlyMap<string, string> = new Map([['Policy', 'policies']]);

/** The state of a cluster that consists of a list of objects. */
export class ListedState implements ClusterState {
  readonly #objects = new Map<string, KubernetesObject>();
  readonly #revisions = new Map<string, number>();

  constructor(objects: Iterable<KubernetesObject> = []) {
    for (const object of objects) {
      this.put(object);
    }
  }

  put(object: KubernetesObject): void {
    const type = typeOf(object);
    this.#objects.set(key(type, object.metadata.namespace, object.metadata.name ?? ''), object);
    this.#touch(type);
  }

  remove(object: KubernetesObject): void {
    const type = typeOf(object);
    this.#objects.delete(key(type, object.metadata.namespace, object.metadata.name ?? ''));
    this.#touch(type);
  }

  get(type: Type, namespace: string | undefined, name: string): KubernetesObject | undefined {
    return this.#objects.get(key(type, namespace, name));
  }

  *list(type: Type, namespace?: string): Iterable<KubernetesObject> {
    const prefix = `${type.resource}.${type.group}/`;
    for (const one of [...this.#objects.keys()].toSorted()) {
      const object = this.#objects.get(one);
      if (object !== undefined && one.startsWith(prefix)) {
        if (namespace === undefined || object.metadata.namespace === namespace) {
          yield object;
        }
      }
    }
  }

  revisionOf(type: Type): number {
    return this.#revisions.get(`${type.resource}.${type.group}`) ?? 0;
  }

  #touch(type: Type): void {
    this.#revisions.set(`${type.resource}.${type.group}`, this.revisionOf(type) + 1);
  }
}

function typeOf({ apiVersion, kind }: KubernetesObject): Type {
  const slash = apiVersion.indexOf('/');
  return {
    group: slash === -1 ? '' : apiVersion.slice(0, slash),
    resource: PLURALS.get(kind) ?? `${kind.toLowerCase()}s`,
  };
}

function key({ group, resource }: Type, namespace: string | undefined, name: string): string {
  return `${resource}.${group}/${namespace ?? ''}/${name}`;
}
