// The last-applied annotation of client-side `kubectl apply`, for the migration to server-side apply
// (https://kubernetes.io/docs/reference/using-api/server-side-apply/#upgrading-from-client-side-apply-to-server-side-apply).
import { jsonText } from '../../go/index.ts';
import { isJsonObject, LAST_APPLIED_ANNOTATION } from '../../resources/index.ts';
import type { JsonObject, KubernetesObject } from '../../resources/index.ts';
import { checkTypes, fieldsOf, MergeError } from '../../resources/structured-merge/index.ts';
import type { FieldSet } from '../../resources/structured-merge/index.ts';
import { MAX_ANNOTATIONS_BYTES } from '../../resources/validation/index.ts';
import { compareObjects } from './compare.ts';
import type { Kind } from './ownership.ts';
import { parseJson } from '../../values/index.ts';

/** The fields in the annotation whose values the object still has. Undefined without a valid annotation. */
export function fieldsOfLastApplied(live: JsonObject, kind: Kind): FieldSet | undefined {
  const text = annotationsOf(live)[LAST_APPLIED_ANNOTATION];
  if (typeof text !== 'string' || text === '') {
    return undefined;
  }
  try {
    const applied: unknown = parseJson(text);
    if (!isJsonObject(applied) || applied['apiVersion'] !== kind.apiVersion) {
      return undefined;
    }
    checkTypes(applied, kind.type, false);
    checkTypes(live, kind.type, false);
    const { added, modified, removed } = compareObjects(applied, live, kind.type);
    return fieldsOf(applied, kind.type).difference(modified).difference(added).difference(removed);
  } catch (error) {
    if (error instanceof MergeError || error instanceof SyntaxError) {
      return undefined;
    }
    throw error;
  }
}

/** Writes the applied configuration to the annotation of an object that has one, as client-side apply would. */
export function syncLastApplied(object: KubernetesObject, applied: KubernetesObject): KubernetesObject {
  const annotations = object.metadata.annotations ?? {};
  if (!Object.hasOwn(annotations, LAST_APPLIED_ANNOTATION) || annotations[LAST_APPLIED_ANNOTATION] === '') {
    return object;
  }
  const { [LAST_APPLIED_ANNOTATION]: _before, ...others } = annotations;
  const updated = { ...others, [LAST_APPLIED_ANNOTATION]: `${jsonText(withoutAnnotation(applied))}\n` };
  const bytes = Object.entries(updated).reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value),
    0,
  );
  const kept = bytes > MAX_ANNOTATIONS_BYTES ? others : updated;
  return { ...object, metadata: { ...object.metadata, annotations: kept } };
}

function withoutAnnotation(object: KubernetesObject): unknown {
  const { annotations } = object.metadata;
  if (annotations === undefined || !Object.hasOwn(annotations, LAST_APPLIED_ANNOTATION)) {
    return object;
  }
  const { [LAST_APPLIED_ANNOTATION]: _removed, ...others } = annotations;
  const { annotations: _annotations, ...metadata } = object.metadata;
  return { ...object, metadata: Object.keys(others).length === 0 ? metadata : { ...metadata, annotations: others } };
}

function annotationsOf(object: JsonObject): JsonObject {
  const { metadata } = object;
  const annotations = isJsonObject(metadata) && Object.hasOwn(metadata, 'annotations') ? metadata['annotations'] : {};
  return isJsonObject(annotations) ? annotations : {};
}
