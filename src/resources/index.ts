export type { FieldError, FieldErrorReason } from './field-error.ts';
export { isJsonObject } from './json.ts';
export type { JsonObject, JsonValue } from './json.ts';
export type {
  FieldsV1,
  KubernetesObject,
  ManagedFieldsEntry,
  ObjectMeta,
  OwnerReference,
} from './kubernetes-object.ts';
export type { MutableObject, ResourceDefinition, TableColumn, TablePrinter } from './resource-definition.ts';
export { apiVersionOf, groupResourceOf, groupVersionOf, keyOf, keyText } from './resource-type.ts';
export type { ObjectKey, ResourceType } from './resource-type.ts';
export type { Schema, ValidationRule } from './schema.ts';
