// Who an object belongs to: the workload at the top, not the ReplicaSet in between.
import { isJsonObject, type JsonObject, own, textOf, valueAt } from '../../values/index.ts';

/** An owner of objects. */
export interface ObjectOwner {
  readonly kind: string;
  readonly name: string;
}

/** An owner as its objects refer to it. */
export interface OwnerRef extends ObjectOwner {
  readonly uid: string;
}

/** Owners above this one are not looked for: controllers of controllers are two or three. */
const MAX_DEPTH = 8;

/** The controllers of objects that were seen, in any order. */
export class ObjectOwners {
  /** The controller of a controller, by uid. */
  readonly #above = new Map<string, OwnerRef>();

  /** Remembers the controller of an object that may own others. */
  note(object: JsonObject): void {
    const controller = controllerOf(object);
    const uid = textOf(valueAt(object, 'metadata', 'uid'));
    if (controller !== undefined && uid !== '') {
      this.#above.set(uid, controller);
    }
  }

  /** The highest controller that is known. */
  top(owner: OwnerRef): OwnerRef {
    let at = owner;
    for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
      const above = this.#above.get(at.uid);
      if (above === undefined) {
        return at;
      }
      at = above;
    }
    return at;
  }
}

/** The controller of an object. */
export function controllerOf(object: JsonObject): OwnerRef | undefined {
  const references = valueAt(object, 'metadata', 'ownerReferences');
  const found = Array.isArray(references)
    ? references.find((one) => isJsonObject(one) && own(one, 'controller') === true)
    : undefined;
  return isJsonObject(found)
    ? { kind: textOf(own(found, 'kind')), name: textOf(own(found, 'name')), uid: textOf(own(found, 'uid')) }
    : undefined;
}
