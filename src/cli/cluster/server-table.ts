// Prints tables of API servers (`meta.k8s.io/v1` Table) in the layout of kubectl.
import type { ApiResource } from '../../cluster/index.ts';
import type { KubernetesObject } from '../../resources/index.ts';
import { oneLine, table, withoutHeader } from '../table.ts';
import { objectName } from './resource-arguments.ts';

interface ServerColumn {
  readonly name: string;
  readonly priority?: number;
}

interface ServerRow {
  readonly cells: readonly unknown[];
  readonly object?: KubernetesObject;
}

/** https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables */
export interface ServerTable {
  readonly kind: 'Table';
  readonly metadata?: { readonly resourceVersion?: string };
  readonly columnDefinitions?: readonly ServerColumn[];
  readonly rows?: readonly ServerRow[];
}

interface ServerTableOptions {
  /** Include columns with a priority above 0. */
  readonly wide: boolean;
  /** Add a first column with namespaces. */
  readonly withNamespace: boolean;
  /** Add a last column with labels. */
  readonly withLabels: boolean;
  readonly withHeaders: boolean;
  /** Width of the terminal; absent: as wide as needed. */
  readonly maxWidth?: number;
  /** The type of the objects, to be shown with their names; by its short name when the width is limited. */
  readonly type?: Pick<ApiResource, 'group' | 'kind' | 'shortNames'>;
}

export function isServerTable(value: unknown): value is ServerTable {
  return (value as { kind?: unknown } | null)?.kind === 'Table';
}

/** The lines of a table, without a trailing line break. */
export function serverTableText(from: ServerTable, options: ServerTableOptions): string {
  const shown = (from.columnDefinitions ?? []).flatMap((column, index) =>
    options.wide || (column.priority ?? 0) === 0 ? [{ column, index }] : [],
  );
  const text = table<ServerRow>(
    [
      ...(options.withNamespace
        ? [
            {
              header: 'NAMESPACE',
              name: 'whole' as const,
              cell: ({ object }: ServerRow) => cellText(object?.metadata.namespace ?? ''),
            },
          ]
        : []),
      ...shown.map(({ column, index }) => ({
        header: cellText(column.name).toUpperCase(),
        name: index === 0 ? ('whole' as const) : undefined,
        cell: ({ cells }: ServerRow) =>
          options.type !== undefined && index === 0
            ? typedName(options.type, cellText(cells[0]), options.maxWidth !== undefined)
            : cellText(cells[index]),
      })),
      ...(options.withLabels
        ? [{ header: 'LABELS', cell: ({ object }: ServerRow) => labelsText(object?.metadata.labels) }]
        : []),
    ],
    from.rows ?? [],
    options.maxWidth,
  );
  return options.withHeaders ? text : withoutHeader(text);
}

function typedName(type: Pick<ApiResource, 'group' | 'kind' | 'shortNames'>, name: string, isShort: boolean): string {
  const [shortName] = type.shortNames;
  return isShort && shortName !== undefined ? `${oneLine(shortName)}/${name}` : objectName(type, name);
}

/** Cells and columns are untrusted: control characters are removed. */
function cellText(cell: unknown): string {
  return cell === null || cell === undefined
    ? '<none>'
    : oneLine(typeof cell === 'string' ? cell : JSON.stringify(cell));
}

function labelsText(labels: Readonly<Record<string, string>> | undefined): string {
  const entries = Object.entries(labels ?? {});
  return entries.length === 0 ? '<none>' : entries.map(([key, value]) => oneLine(`${key}=${value}`)).join(',');
}
