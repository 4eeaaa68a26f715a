// Tables and PartialObjectMetadata
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables).
import { ApiError } from '../../cluster/index.ts';
import type { ObjectList } from '../../cluster/index.ts';
import { ageOf, isJsonObject } from '../../resources/index.ts';
import type { KubernetesObject } from '../../resources/index.ts';
import type { ResourceDefinition, TablePrinter } from '../resource-definition.ts';
import type { Representation } from './negotiation.ts';

/** What a table's rows have as their `object`. */
export type IncludeObject = 'None' | 'Metadata' | 'Object';

/**
 * The `includeObject` parameter.
 * @throws ApiError 400 for unknown values.
 */
export function includeObjectOf(query: URLSearchParams): IncludeObject {
  const value = query.get('includeObject') ?? '';
  if (value === '') {
    return 'Metadata';
  }
  if (value === 'None' || value === 'Metadata' || value === 'Object') {
    return value;
  }
  throw ApiError.badRequest(
    `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(value)}: must be 'Metadata', 'Object', 'None', or empty`,
  );
}

/** How a request's objects are returned. */
export interface ResponseForm {
  readonly representation: Representation;
  readonly printer: TablePrinter;
  readonly includeObject: IncludeObject;
}

const NAME_COLUMN = { name: 'Name', type: 'string', format: 'name' } as const;
const AGE_COLUMN = { name: 'Age', type: 'string' } as const;

/** For the subresource `scale`. */
const SCALE_PRINTER: TablePrinter = {
  columns: [NAME_COLUMN, { name: 'Desired', type: 'integer' }, { name: 'Available', type: 'integer' }, AGE_COLUMN],
  cells: (object, now) => [
    object.metadata.name ?? '',
    replicasOf(object['spec']),
    replicasOf(object['status']),
    ageOf(object.metadata.creationTimestamp, now),
  ],
};

function replicasOf(part: unknown): number {
  return isJsonObject(part) && typeof part['replicas'] === 'number' ? part['replicas'] : 0;
}

/** For objects of other subresources. */
const GENERIC_PRINTER: TablePrinter = {
  columns: [NAME_COLUMN, { name: 'Created At', type: 'date' }],
  cells: (object) => [object.metadata.name ?? '', object.metadata.creationTimestamp ?? ''],
};

/** The printer for a resource or its subresource. */
export function printerOf(definition: ResourceDefinition, subresource: string | undefined): TablePrinter {
  if (subresource === undefined || subresource === 'status' || subresource === 'finalize') {
    return definition.printer;
  }
  return subresource === 'scale' ? SCALE_PRINTER : GENERIC_PRINTER;
}

/**
 * An object in the requested representation.
 * @throws ApiError 406 for PartialObjectMetadataList.
 */
export function formattedObject(form: ResponseForm, object: KubernetesObject, now: number): object {
  const { as } = form.representation;
  switch (as) {
    case undefined:
      return object;
    case 'Table':
      return tableOf(form, { resourceVersion: object.metadata.resourceVersion ?? '' }, [object], now);
    case 'PartialObjectMetadata':
      return partialMetadata(object, form.representation.version);
    default:
      throw new ApiError(
        406,
        'NotAcceptable',
        `you requested PartialObjectMetadataList, but the requested object is not a list (${object.kind})`,
      );
  }
}

/**
 * A list in the requested representation.
 * @throws ApiError 406 for PartialObjectMetadata.
 */
export function formattedList(
  form: ResponseForm,
  definition: ResourceDefinition,
  list: ObjectList,
  now: number,
): object {
  const { as, version } = form.representation;
  const { metadata, items } = list;
  switch (as) {
    case undefined:
      return { kind: `${definition.kind}List`, apiVersion: apiVersionText(definition), metadata, items };
    case 'Table':
      return tableOf(form, metadata, items, now);
    case 'PartialObjectMetadataList':
      return {
        kind: 'PartialObjectMetadataList',
        apiVersion: `meta.k8s.io/${version}`,
        metadata,
        items: items.map((item) => partialMetadata(item, version)),
      };
    default:
      throw new ApiError(
        406,
        'NotAcceptable',
        `you requested PartialObjectMetadata, but the requested object is a list (${definition.kind}List)`,
      );
  }
}

function apiVersionText({ group, version }: ResourceDefinition): string {
  return group === '' ? version : `${group}/${version}`;
}

/** A table. In a watch, only the first one has column definitions. */
export function tableOf(
  form: ResponseForm,
  metadata: object,
  objects: readonly KubernetesObject[],
  now: number,
  hasColumns = true,
): object {
  const { printer, includeObject, representation } = form;
  return {
    kind: 'Table',
    apiVersion: `meta.k8s.io/${representation.version}`,
    metadata,
    columnDefinitions: hasColumns
      ? printer.columns.map(({ name, type, format = '', description = '', priority = 0 }) => ({
          name,
          type,
          format,
          description,
          priority,
        }))
      : null,
    rows: objects.map((object) => ({
      cells: printer.cells(object, now),
      object: rowObject(object, includeObject, representation.version),
    })),
  };
}

function rowObject(object: KubernetesObject, include: IncludeObject, version: 'v1' | 'v1beta1'): object | null {
  switch (include) {
    case 'None':
      return null;
    case 'Metadata':
      return partialMetadata(object, version);
    default:
      return object;
  }
}

function partialMetadata({ metadata }: KubernetesObject, version: 'v1' | 'v1beta1'): object {
  return { kind: 'PartialObjectMetadata', apiVersion: `meta.k8s.io/${version}`, metadata };
}
