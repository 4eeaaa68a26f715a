// `portcullis delete`: deletes objects and waits until they are gone.
import { Command, Option } from 'commander';
import { ApiError, type ApiResource, type Cluster, type DeleteOptions } from '../../cluster/index.ts';
import { CliError, usageError } from '../errors.ts';
import { manyLines } from '../table.ts';
import { readObjects } from './apply-files.ts';
import { addClusterFlags, type ClusterFlags, connect, type Connected } from './cluster-flags.ts';
import { durationMs } from './duration.ts';
import { type DryRunMode, dryRunOption, dryRunText } from './dry-run-flag.ts';
import { keyIn, keyOfManifest, objectName, selectResources } from './resource-arguments.ts';
import { waitUntilGone } from './wait-for.ts';

interface DeleteFlags extends ClusterFlags {
  readonly filename?: readonly string[];
  readonly recursive?: true;
  readonly selector?: string;
  readonly all?: true;
  readonly ignoreNotFound?: true;
  readonly cascade: 'background' | 'foreground' | 'orphan';
  readonly dryRun: DryRunMode;
  readonly wait: boolean;
  readonly timeout: string;
}

interface Target {
  readonly type: ApiResource;
  readonly key: { readonly namespace?: string; readonly name: string };
}

/** A deleted object that waits for its finalizers. */
interface Held extends Target {
  readonly uid: string | undefined;
}

const PROPAGATION = { background: 'Background', foreground: 'Foreground', orphan: 'Orphan' } as const;

export function deleteCommand(): Command {
  return addClusterFlags(
    new Command('delete')
      .description('delete objects of a cluster')
      .argument('[resources...]', 'TYPE NAME…, or TYPE/NAME…')
      .option('-f, --filename <file...>', 'delete the objects of manifests: files, folders, or - for standard input')
      .option('-R, --recursive', 'include subfolders')
      .option('-l, --selector <selector>', 'delete the objects with these labels')
      .option('--all', 'delete all objects of the type in the namespace')
      .option('--ignore-not-found', 'do not fail when an object does not exist')
      .addOption(
        new Option('--cascade <how>', 'deletion of dependent objects')
          .choices(['background', 'foreground', 'orphan'])
          .default('background'),
      )
      .addOption(dryRunOption())
      .option('--no-wait', 'do not wait until the objects are deleted')
      .option('--timeout <duration>', 'timeout of that wait, such as 30s or 5m', '1m'),
  )
    .addHelpText(
      'after',
      `
Examples:
  portcullis delete cap pinned-images
  portcullis delete -f examples/pinned-images/policy.yaml --ignore-not-found
  portcullis delete pods -l app=web -n shop`,
    )
    .action(remove);
}

async function remove(resources: readonly string[], flags: DeleteFlags): Promise<void> {
  const timeoutMs = durationMs(flags.timeout, '--timeout');
  if (flags.filename !== undefined && resources.length > 0) {
    throw usageError('expected either -f, or types and names of objects', 'Nothing was deleted.');
  }
  using connected = await connect(flags);
  const { cluster, namespace } = connected;
  const targets =
    flags.filename === undefined
      ? await selected(cluster, namespace, resources, flags)
      : await declared(connected, flags.filename, flags);
  const held: Held[] = [];
  const failures: ApiError[] = [];
  for (const target of targets) {
    try {
      held.push(...(await removeOne(cluster, target, flags)));
    } catch (error) {
      if (!(error instanceof ApiError)) {
        throw error;
      }
      if (error.code !== 404 || flags.ignoreNotFound !== true) {
        failures.push(error);
      }
    }
  }
  if (flags.wait && flags.dryRun === 'none') {
    await waitForAll(cluster, held, AbortSignal.timeout(timeoutMs), flags.timeout);
  }
  report(failures, targets.length);
}

/** Undefined, or the object with its remaining finalizers. */
async function removeOne(cluster: Cluster, { type, key }: Target, flags: DeleteFlags): Promise<readonly Held[]> {
  const options: DeleteOptions = { propagationPolicy: PROPAGATION[flags.cascade], dryRun: flags.dryRun === 'server' };
  const left = flags.dryRun === 'client' ? await cluster.get(type, key) : await cluster.delete(type, key, options);
  process.stdout.write(`${objectName(type, key.name)} deleted${dryRunText(flags.dryRun)}\n`);
  return left === undefined ? [] : [{ type, key, uid: left.metadata.uid }];
}

async function waitForAll(
  cluster: Cluster,
  held: readonly Held[],
  deadline: AbortSignal,
  timeout: string,
): Promise<void> {
  for (const { type, key, uid } of held) {
    try {
      await waitUntilGone(cluster, type, key, deadline, uid);
    } catch (error) {
      if (!deadline.aborted) {
        throw error;
      }
      const name = objectName(type, key.name);
      throw new CliError(`${name} is not gone after ${timeout}: its finalizers have to be removed first`, {
        hint: 'It goes when they do. describe shows what holds it; --no-wait does not wait.',
        cause: error,
      });
    }
  }
}

function report(failures: readonly ApiError[], attempts: number): void {
  const [first] = failures;
  if (first !== undefined && attempts === 1) {
    throw first;
  }
  for (const { message } of failures) {
    process.stderr.write(`error: ${manyLines(message)}\n`);
  }
  if (failures.length > 0) {
    throw new CliError(`${failures.length} of ${attempts} objects could not be deleted`);
  }
}

async function selected(
  cluster: Cluster,
  namespace: string,
  resources: readonly string[],
  flags: DeleteFlags,
): Promise<readonly Target[]> {
  const targets: Target[] = [];
  for (const { type, names } of await selectResources(cluster, resources)) {
    if (names.length === 0 && flags.selector === undefined && flags.all !== true) {
      throw usageError(`${type.resource}: expected names, a selector or --all`, 'Nothing was deleted.');
    }
    if (names.length > 0 && flags.selector !== undefined) {
      throw usageError(`${type.resource}: expected names or a selector, got both`, 'Nothing was deleted.');
    }
    const chosen =
      names.length > 0
        ? names
        : (
            await cluster.list(type, {
              ...(type.namespaced ? { namespace } : {}),
              ...(flags.selector === undefined ? {} : { labelSelector: flags.selector }),
            })
          ).items.map(({ metadata }) => metadata.name ?? '');
    targets.push(...chosen.map((name) => ({ type, key: keyIn(type, namespace, name) })));
  }
  return targets;
}

/**
 * In reverse order, so that a CustomResourceDefinition is deleted after its objects.
 * @throws CliError when the server has no such kind
 */
async function declared(
  connected: Connected,
  paths: readonly string[],
  { recursive, ignoreNotFound }: DeleteFlags,
): Promise<readonly Target[]> {
  const targets: Target[] = [];
  for (const object of await readObjects(paths, recursive === true)) {
    const { apiVersion, kind } = object;
    const type = await connected.cluster.discovery.find(apiVersion, kind);
    if (type !== undefined) {
      targets.push({ type, key: keyOfManifest(type, object, connected) });
    } else if (ignoreNotFound !== true) {
      throw new CliError(`the server has no kind ${kind} in ${apiVersion}`, {
        hint: 'Nothing was deleted. With --ignore-not-found, objects of kinds that are not there are no error.',
      });
    }
  }
  return targets.toReversed();
}
