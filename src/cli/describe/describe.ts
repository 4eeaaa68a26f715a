// `portcullis describe`: metadata, spec, status, conditions and events of an object.
import { Command } from 'commander';
import { ApiError, type ApiResource, type Cluster, listAll } from '../../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  ageOf,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  knownKind,
  type KubernetesObject,
  LAST_APPLIED_ANNOTATION,
} from '../../resources/index.ts';
import { dataText } from '../output.ts';
import { PRODUCT_NAMESPACE } from '../product-namespace.ts';
import {
  type HistoryRow,
  historyRows,
  listedRevisions,
  listedRows,
  listRevisions,
} from '../../rollout/history/index.ts';
import { historyTable } from '../rollout/history-table.ts';
import { hasRollout } from '../rollout/rollout-target.ts';
import { oneLine, table } from '../table.ts';
import { styled, withoutControls } from '../../values/index.ts';
import { addClusterFlags, type ClusterFlags, connect } from '../cluster/cluster-flags.ts';
import { type EventObject, timeOf } from '../cluster/event.ts';
import { keyIn, selectResources } from '../cluster/resource-arguments.ts';

/** Width of headings. */
const LABEL_WIDTH = 14;
const EVENTS = knownKind('v1', 'Event');

export function describeCommand(): Command {
  return addClusterFlags(
    new Command('describe')
      .description('show objects in detail, with conditions and events')
      .argument('<resources...>', 'TYPE [NAME…], or TYPE/NAME…'),
  )
    .addHelpText(
      'after',
      `
Examples:
  portcullis describe cap pinned-images
  portcullis describe pod/web -n shop`,
    )
    .action(describe);
}

async function describe(resources: readonly string[], flags: ClusterFlags): Promise<void> {
  using connected = await connect(flags);
  const { cluster, namespace } = connected;
  let isFirst = true;
  for (const { type, names } of await selectResources(cluster, resources, { namespace })) {
    const objects =
      names.length === 0
        ? (await listAll(cluster, type, type.namespaced ? { namespace } : {})).items
        : await Promise.all(names.map((name) => cluster.get(type, keyIn(type, namespace, name))));
    for (const object of objects) {
      const [events, revisions] = await Promise.all([eventsOf(cluster, object), revisionLines(cluster, type, object)]);
      process.stdout.write(`${isFirst ? '' : '\n\n'}${description(object, revisions, events)}`);
      isFirst = false;
    }
  }
}

/** The events of an object, oldest first; undefined when reading them is forbidden. */
async function eventsOf(cluster: Cluster, object: KubernetesObject): Promise<readonly EventObject[] | undefined> {
  try {
    const { items } = await cluster.list(EVENTS, {
      // Events about cluster-scoped objects are in namespace default.
      namespace: object.metadata.namespace ?? 'default',
      fieldSelector: `involvedObject.uid=${object.metadata.uid ?? ''}`,
    });
    return (items as readonly EventObject[]).toSorted((one, other) => (timeOf(one) < timeOf(other) ? -1 : 1));
  } catch (error) {
    if (error instanceof ApiError) {
      return undefined;
    }
    throw error;
  }
}

/** The revisions of a policy; those of its status when reading them is forbidden. */
async function revisionLines(cluster: Cluster, type: ApiResource, object: KubernetesObject): Promise<string[]> {
  if (!hasRollout(type)) {
    return [];
  }
  // Validated by the schema of the kind.
  const policy = object as AdmissionPolicyObject;
  const rows = await historyRowsOf(cluster, policy);
  return rows.length === 0
    ? []
    : [styled('bold', 'Revisions:'), ...historyTable(policy, rows).replaceAll(/^/gm, '  ').split('\n')];
}

async function historyRowsOf(cluster: Cluster, policy: AdmissionPolicyObject): Promise<readonly HistoryRow[]> {
  try {
    return historyRows(await listRevisions(cluster, policy, PRODUCT_NAMESPACE));
  } catch (error) {
    if (error instanceof ApiError) {
      return listedRows(listedRevisions(policy));
    }
    throw error;
  }
}

function description(
  object: KubernetesObject,
  revisions: readonly string[],
  events: readonly EventObject[] | undefined,
): string {
  const { apiVersion, kind, metadata, status, ...rest } = object;
  const lines = [
    field('Name', metadata.name ?? ''),
    ...(metadata.namespace === undefined ? [] : [field('Namespace', metadata.namespace)]),
    field('Kind', `${kind} (${apiVersion})`),
    field('Created', metadata.creationTimestamp ?? '<unknown>'),
    ...(metadata.deletionTimestamp === undefined
      ? []
      : [field('Deleting', `since ${metadata.deletionTimestamp}, held by ${(metadata.finalizers ?? []).join(', ')}`)]),
    ...map('Labels', metadata.labels),
    ...map('Annotations', metadata.annotations),
    ...owners(metadata.ownerReferences),
  ];
  for (const [key, value] of Object.entries(rest)) {
    lines.push(...section(key, value));
  }
  if (isJsonObject(status)) {
    const { conditions, ...others } = withoutRevisions(status, revisions);
    if (Object.keys(others).length > 0) {
      lines.push(...section('status', others));
    }
    lines.push(...conditionLines(conditions));
  }
  lines.push(...revisions, ...eventLines(events));
  return `${lines.join('\n')}\n`;
}

/** The status without what a table shows. */
function withoutRevisions(status: JsonObject, table: readonly string[]): JsonObject {
  const { revisions: _, ...others } = status;
  return table.length === 0 ? status : others;
}

function field(name: string, value: string): string {
  return `${styled('bold', `${name}:`)}${' '.repeat(Math.max(1, LABEL_WIDTH - name.length - 1))}${oneLine(value)}`;
}

function map(name: string, entries: Readonly<Record<string, string>> | undefined): string[] {
  const shown = Object.entries(entries ?? {})
    // Client-side apply of kubectl stores a copy of the object there.
    .filter(([key]) => key !== LAST_APPLIED_ANNOTATION)
    .map(([key, value]) => `${key}=${oneLine(value, 120)}`);
  const [first = '<none>', ...others] = shown;
  return [field(name, first), ...others.map((text) => `${' '.repeat(LABEL_WIDTH)}${oneLine(text)}`)];
}

function owners(references: KubernetesObject['metadata']['ownerReferences']): string[] {
  return (references ?? []).map(({ kind, name, controller }) =>
    field(controller === true ? 'Controlled by' : 'Owner', `${kind}/${name}`),
  );
}

function section(name: string, value: unknown): string[] {
  const shown = oneLine(name);
  const title = styled('bold', `${shown.slice(0, 1).toUpperCase()}${shown.slice(1)}:`);
  if (typeof value !== 'object' || value === null) {
    return [`${title} ${oneLine(String(value))}`];
  }
  const text = dataText(value, 'yaml').trimEnd();
  return [title, ...text.split('\n').map((line) => `  ${withoutControls(line)}`)];
}

function conditionLines(conditions: unknown): string[] {
  // Other kinds may have any value there.
  const shown = Array.isArray(conditions) ? conditions.filter(isJsonObject) : [];
  if (shown.length === 0) {
    return [];
  }
  const now = Date.now();
  const text = table<JsonObject>(
    [
      { header: 'TYPE', cell: ({ type }) => scalarText(type) },
      { header: 'STATUS', cell: ({ status }) => scalarText(status) },
      { header: 'SINCE', cell: ({ lastTransitionTime }) => ageOf(scalarText(lastTransitionTime), now) },
      { header: 'REASON', cell: ({ reason }) => scalarText(reason) },
      { header: 'MESSAGE', cell: ({ message }) => scalarText(message) },
    ],
    shown,
  );
  return [styled('bold', 'Conditions:'), ...text.split('\n').map((line) => `  ${line}`)];
}

function scalarText(value: JsonValue | undefined): string {
  return typeof value === 'object' || value === undefined ? '' : oneLine(String(value));
}

function eventLines(events: readonly EventObject[] | undefined): string[] {
  if (events === undefined || events.length === 0) {
    return [field('Events', events === undefined ? '<not readable>' : '<none>')];
  }
  const now = Date.now();
  const text = table<EventObject>(
    [
      { header: 'TYPE', cell: ({ type = '' }) => oneLine(type) },
      { header: 'REASON', cell: ({ reason = '' }) => oneLine(reason) },
      {
        header: 'AGE',
        cell: (event) => `${ageOf(timeOf(event), now)}${(event.count ?? 1) > 1 ? ` (x${event.count ?? 1})` : ''}`,
      },
      {
        header: 'FROM',
        cell: ({ source, reportingComponent }) => oneLine(source?.component ?? reportingComponent ?? ''),
      },
      { header: 'MESSAGE', cell: ({ message = '' }) => oneLine(message) },
    ],
    events,
  );
  return [styled('bold', 'Events:'), ...text.split('\n').map((line) => `  ${line}`)];
}
