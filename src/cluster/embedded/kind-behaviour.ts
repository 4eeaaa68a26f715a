// What an API server does with objects of single kinds when they are written, beyond defaults and validation.
import type { KubernetesObject, MutableObject } from '../../resources/index.ts';

/** A write as the behaviour of a kind sees it. May change the object. Throws ApiError to refuse. */
export interface KindWrite {
  readonly object: MutableObject;
  /** What it replaces; undefined when it is created. */
  readonly old: KubernetesObject | undefined;
  readonly subresource: string | undefined;
}

/** Called after status and generation are settled, before validation. */
export type KindBehaviour = (write: KindWrite) => void;

/** By collection. */
export type KindBehaviours = ReadonlyMap<string, KindBehaviour>;
