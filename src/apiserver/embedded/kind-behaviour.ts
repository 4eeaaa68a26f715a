// Per-kind behaviour at writes, beyond defaults and validation.
import type { KubernetesObject, MutableObject } from '../../resources/index.ts';

/** A write, as a kind's behaviour sees it. */
export interface KindWrite {
  readonly object: MutableObject;
  /** The replaced object; undefined at creation. */
  readonly old: KubernetesObject | undefined;
  readonly subresource: string | undefined;
}

/** Server-side decisions for objects of one kind that depend on other objects, such as free addresses. */
export interface KindBehaviour {
  /**
   * Called before validation, with status and generation set. May change the object only: the write may still fail.
   * Throws ApiError to refuse.
   */
  prepare(write: KindWrite): void;
  /** Whether the result of `prepare` is still valid after other writes. Otherwise `prepare` runs again. */
  holds(object: KubernetesObject, old: KubernetesObject | undefined): boolean;
}

/** By collection. */
export type KindBehaviours = ReadonlyMap<string, KindBehaviour>;
