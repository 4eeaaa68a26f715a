// `portcullis events`: the events of a namespace or of an object, oldest first.
import { Command, Option } from 'commander';
import { isForbidden, type KubernetesCluster, listAll, type ObjectList } from '../../cluster/index.ts';
import { ageOf, type KubernetesObject } from '../../resources/index.ts';
import { EVENTS } from '../../runtime/index.ts';
import { errorText } from '../../values/index.ts';
import { CliError, usageError } from '../errors.ts';
import { oneLine, table, withoutHeader } from '../table.ts';
import { addClusterFlags, type ClusterFlags, connect, type Connected } from './cluster-flags.ts';
import { type EventObject, timeOf } from './event.ts';
import { keyIn, selectResources } from './resource-arguments.ts';

interface EventsFlags extends ClusterFlags {
  readonly allNamespaces?: true;
  readonly for?: string;
  readonly types?: 'Normal' | 'Warning';
  readonly watch?: true;
}

/** The events that a command line selects. */
interface EventSelection {
  /** Absent: all namespaces. */
  readonly namespace?: string;
  readonly fieldSelector?: string;
}

/** Events about cluster-scoped objects are in this namespace. */
const CLUSTER_EVENTS_NAMESPACE = 'default';

export function eventsCommand(): Command {
  return addClusterFlags(
    new Command('events')
      .description('show the events of a namespace, or of one object')
      .option('-A, --all-namespaces', 'of all namespaces')
      .option('--for <object>', 'only of this object: TYPE/NAME, or the NAME of a policy')
      .addOption(new Option('--types <type>', 'only of this type').choices(['Normal', 'Warning']))
      .option('-w, --watch', 'go on and show new events'),
  )
    .addHelpText(
      'after',
      `
Examples:
  portcullis events
  portcullis events --for cap/pinned-images
  portcullis events -A --types Warning
  portcullis events --for cap/pinned-images -w`,
    )
    .action(events);
}

async function events(flags: EventsFlags): Promise<void> {
  using connected = await connect(flags);
  const { cluster } = connected;
  const selection = await selectionOf(connected, flags);
  const { items, metadata } = await readEvents(cluster, selection, flags);
  const shown = items
    .filter((event) => isShown(event, flags))
    .toSorted((one, other) => (timeOf(one) < timeOf(other) ? -1 : 1));
  if (shown.length > 0) {
    process.stdout.write(`${eventsTable(shown, flags.allNamespaces === true)}\n`);
  } else if (flags.watch !== true) {
    process.stderr.write('No events found.\n');
  }
  if (flags.watch === true) {
    const { resourceVersion } = metadata;
    const changes = cluster.watch<EventObject>(EVENTS, {
      ...selection,
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    });
    for await (const { type, object } of changes) {
      if ((type === 'ADDED' || type === 'MODIFIED') && isShown(object, flags)) {
        process.stdout.write(`${withoutHeader(eventsTable([object], flags.allNamespaces === true))}\n`);
      }
    }
  }
}

/** @throws CliError that names what shows the same without events, when the user may not list them */
async function readEvents(
  cluster: KubernetesCluster,
  selection: EventSelection,
  flags: EventsFlags,
): Promise<ObjectList<EventObject>> {
  try {
    return await listAll<EventObject>(cluster, EVENTS, selection);
  } catch (error) {
    if (!isForbidden(error)) {
      throw error;
    }
    const command = flags.for === undefined ? 'get -o wide' : `describe ${flags.for}`;
    const hint = `The status of a policy has its last reason and message, without the right to list events: portcullis ${command}`;
    throw new CliError(errorText(error), { hint, cause: error });
  }
}

function isShown({ type }: EventObject, { types }: EventsFlags): boolean {
  return types === undefined || type === types;
}

async function selectionOf(connected: Connected, flags: EventsFlags): Promise<EventSelection> {
  if (flags.for === undefined) {
    return flags.allNamespaces === true ? {} : { namespace: connected.namespace };
  }
  const { metadata } = await objectOf(connected, flags.for);
  return {
    namespace: metadata.namespace ?? CLUSTER_EVENTS_NAMESPACE,
    fieldSelector: `involvedObject.uid=${metadata.uid ?? ''}`,
  };
}

async function objectOf({ cluster, namespace }: Connected, word: string): Promise<KubernetesObject> {
  const [selection] = await selectResources(cluster, [word], { namespace });
  const [name] = selection?.names ?? [];
  if (selection === undefined || name === undefined) {
    throw usageError(`--for ${word}: expected one object`, 'Name it as TYPE/NAME, such as cap/pinned-images.');
  }
  return await cluster.get(selection.type, keyIn(selection.type, namespace, name));
}

function eventsTable(shown: readonly EventObject[], withNamespace: boolean): string {
  const now = Date.now();
  return table<EventObject>(
    [
      ...(withNamespace
        ? [{ header: 'NAMESPACE', cell: ({ metadata }: EventObject) => oneLine(metadata.namespace ?? '') }]
        : []),
      { header: 'LAST SEEN', cell: (event) => ageOf(timeOf(event), now) },
      { header: 'TYPE', cell: ({ type = '' }) => oneLine(type) },
      { header: 'REASON', cell: ({ reason = '' }) => oneLine(reason) },
      {
        header: 'OBJECT',
        cell: ({ involvedObject: { kind = '', name = '' } = {} }) => oneLine(`${kind}/${name}`),
      },
      { header: 'MESSAGE', cell: ({ message = '' }) => oneLine(message) },
    ],
    shown,
  );
}
