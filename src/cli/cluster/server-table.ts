// Tables as API servers make them (`meta.k8s.io/v1` Table), printed as kubectl prints them.
import type { KubernetesObject } from '../../resources/index.ts';
import { oneLine, table } from '../table.ts';

interface ServerColumn {
  readonly name: string;
  readonly priority?: number;
}

interface ServerRow {
  readonly cells: readonly unknown[];
  readonly object?: KubernetesObject;
}

/** What a server answers that was asked for a table. */
export interface ServerTable {
  readonly kind: 'Table';
  readonly metadata?: { readonly resourceVersion?: string };
  readonly columnDefinitions?: readonly ServerColumn[];
  readonly rows?: readonly ServerRow[];
}

interface ServerTableOptions {
  /** Also the columns that are less important. */
  readonly wide: boolean;
  /** A first column with the objects' namespaces. */
  readonly withNamespace: boolean;
  /** A last column with the objects' labels. */
  readonly withLabels: boolean;
  readonly withHeaders: boolean;
}

export function isServerTable(value: unknown): value is ServerTable {
  return (value as { kind?: unknown } | null)?.kind === 'Table';
}

/** The lines of a table, without a line break at the end. */
export function serverTableText(from: ServerTable, options: ServerTableOptions): string {
  const shown = (from.columnDefinitions ?? []).flatMap((column, index) =>
    options.wide || (column.priority ?? 0) === 0 ? [{ column, index }] : [],
  );
  const text = table<ServerRow>(
    [
      ...(options.withNamespace
        ? [{ header: 'NAMESPACE', cell: ({ object }: ServerRow) => cellText(object?.metadata.namespace ?? '') }]
        : []),
      ...shown.map(({ column, index }) => ({
        header: cellText(column.name).toUpperCase(),
        cell: ({ cells }: ServerRow) => cellText(cells[index]),
      })),
      ...(options.withLabels
        ? [{ header: 'LABELS', cell: ({ object }: ServerRow) => labelsText(object?.metadata.labels) }]
        : []),
    ],
    from.rows ?? [],
  );
  return options.withHeaders ? text : text.slice(text.indexOf('\n') + 1);
}

/** Cells come from tenants, columns from whoever makes kinds: they must not be able to move the cursor. */
function cellText(cell: unknown): string {
  return cell === null || cell === undefined
    ? '<none>'
    : oneLine(typeof cell === 'string' ? cell : JSON.stringify(cell));
}

function labelsText(labels: Readonly<Record<string, string>> | undefined): string {
  const entries = Object.entries(labels ?? {});
  return entries.length === 0 ? '<none>' : entries.map(([key, value]) => oneLine(`${key}=${value}`)).join(',');
}
