// What an API server does with objects of single kinds when they are written, beyond defaults and validation.
import type { KubernetesObject, MutableObject } from '../../resources/index.ts';

/** A write as the behaviour of a kind sees it. */
export interface KindWrite {
  readonly object: MutableObject;
  /** What it replaces; undefined when it is created. */
  readonly old: KubernetesObject | undefined;
  readonly subresource: string | undefined;
}

/** What a server decides by itself about objects of one kind, from the other objects that there are. */
export interface KindBehaviour {
  /**
   * Called after status and generation are settled, before validation. May change the object, and nothing else: it may never
   * be stored. Throws ApiError to refuse.
   */
  prepare(write: KindWrite): void;
  /** Whether the object can be stored as `prepare` has left it: others may have been stored since. If not, it is made anew. */
  holds(object: KubernetesObject, old: KubernetesObject | undefined): boolean;
}

/** By collection. */
export type KindBehaviours = ReadonlyMap<string, KindBehaviour>;
