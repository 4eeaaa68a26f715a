// Namespaces and parameters as evaluation looks them up.
import type { WatchedChange } from '../../evaluation/index.ts';
import { keyText } from '../../resources/index.ts';
import type { JsonValue } from '../../engine/index.ts';
import type { PolicyVersion } from './policy-version.ts';

/** An object that changed. */
export interface ChangedObject {
  readonly apiVersion: string;
  readonly kind: string;
  /** Absent: it is of none. */
  readonly namespace?: string;
  readonly name: string;
}

type Needs = Pick<PolicyVersion, 'readsNamespaces' | 'parameters'>;

/** The text of each looked-up object, in the order of the host: an evaluation that starts later reads no older one. */
export class LookedUpObjects {
  readonly #kinds = new Map<string, Map<string, { readonly object: ChangedObject; readonly text: string }>>();
  /** Kinds of which all objects are known. */
  readonly #listed = new Set<string>();
  /** How often objects changed, by the namespace that they are for. */
  readonly #revisions = new Map<string, number>();
  readonly #listeners = new Set<(objects: readonly ChangedObject[]) => void>();

  /** Takes a change of the host. */
  apply({ apiVersion, kind, isAll, objects }: WatchedChange): void {
    const id = kindId(apiVersion, kind);
    const known = this.#kinds.get(id) ?? new Map<string, { object: ChangedObject; text: string }>();
    this.#kinds.set(id, known);
    const removed = isAll ? new Set(known.keys()) : new Set<string>();
    const changed: ChangedObject[] = [];
    for (const [key, text, failure] of objects) {
      const object: ChangedObject = { apiVersion, kind, ...key };
      const content = text ?? (failure?.state === 'unreadable' ? failure.reason : undefined);
      removed.delete(keyText(key));
      if (content !== known.get(keyText(key))?.text) {
        changed.push(object);
      }
      if (content === undefined) {
        known.delete(keyText(key));
      } else {
        known.set(keyText(key), { object, text: content });
      }
    }
    for (const key of removed) {
      const gone = known.get(key);
      known.delete(key);
      changed.push(...(gone === undefined ? [] : [gone.object]));
    }
    if (isAll) {
      this.#listed.add(id);
    }
    this.#changed(changed);
  }

  #changed(objects: readonly ChangedObject[]): void {
    for (const namespace of objects.map(namespaceFor)) {
      this.#revisions.set(namespace, (this.#revisions.get(namespace) ?? 0) + 1);
    }
    this.#listeners.forEach((listener) => listener(objects));
  }

  /** Called with objects that changed. Returns how to end that. */
  onChange(listener: (objects: readonly ChangedObject[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Changes whenever something does that a policy looks up for objects of a namespace. */
  revisionOf({ parameters }: Needs, namespace: string | undefined): number {
    const namespaces = new Set([namespace, ...parameters.map((one) => one.namespace)]);
    return [...namespaces].reduce((sum, one) => sum + (this.#revisions.get(one ?? '') ?? 0), 0);
  }

  /** Whether all that policies need is known. */
  hasAll(policies: Iterable<Needs>): boolean {
    return [...policies].every(
      ({ readsNamespaces, parameters }) =>
        (!readsNamespaces || this.#listed.has(kindId('v1', 'Namespace'))) &&
        parameters.every(({ apiVersion, kind }) => this.#listed.has(kindId(apiVersion, kind))),
    );
  }

  /** What a policy looks up for objects of a namespace, as a part of keys; null: nothing. */
  inputs({ readsNamespaces, parameters }: Needs, namespace: string | undefined): JsonValue {
    return !readsNamespaces && parameters.length === 0
      ? null
      : [
          readsNamespaces && namespace !== undefined ? this.#text('v1', 'Namespace', { name: namespace }) : null,
          ...parameters.map(({ apiVersion, kind, name, namespace: own = namespace }) =>
            own === undefined ? null : this.#text(apiVersion, kind, { namespace: own, name }),
          ),
        ];
  }

  #text(apiVersion: string, kind: string, key: { readonly namespace?: string; readonly name: string }): string | null {
    return this.#kinds.get(kindId(apiVersion, kind))?.get(keyText(key))?.text ?? null;
  }
}

/** The namespace whose objects a looked-up object is for. */
export function namespaceFor({ namespace, name }: ChangedObject): string {
  return namespace ?? name;
}

/** The objects that a policy looks a changed object up for: those of its namespace, all, or none. */
export function lookedUpFor(
  { readsNamespaces, parameters }: Needs,
  { apiVersion, kind, namespace, name }: ChangedObject,
): 'namespace' | 'all' | 'none' {
  if (apiVersion === 'v1' && kind === 'Namespace') {
    return readsNamespaces ? 'namespace' : 'none';
  }
  const used = parameters.filter((one) => one.apiVersion === apiVersion && one.kind === kind && one.name === name);
  if (used.some((one) => one.namespace !== undefined && one.namespace === namespace)) {
    return 'all';
  }
  return used.some((one) => one.namespace === undefined) ? 'namespace' : 'none';
}

function kindId(apiVersion: string, kind: string): string {
  return `${apiVersion} ${kind}`;
}
