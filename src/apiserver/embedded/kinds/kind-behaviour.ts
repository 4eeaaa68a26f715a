// What a write does for single kinds, besides defaults and validation.
import type { KubernetesObject, MutableObject } from '../../../resources/index.ts';

/** A write of an object, for the behaviour of its kind. */
export interface KindWrite {
  readonly object: MutableObject;
  /** The replaced object; undefined at creation. */
  readonly old: KubernetesObject | undefined;
  readonly subresource: string | undefined;
}

/** Fields that the server sets depending on other objects, such as free addresses. */
export interface KindBehaviour {
  /**
   * Sets the fields. Called before validation, when status and generation are set. Must not change anything else, because the
   * write may still fail. Throws ApiError to reject the write.
   */
  prepare(write: KindWrite): void;
  /** Whether the fields are still valid after other writes. Otherwise `prepare` is called again. */
  stillHolds(object: KubernetesObject, old: KubernetesObject | undefined): boolean;
}

/** Behaviours by collection. */
export type KindBehaviours = ReadonlyMap<string, KindBehaviour>;
