import { keyText, type ObjectKey } from '../../resources/index.ts';
import type { CachedObjects } from '../../runtime/index.ts';
import type { CustomResourceDefinition } from './kind-mappings.ts';

/** Enqueues the keys of a controller when a kind that they miss may have become available. */
export class MissingKinds {
  readonly #groups = new Map<string, { readonly key: ObjectKey; readonly groups: ReadonlySet<string> }>();

  /** Records the groups whose kinds a key misses, in place of those before. */
  set(key: ObjectKey, groups: Iterable<string>): void {
    const set = new Set(groups);
    if (set.size === 0) {
      this.#groups.delete(keyText(key));
    } else {
      this.#groups.set(keyText(key), { key, groups: set });
    }
  }

  /** Records another group. */
  add(key: ObjectKey, group: string): void {
    this.set(key, [...(this.#groups.get(keyText(key))?.groups ?? []), group]);
  }

  /** Calls `enqueue` after changes of definitions. @returns a function that unsubscribes */
  follow(
    definitions: Pick<CachedObjects<CustomResourceDefinition>, 'subscribe'>,
    enqueue: (key: ObjectKey) => void,
  ): () => void {
    return definitions.subscribe(({ before, after }) => {
      const group = (after ?? before)?.spec.group ?? '';
      for (const { key, groups } of this.#groups.values()) {
        if (groups.has(group)) {
          enqueue(key);
        }
      }
    });
  }
}
