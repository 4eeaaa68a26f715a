// Random changes of a cluster, from a seed that repeats them.
import { type Cluster, unlessGone } from '../../cluster/index.ts';
import { keyOf, type KubernetesObject, type ResourceType } from '../../resources/index.ts';

/** Chooses and changes. The same seed gives the same choices. */
export class RandomChanges {
  #state: number;

  /** @param seed not 0 */
  constructor(seed: number) {
    this.#state = seed;
  }

  /** A whole number from 0, less than `count`. */
  below(count: number): number {
    // xorshift32
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    return (this.#state >>> 0) % count;
  }

  one<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }
}

/** Creates an object, or deletes the one of its name. */
export async function toggleObject(cluster: Cluster, type: ResourceType, object: KubernetesObject): Promise<void> {
  const key = keyOf(object);
  const existing = await unlessGone(cluster.get(type, key));
  await (existing === undefined ? cluster.create(type, object) : cluster.delete(type, key));
}
