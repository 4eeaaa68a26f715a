import { applyJsonPatch } from '../../resources/index.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import type { Evaluated } from './bucket-table.ts';
import { podReview } from './reviews.ts';

/** The object of {@link podReview}. */
export const POD = (podReview().request as JsonObject).object as JsonObject;

/** Answers with the object and one more label. */
export function label(key: string, value = 'x'): (request: JsonObject) => unknown {
  return ({ object }) => ({ accepted: true, mutated_object: labelled(object as JsonObject, { [key]: value }) });
}

/** An object with more labels. */
export function labelled(object: JsonObject, labels: JsonObject): JsonObject {
  const metadata = object.metadata as JsonObject;
  return { ...object, metadata: { ...metadata, labels: { ...(metadata.labels as JsonObject), ...labels } } };
}

/** Applies the patch of a verdict to the object. */
export function patchedObject({ verdict }: Evaluated, object: JsonObject = POD): JsonValue {
  return applyJsonPatch(object, JSON.parse(verdict.patch ?? '') as JsonValue[]);
}
