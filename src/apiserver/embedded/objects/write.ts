// The state of a write, and its options.
import type { SubresourceOptions, WriteOptions } from '../../../cluster/index.ts';
import type { JsonObject, MutableObject, ResourceType } from '../../../resources/index.ts';
import type { Caller, ClusterContext } from './cluster-context.ts';
import type { RegisteredResource } from '../kinds/resource-registry.ts';

export type ObjectWriteOptions = WriteOptions & SubresourceOptions;

/** A write in progress. */
export interface Write {
  readonly context: ClusterContext;
  readonly served: RegisteredResource;
  readonly caller: Caller;
  readonly namespace: string | undefined;
  readonly options: ObjectWriteOptions;
  readonly verb: 'create' | 'update' | 'patch' | 'apply';
  /** The text of a strategic merge patch, for messages. */
  readonly patchText?: string;
}

/** The field manager of a write. */
export function fieldManagerOf({ caller, options }: Pick<Write, 'caller' | 'options'>): string {
  return options.fieldManager ?? caller.fieldManager;
}

/** The options in AdmissionReviews. They are CreateOptions or UpdateOptions, for a patch as well. */
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

/** Empty before a name is generated. */
export function nameOf({ metadata: { name } }: MutableObject): string {
  return typeof name === 'string' ? name : '';
}
