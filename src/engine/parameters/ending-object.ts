// What may be done in a namespace that is being deleted, although its parameters are gone.
import { isJsonObject, type JsonObject, type JsonValue, own, textOf, valueAt } from '../../values/index.ts';
import type { Review, ReviewTarget } from '../review/admission-review.ts';
import { isEqual } from '../verdict/json-patch.ts';
import { type ObjectLookup, type ObjectReference, UnknownObject } from '../review/object-lookup.ts';

/** Fields of the metadata that an update which removes a finalizer changes: the API server changes the others by itself. */
const CHANGING: ReadonlySet<string> = new Set(['finalizers', 'managedFields', 'resourceVersion', 'generation']);

/**
 * Whether a request only ends an object of a namespace that is being deleted: it deletes the object, or changes nothing but its
 * finalizers. If missing parameters refused it, the namespace would be Terminating for ever. While the namespace lives, they do:
 * otherwise whoever may delete parameters could remove a finalizer that a policy protects.
 * @throws UnknownObject when the namespace is not known yet
 */
export function endsWithNamespace(review: Review, objects: ObjectLookup): boolean {
  const { target } = review;
  return (
    target !== undefined &&
    target.namespace !== '' &&
    isWhole(target) &&
    (target.operation === 'DELETE' || changesFinalizers(review)) &&
    isEnding(target.namespace, objects)
  );
}

function isWhole({ subresource, requestSubresource }: ReviewTarget): boolean {
  return subresource === '' && requestSubresource === '';
}

function changesFinalizers({ target, object, oldObject }: Review): boolean {
  return (
    target?.operation === 'UPDATE' &&
    isJsonObject(object) &&
    oldObject !== undefined &&
    isEqual(withoutChanging(object), withoutChanging(oldObject))
  );
}

function withoutChanging(object: JsonObject): JsonObject {
  const metadata = own(object, 'metadata');
  const kept = Object.entries(isJsonObject(metadata) ? metadata : {}).filter(([field]) => !CHANGING.has(field));
  return { ...object, metadata: Object.fromEntries(kept) satisfies Record<string, JsonValue> };
}

function isEnding(name: string, objects: ObjectLookup): boolean {
  const namespace: ObjectReference = { apiVersion: 'v1', kind: 'Namespace', name };
  const found = objects.find(namespace);
  if (found.state === 'unknown') {
    throw new UnknownObject(namespace);
  }
  return found.state === 'found' && textOf(valueAt(found.object, 'metadata', 'deletionTimestamp')) !== '';
}
