// `portcullis events`: the events of a namespace or of an object, oldest first.
import { Command, Option } from 'commander';
import { listAll } from '../../cluster/index.ts';
import { ageOf, type KubernetesObject } from '../../resources/index.ts';
import { EVENTS } from '../../runtime/index.ts';
import { usageError } from '../errors.ts';
import { oneLine, table } from '../table.ts';
import { addClusterFlags, type ClusterFlags, connect, type Connected } from './cluster-flags.ts';
import { type EventObject, timeOf } from './event.ts';
import { keyIn, selectResources } from './resource-arguments.ts';

interface EventsFlags extends ClusterFlags {
  readonly allNamespaces?: true;
  readonly for?: string;
  readonly types?: 'Normal' | 'Warning';
}

/** Events about cluster-scoped objects are in this namespace. */
const CLUSTER_EVENTS_NAMESPACE = 'default';

export function eventsCommand(): Command {
  return addClusterFlags(
    new Command('events')
      .description('show the events of a namespace, or of one object')
      .option('-A, --all-namespaces', 'of all namespaces')
      .option('--for <object>', 'only of this object: TYPE/NAME, or the NAME of a policy')
      .addOption(new Option('--types <type>', 'only of this type').choices(['Normal', 'Warning'])),
  )
    .addHelpText(
      'after',
      `
Examples:
  portcullis events
  portcullis events --for cap/pinned-images
  portcullis events -A --types Warning`,
    )
    .action(events);
}

async function events(flags: EventsFlags): Promise<void> {
  using connected = await connect(flags);
  const shown = await eventsFor(connected, flags);
  const text = shown
    .filter(({ type }) => flags.types === undefined || type === flags.types)
    .toSorted((one, other) => (timeOf(one) < timeOf(other) ? -1 : 1));
  if (text.length === 0) {
    process.stderr.write('No events found.\n');
    return;
  }
  process.stdout.write(`${eventsTable(text, flags.allNamespaces === true)}\n`);
}

async function eventsFor(connected: Connected, flags: EventsFlags): Promise<readonly EventObject[]> {
  const { cluster, namespace } = connected;
  if (flags.for === undefined) {
    return (await listAll(cluster, EVENTS, flags.allNamespaces === true ? {} : { namespace })).items;
  }
  const object = await objectOf(connected, flags.for);
  return (
    await listAll(cluster, EVENTS, {
      namespace: object.metadata.namespace ?? CLUSTER_EVENTS_NAMESPACE,
      fieldSelector: `involvedObject.uid=${object.metadata.uid ?? ''}`,
    })
  ).items;
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
