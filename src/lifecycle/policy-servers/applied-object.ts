// Whether an object is what was applied (KEP-555), so that it is written only when it differs.
//
// Comparing values does not say: API servers fill in defaults, write quantities anew, and others add what is theirs. But whoever
// changes a field that we applied becomes its owner in our place. So an object is as we applied it if we still own exactly the
// fields that we apply; and a digest, one of these fields, says what we applied.
import { createHash } from 'node:crypto';
import {
  type JsonObject,
  type KubernetesObject,
  kubernetesSchema,
  type ManagedFieldsEntry,
  textOf,
} from '../../resources/index.ts';
import { FieldSet, fieldSetOf } from '../../resources/structured-merge/index.ts';
import { FIELD_MANAGER } from '../field-manager.ts';

/** Says what was applied: the digest of all of it. */
export const APPLIED_ANNOTATION = 'portcullis.dev/applied';
/** Hexadecimal digits of the digest: it is compared with that of one other object only. */
const DIGITS = 32;

/** What is applied: the object, and the digest of it. Keys in any other order are another digest. */
export function withDigest(object: JsonObject): JsonObject {
  const metadata = object['metadata'] as JsonObject;
  const digest = createHash('sha256').update(JSON.stringify(object)).digest('hex').slice(0, DIGITS);
  const annotations = { ...(metadata['annotations'] as JsonObject | undefined), [APPLIED_ANNOTATION]: digest };
  return { ...object, metadata: { ...metadata, annotations } };
}

/** The fields that we own, as the cluster has them; undefined when it is not us who applied the object. */
export function ownFields({ metadata }: KubernetesObject): JsonObject | undefined {
  return metadata.managedFields?.find(isOwn)?.fieldsV1;
}

function isOwn({ manager, operation, subresource }: ManagedFieldsEntry): boolean {
  return manager === FIELD_MANAGER && operation === 'Apply' && (subresource ?? '') === '';
}

/** The object without what others own of it: for caches. */
export function withOwnFieldsOnly<T extends KubernetesObject>(object: T): T {
  const managedFields = object.metadata.managedFields?.filter(isOwn) ?? [];
  return { ...object, metadata: { ...object.metadata, managedFields } };
}

/** Whether an object is what was applied last, and `wanted` (with its digest) is that. */
export function isAsApplied(actual: KubernetesObject, wanted: JsonObject): boolean {
  const fields = ownFields(actual);
  return fields !== undefined && hasDigestOf(actual, wanted) && FieldSet.parse(fields).equals(fieldsOf(wanted));
}

/** Whether `wanted` is what was applied last, though others may have changed it since. */
export function hasDigestOf({ metadata }: KubernetesObject, wanted: JsonObject): boolean {
  const { annotations = {} } = wanted['metadata'] as { annotations?: Readonly<Record<string, string>> };
  return (
    Object.hasOwn(annotations, APPLIED_ANNOTATION) &&
    metadata.annotations?.[APPLIED_ANNOTATION] === annotations[APPLIED_ANNOTATION]
  );
}

/** The fields that applying an object makes ours: all but those that say which object it is. */
function fieldsOf({ apiVersion, kind, ...object }: JsonObject): FieldSet {
  const { name: _name, namespace: _namespace, ...metadata } = object['metadata'] as JsonObject;
  const schema = kubernetesSchema(textOf(apiVersion), textOf(kind));
  if (schema === undefined) {
    throw new Error(`no schema of ${textOf(kind)} of ${textOf(apiVersion)} is known`);
  }
  return fieldSetOf({ ...object, metadata }, schema);
}
