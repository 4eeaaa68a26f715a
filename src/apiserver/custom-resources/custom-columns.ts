import { jsonText, numberText } from '../../go/index.ts';
import { ageOf, isJsonObject } from '../../resources/index.ts';
import type { CustomColumn, TableColumn } from '../../resources/index.ts';
import type { TablePrinter } from '../resource-definition.ts';
import { type JsonPath, parseJsonPath } from '../../values/index.ts';

const NAME_COLUMN: TableColumn = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'The name of the object, unique in its namespace.',
};

/** Maximum number of columns, because each is evaluated for every object of a list. */
export const MAX_COLUMNS = 250;

/** The columns of a kind that declares none. */
const DEFAULT_COLUMNS: readonly CustomColumn[] = [
  { name: 'Age', type: 'date', description: 'When the object was created.', jsonPath: '.metadata.creationTimestamp' },
];

/** A printer with the name and the columns of a CustomResourceDefinition. */
export function customPrinter(declared: readonly CustomColumn[]): TablePrinter {
  const columns = declared.length === 0 ? DEFAULT_COLUMNS : declared.slice(0, MAX_COLUMNS);
  const paths = columns.map(({ jsonPath }) => parseJsonPath(jsonPath));
  // As in API servers, one malformed path removes all columns except the name.
  const shown = paths.includes(undefined) ? [] : columns;
  return {
    columns: [NAME_COLUMN, ...shown.map(({ jsonPath, ...column }) => describedColumn(column, jsonPath))],
    cells: (object, now) => [
      object.metadata.name ?? '',
      ...shown.map((column, index) => cellOf(column, paths[index], object, now)),
    ],
  };
}

function describedColumn(column: TableColumn, jsonPath: string): TableColumn {
  const { name, type, format = '', description = '', priority = 0 } = column;
  return {
    name,
    type,
    format,
    description:
      description === '' ? `Custom resource definition column (in JSONPath format): ${jsonPath}` : description,
    priority,
  };
}

/** The first value of the path; null when there is none, or its type is not the column's. */
function cellOf({ type }: CustomColumn, path: JsonPath | undefined, object: unknown, now: number): unknown {
  const value = path?.find(object)[0] ?? null;
  if (value === null) {
    return null;
  }
  switch (type) {
    case 'string':
      return textOf(value);
    case 'date':
      return typeof value === 'string' ? dateText(value, now) : null;
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null;
    default:
      return typeof value === type ? value : null;
  }
}

function textOf(value: unknown): string {
  if (typeof value === 'string') {
    return value;
  }
  if (typeof value === 'number') {
    return numberText(value);
  }
  return isJsonObject(value) || Array.isArray(value) ? jsonText(value) : String(value);
}

function dateText(value: string, now: number): string {
  return value !== '' && Number.isNaN(Date.parse(value)) ? '<invalid>' : ageOf(value, now);
}
