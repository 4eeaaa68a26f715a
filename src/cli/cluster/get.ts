// `portcullis get`: lists or watches objects of a cluster, as a table, YAML or JSON.
import { Command, Option } from 'commander';
import {
  type ApiResource,
  isForbidden,
  isNotFound,
  type KubernetesCluster,
  listAll,
  resourcePath,
  TABLE_ACCEPT,
} from '../../cluster/index.ts';
import { groupResourceOf, type KubernetesObject } from '../../resources/index.ts';
import { errorText } from '../../values/index.ts';
import { CliError, usageError } from '../errors.ts';
import { dataText } from '../output.ts';
import { addClusterFlags, type ClusterFlags, connect } from './cluster-flags.ts';
import { keyIn, objectName, OWN_CATEGORY, type ResourceSelection, selectResources } from './resource-arguments.ts';
import { terminalWidth } from '../table.ts';
import { isServerTable, type ServerTable, serverTableText } from './server-table.ts';

interface GetFlags extends ClusterFlags {
  readonly output: 'table' | 'wide' | 'json' | 'yaml' | 'name';
  readonly allNamespaces?: true;
  readonly selector?: string;
  readonly fieldSelector?: string;
  readonly watch?: true;
  readonly showLabels?: true;
  readonly headers: boolean;
  readonly ignoreNotFound?: true;
  readonly showManagedFields?: true;
}

export function getCommand(): Command {
  return addClusterFlags(
    new Command('get')
      .description('show objects of a cluster')
      .argument(
        '[resources...]',
        'TYPE[,TYPE…] [NAME…], TYPE/NAME…, or the NAME of a policy (default: all of our kinds)',
      )
      .addOption(
        new Option('-o, --output <format>', 'output format')
          .choices(['table', 'wide', 'json', 'yaml', 'name'])
          .default('table'),
      )
      .option('-A, --all-namespaces', 'of all namespaces')
      .option('-l, --selector <selector>', 'only objects with these labels, such as app=web,tier!=cache')
      .option('--field-selector <selector>', 'only objects with these fields, such as metadata.name=web')
      .option('-w, --watch', 'go on and show changes')
      .option('--show-labels', 'a column with labels')
      .option('--no-headers', 'print no column headers')
      .option('--ignore-not-found', 'do not fail when an object does not exist')
      .option('--show-managed-fields', 'include metadata.managedFields in YAML and JSON'),
  )
    .addHelpText(
      'after',
      `
Examples:
  portcullis get
  portcullis get cap
  portcullis get cap pinned-images -o yaml
  portcullis get all -A
  portcullis get pods,services -A
  portcullis get cap -w`,
    )
    .action(get);
}

async function get(resources: readonly string[], flags: GetFlags): Promise<void> {
  using connected = await connect(flags);
  const { cluster, namespace } = connected;
  const selections = await selectResources(cluster, resources.length === 0 ? [OWN_CATEGORY] : resources, { namespace });
  if (flags.watch === true && (selections.length > 1 || (selections[0]?.names.length ?? 0) > 1)) {
    throw usageError('--watch: expected one type, or one object of it');
  }
  if (flags.allNamespaces === true && selections.some(({ names }) => names.length > 0)) {
    throw usageError('--all-namespaces cannot be combined with names', 'Leave out the names, or -A.');
  }
  try {
    await (flags.output === 'table' || flags.output === 'wide'
      ? printTables(cluster, namespace, selections, flags)
      : printObjects(cluster, namespace, selections, flags));
  } catch (error) {
    if (isForbidden(error) && flags.allNamespaces === true) {
      const hint = 'Without -A, it shows those of one namespace: -n NAMESPACE names one that you may read.';
      throw new CliError(errorText(error), { hint, cause: error });
    }
    throw error;
  }
}

// Tables ------------------------------------------------------------------------------------------------------------

async function printTables(
  cluster: KubernetesCluster,
  namespace: string,
  selections: readonly ResourceSelection[],
  flags: GetFlags,
): Promise<void> {
  let isFirst = true;
  let rows = 0;
  const unlisted: Unlisted = [];
  const tables = await Promise.all(
    selections.map((selection) => tablesOf(cluster, namespace, selection, flags, unlisted)),
  );
  noteUnlisted(unlisted, flags);
  for (const [index, { type, names }] of selections.entries()) {
    const found = tables[index] ?? [];
    const [first] = found;
    const merged = { ...first, rows: found.flatMap((table) => table.rows ?? []) } as ServerTable;
    rows += merged.rows?.length ?? 0;
    if (merged.rows?.length !== 0) {
      process.stdout.write(
        `${isFirst ? '' : '\n'}${serverTableText(merged, { ...tableOptions(type, flags), ...(selections.length === 1 ? {} : { type }) })}\n`,
      );
      isFirst = false;
    }
    if (flags.watch === true) {
      await watchTable(cluster, namespace, type, names[0], flags, first);
    }
  }
  if (rows === 0 && flags.watch !== true) {
    const where =
      flags.allNamespaces === true || selections.every(({ type }) => !type.namespaced)
        ? ''
        : ` in namespace ${namespace}`;
    process.stderr.write(`No resources found${where}.\n`);
  }
}

/** The table of all objects of a type, or one for each name. */
async function tablesOf(
  cluster: KubernetesCluster,
  namespace: string,
  { type, names, isOfCategory }: ResourceSelection,
  flags: GetFlags,
  unlisted: Unlisted,
): Promise<readonly ServerTable[]> {
  const read = (name?: string): Promise<ServerTable | undefined> => tableOf(cluster, namespace, type, name, flags);
  const tables =
    names.length === 0
      ? [await (isOfCategory === true ? unlessForbidden(type, read(), unlisted) : read())]
      : await Promise.all(names.map(read));
  return tables.filter((table) => table !== undefined);
}

/** What a member of a category has; undefined when the user may not list it, which {@link Unlisted} notes. */
async function unlessForbidden<T>(type: ApiResource, list: Promise<T>, unlisted: Unlisted): Promise<T | undefined> {
  try {
    return await list;
  } catch (error) {
    if (isForbidden(error)) {
      unlisted.push(type);
      return undefined;
    }
    throw error;
  }
}

/** Members of a category that the user may not list. */
type Unlisted = ApiResource[];

/** One note for all of them. */
function noteUnlisted(unlisted: Unlisted, { allNamespaces }: GetFlags): void {
  if (unlisted.length > 0) {
    const names = unlisted.map(groupResourceOf).toSorted().join(', ');
    const [where, hint] =
      allNamespaces === true ? [' in all namespaces', '; without -A, you see those of one namespace'] : ['', ''];
    process.stderr.write(`note: left out, because you may not list them${where}: ${names}${hint}\n`);
  }
}

async function tableOf(
  cluster: KubernetesCluster,
  namespace: string,
  type: ApiResource,
  name: string | undefined,
  flags: GetFlags,
): Promise<ServerTable | undefined> {
  const query = { ...selectors(flags), includeObject: needsObjects(flags) ? 'Metadata' : 'None' };
  try {
    const answer = (
      await cluster.request('GET', pathOf(type, namespace, name, flags), { accept: TABLE_ACCEPT, query })
    ).json();
    return isServerTable(answer) ? answer : namesTable(answer);
  } catch (error) {
    if (name !== undefined && flags.ignoreNotFound === true && isNotFound(error)) {
      return undefined;
    }
    throw error;
  }
}

/** Whether a table needs the namespace, the labels or the resourceVersion of its rows: their metadata are larger than their cells. */
function needsObjects({ allNamespaces, showLabels, watch }: GetFlags): boolean {
  return allNamespaces === true || showLabels === true || watch === true;
}

/** The table for a server that returns objects instead. */
function namesTable(answer: unknown): ServerTable {
  const { items, metadata } = answer as {
    items?: readonly KubernetesObject[];
    metadata?: { resourceVersion?: string };
  };
  return {
    kind: 'Table',
    metadata: metadata ?? {},
    columnDefinitions: [{ name: 'Name' }, { name: 'Created' }],
    rows: (items ?? [answer as KubernetesObject]).map((object) => ({
      cells: [object.metadata.name, object.metadata.creationTimestamp],
      object,
    })),
  };
}

async function watchTable(
  cluster: KubernetesCluster,
  namespace: string,
  type: ApiResource,
  name: string | undefined,
  flags: GetFlags,
  shown: ServerTable | undefined,
): Promise<void> {
  const events = cluster.events(pathOf(type, namespace, undefined, flags), {
    accept: TABLE_ACCEPT,
    query: {
      ...selectors(flags),
      ...(name === undefined ? {} : { fieldSelector: `metadata.name=${name}` }),
      resourceVersion: shown?.metadata?.resourceVersion ?? shown?.rows?.[0]?.object?.metadata.resourceVersion,
      includeObject: 'Metadata',
    },
  });
  for await (const { type: change, object } of events) {
    const changed: unknown = object;
    if (change !== 'BOOKMARK' && isServerTable(changed)) {
      // Only the first table of a watch has column definitions.
      const columnDefinitions = changed.columnDefinitions ?? shown?.columnDefinitions ?? [];
      const row = { ...changed, columnDefinitions };
      process.stdout.write(`${serverTableText(row, { ...tableOptions(type, flags), withHeaders: false })}\n`);
    }
  }
}

function tableOptions(type: ApiResource, flags: GetFlags): Parameters<typeof serverTableText>[1] {
  return {
    wide: flags.output === 'wide',
    withNamespace: flags.allNamespaces === true && type.namespaced,
    withLabels: flags.showLabels === true,
    withHeaders: flags.headers,
    // Programs that read the table, and -o wide, get whole cells; and rows of a watch have the same columns.
    ...(process.stdout.isTTY && flags.output === 'table' && flags.watch !== true ? { maxWidth: terminalWidth() } : {}),
  };
}

function pathOf(type: ApiResource, namespace: string, name: string | undefined, flags: GetFlags): string {
  return resourcePath(type, { ...(flags.allNamespaces === true ? {} : { namespace }), name });
}

function selectors({ selector, fieldSelector }: GetFlags): { labelSelector?: string; fieldSelector?: string } {
  return {
    ...(selector === undefined ? {} : { labelSelector: selector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
  };
}

// Objects -----------------------------------------------------------------------------------------------------------

async function printObjects(
  cluster: KubernetesCluster,
  namespace: string,
  selections: readonly ResourceSelection[],
  flags: GetFlags,
): Promise<void> {
  const unlisted: Unlisted = [];
  const found = await Promise.all(
    selections.map((selection) => objectsOf(cluster, namespace, selection, flags, unlisted)),
  );
  noteUnlisted(unlisted, flags);
  const objects = flags.showManagedFields === true ? found.flat() : found.flat().map(withoutManagedFields);
  if (flags.output === 'name') {
    for (const object of objects) {
      process.stdout.write(`${nameOf(object, selections)}\n`);
    }
    return;
  }
  const isOne = selections.length === 1 && selections[0]?.names.length === 1;
  const result = isOne ? objects[0] : { apiVersion: 'v1', kind: 'List', metadata: {}, items: objects };
  if (result !== undefined) {
    process.stdout.write(dataText(result, flags.output === 'json' ? 'json' : 'yaml', { pretty: true }));
  }
}

function withoutManagedFields(object: KubernetesObject): KubernetesObject {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

async function objectsOf(
  cluster: KubernetesCluster,
  namespace: string,
  { type, names, isOfCategory }: ResourceSelection,
  flags: GetFlags,
  unlisted: Unlisted,
): Promise<readonly KubernetesObject[]> {
  if (names.length === 0) {
    const scope = flags.allNamespaces === true || !type.namespaced ? {} : { namespace };
    const list = listAll(cluster, type, { ...scope, ...selectors(flags) });
    return (await (isOfCategory === true ? unlessForbidden(type, list, unlisted) : list))?.items ?? [];
  }
  const found = await Promise.all(
    names.map(async (name) => {
      try {
        return await cluster.get(type, keyIn(type, namespace, name));
      } catch (error) {
        if (flags.ignoreNotFound === true && isNotFound(error)) {
          return undefined;
        }
        throw error;
      }
    }),
  );
  return found.filter((object) => object !== undefined);
}

function nameOf({ kind, metadata }: KubernetesObject, selections: readonly ResourceSelection[]): string {
  const type = selections.find((selection) => selection.type.kind === kind)?.type ?? { group: '', kind };
  return objectName(type, metadata.name ?? '');
}
