// A write while it is made, and what is read of what clients send with it.
import type { SubresourceOptions, WriteOptions } from '../../cluster/index.ts';
import type { JsonObject, MutableObject, ResourceType } from '../../resources/index.ts';
import type { Caller, Machine } from './machine.ts';
import type { ServedResource } from './resource-registry.ts';

export type ObjectWriteOptions = WriteOptions & SubresourceOptions;

/** A write while it is made. */
export interface Write {
  readonly machine: Machine;
  readonly served: ServedResource;
  readonly caller: Caller;
  readonly namespace: string | undefined;
  readonly options: ObjectWriteOptions;
  readonly verb: 'create' | 'update' | 'patch' | 'apply';
  /** Of a strategic merge patch: itself, as messages about it have it. */
  readonly patchText?: string;
}

/** Who owns the fields that the write sets. */
export function fieldManagerOf({ caller, options }: Pick<Write, 'caller' | 'options'>): string {
  return options.fieldManager ?? caller.fieldManager;
}

/** What webhooks are told of the options. To admission, patches are updates, and what creates is a creation. */
export function admissionOptions(write: Pick<Write, 'caller' | 'options'>, operation: 'CREATE' | 'UPDATE'): JsonObject {
  const { dryRun, fieldValidation } = write.options;
  return {
    apiVersion: 'meta.k8s.io/v1',
    kind: operation === 'CREATE' ? 'CreateOptions' : 'UpdateOptions',
    ...(dryRun === true ? { dryRun: ['All'] } : {}),
    fieldManager: fieldManagerOf(write),
    ...(fieldValidation === undefined ? {} : { fieldValidation }),
  };
}

export function onWarningOf({ onWarning = () => {} }: ObjectWriteOptions): (text: string) => void {
  return onWarning;
}

export function namespaceOf(type: ResourceType, object: MutableObject): string | undefined {
  const { namespace } = object.metadata;
  return type.namespaced && typeof namespace === 'string' && namespace !== '' ? namespace : undefined;
}

/** Empty while a generated name is not made yet. */
export function nameOf({ metadata: { name } }: MutableObject): string {
  return typeof name === 'string' ? name : '';
}
