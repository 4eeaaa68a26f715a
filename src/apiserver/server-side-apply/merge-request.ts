import { apiVersionOf } from '../../resources/index.ts';
import type { JsonObject, KubernetesObject, Schema } from '../../resources/index.ts';
import { mergeTypeOf } from '../../resources/structured-merge/index.ts';
import type { ResourceDefinition } from '../resource-definition.ts';
import { managedFieldsOf } from './managed-fields.ts';
import type { Managers } from './managed-fields.ts';
import type { Kind } from './ownership.ts';
import { resetFieldsOf } from './reset-fields.ts';
import { emptyStruct, withStructs } from './struct-shape.ts';

/** The properties of a kind that field management needs. */
export type MergedKind = Pick<
  ResourceDefinition,
  'group' | 'version' | 'resource' | 'kind' | 'schema' | 'origin' | 'hasStatus'
>;

/** A write, as field management sees it. */
export interface ManagedWrite {
  readonly definition: MergedKind;
  /** `status` or `scale`; absent for the main resource. */
  readonly subresource?: string | undefined;
  /** See `managerOf`. */
  readonly manager: string;
  /** Milliseconds since 1970. */
  readonly now: number;
  /**
   * The schema of the kind in another version, for managers that wrote in that version. Undefined when it is not served: then
   * these managers are dropped. Default: no other version is served.
   */
  readonly schemaOf?: ((apiVersion: string) => Schema | undefined) | undefined;
}

export function kindOf({ definition, subresource, schemaOf = () => undefined }: ManagedWrite): Kind {
  return {
    apiVersion: apiVersionOf(definition),
    type: mergeTypeOf(definition.schema()),
    resetFields: resetFieldsOf(definition, subresource),
    schemaOf,
  };
}

/** The object for comparison: without managers, and with the nested structs that a Go struct always has. */
export function comparable(object: KubernetesObject | undefined, definition: MergedKind): JsonObject {
  const isBuiltin = definition.origin === 'builtin';
  if (object === undefined) {
    const empty = isBuiltin ? emptyStruct(definition.schema()) : {};
    return { ...empty, apiVersion: apiVersionOf(definition), kind: definition.kind };
  }
  const json = withoutManagedFields(object);
  return isBuiltin ? withStructs(json, definition.schema()) : json;
}

function withoutManagedFields(object: KubernetesObject): JsonObject {
  const json = object as JsonObject;
  if (!Object.hasOwn(object, 'metadata') || object.metadata?.managedFields === undefined) {
    return json;
  }
  const { managedFields: _managedFields, ...metadata } = object.metadata;
  return { ...json, metadata: metadata as JsonObject };
}

/** The object with these managers. */
export function withManagers(object: JsonObject, managers: Managers): KubernetesObject {
  const { managedFields: _managedFields, ...metadata } = (object['metadata'] ?? {}) as JsonObject;
  const managedFields = managedFieldsOf(managers);
  return {
    ...object,
    metadata: managedFields.length === 0 ? metadata : { ...metadata, managedFields },
  } as unknown as KubernetesObject;
}
