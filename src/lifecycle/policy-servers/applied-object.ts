// Whether an object is as we applied it with server-side apply (KEP-555), so that it is written only when it differs.
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/555-server-side-apply
//
// Values cannot be compared: API servers set defaults and normalise quantities, and other writers add their own fields. But a
// writer who changes one of our fields takes over its ownership. So an object is unchanged if we own exactly the fields that
// we apply; a digest in one of them identifies what was applied.
import { createHash } from 'node:crypto';
import {
  CONTROLLER_FIELD_MANAGER,
  type JsonObject,
  type KubernetesObject,
  kubernetesSchema,
  type ManagedFieldsEntry,
  textOf,
} from '../../resources/index.ts';
import { FieldSet, fieldSetOf } from '../../resources/structured-merge/index.ts';

/** Annotation with a digest of the applied object. */
const APPLIED_ANNOTATION = 'portcullis.dev/applied';
/** Hexadecimal digits of the digest: enough, because it is compared with one other digest only. */
const DIGITS = 32;

/** Adds the digest to an object to apply. The digest depends on the order of keys. */
export function withAppliedDigest(object: JsonObject): JsonObject {
  const metadata = object['metadata'] as JsonObject;
  const digest = createHash('sha256').update(JSON.stringify(object)).digest('hex').slice(0, DIGITS);
  const annotations = { ...(metadata['annotations'] as JsonObject | undefined), [APPLIED_ANNOTATION]: digest };
  return { ...object, metadata: { ...metadata, annotations } };
}

/** The fields that we own in the cluster; undefined if we have not applied the object. */
export function ownFields({ metadata }: KubernetesObject): JsonObject | undefined {
  return metadata.managedFields?.find(isOwn)?.fieldsV1;
}

function isOwn({ manager, operation, subresource }: ManagedFieldsEntry): boolean {
  return manager === CONTROLLER_FIELD_MANAGER && operation === 'Apply' && (subresource ?? '') === '';
}

/** The object with our own managed fields only, for caches. */
export function withOwnFieldsOnly<T extends KubernetesObject>(object: T): T {
  const managedFields = object.metadata.managedFields?.filter(isOwn) ?? [];
  return { ...object, metadata: { ...object.metadata, managedFields } };
}

/** Whether an object is unchanged since `wanted`, which has a digest, was applied. */
export function isAsApplied(actual: KubernetesObject, wanted: JsonObject): boolean {
  const fields = ownFields(actual);
  return fields !== undefined && hasDigestOf(actual, wanted) && FieldSet.parse(fields).equals(fieldsOf(wanted));
}

/** Whether `wanted` was applied last; other writers may have changed the object since. */
export function hasDigestOf({ metadata }: KubernetesObject, wanted: JsonObject): boolean {
  const { annotations = {} } = wanted['metadata'] as { annotations?: Readonly<Record<string, string>> };
  return (
    Object.hasOwn(annotations, APPLIED_ANNOTATION) &&
    metadata.annotations?.[APPLIED_ANNOTATION] === annotations[APPLIED_ANNOTATION]
  );
}

/** The fields that we own after applying an object: all but those that identify it. */
function fieldsOf({ apiVersion, kind, ...object }: JsonObject): FieldSet {
  const { name: _name, namespace: _namespace, ...metadata } = object['metadata'] as JsonObject;
  const schema = kubernetesSchema(textOf(apiVersion), textOf(kind));
  if (schema === undefined) {
    throw new Error(`no schema of ${textOf(kind)} of ${textOf(apiVersion)} is known`);
  }
  return fieldSetOf({ ...object, metadata }, schema);
}
