// `portcullis delete`: deletes objects and waits until they are gone.
import { Command, Option } from 'commander';
import { ApiError, type ApiResource, type Cluster, type DeleteOptions } from '../../cluster/index.ts';
import { usageError } from '../errors.ts';
import { readObjects } from './apply-files.ts';
import { addClusterFlags, type ClusterFlags, connect } from './cluster-flags.ts';
import { durationMs } from './duration.ts';
import { keyIn, objectName, selectResources } from './resource-arguments.ts';
import { waitUntilGone } from './wait-for.ts';

interface DeleteFlags extends ClusterFlags {
  readonly filename?: readonly string[];
  readonly recursive?: true;
  readonly selector?: string;
  readonly all?: true;
  readonly ignoreNotFound?: true;
  readonly cascade: 'background' | 'foreground' | 'orphan';
  readonly dryRun?: true;
  readonly wait: boolean;
  readonly timeout: string;
}

interface Target {
  readonly type: ApiResource;
  readonly key: { readonly namespace?: string; readonly name: string };
}

const PROPAGATION = { background: 'Background', foreground: 'Foreground', orphan: 'Orphan' } as const;

export function deleteCommand(): Command {
  return addClusterFlags(
    new Command('delete')
      .description('delete objects of a cluster')
      .argument('[resources...]', 'TYPE NAME…, or TYPE/NAME…')
      .option('-f, --filename <file...>', 'delete what manifests name: files, folders, or - for standard input')
      .option('-R, --recursive', 'look into the folders of folders')
      .option('-l, --selector <selector>', 'delete the objects with these labels')
      .option('--all', 'delete all objects of the type in the namespace')
      .option('--ignore-not-found', 'objects that are not there are no error')
      .addOption(
        new Option('--cascade <how>', 'what happens to objects that belong to it')
          .choices(['background', 'foreground', 'orphan'])
          .default('background'),
      )
      .option('--dry-run', 'let the server do everything except deleting')
      .option('--no-wait', 'do not wait until the objects are gone')
      .option('--timeout <duration>', 'how long to wait for it, such as 30s or 5m', '1m'),
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
  using connected = await connect(flags);
  const { cluster, namespace } = connected;
  const targets =
    flags.filename === undefined
      ? await selected(cluster, namespace, resources, flags)
      : await declared(cluster, namespace, flags.filename, flags.recursive === true);
  const options: DeleteOptions = { propagationPolicy: PROPAGATION[flags.cascade], dryRun: flags.dryRun === true };
  const deleted: Target[] = [];
  for (const target of targets) {
    try {
      await cluster.delete(target.type, target.key, options);
    } catch (error) {
      if (error instanceof ApiError && error.code === 404 && flags.ignoreNotFound === true) {
        continue;
      }
      throw error;
    }
    deleted.push(target);
    const dryRun = flags.dryRun === true ? ' (dry run)' : '';
    process.stdout.write(`${objectName(target.type, target.key.name)} deleted${dryRun}\n`);
  }
  if (flags.wait && flags.dryRun !== true) {
    const deadline = AbortSignal.timeout(timeoutMs);
    for (const { type, key } of deleted) {
      await waitUntilGone(cluster, type, key, deadline);
    }
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

/** In reverse, so that a definition of a kind is deleted after the objects of the kind. */
async function declared(
  cluster: Cluster,
  namespace: string,
  paths: readonly string[],
  recursive: boolean,
): Promise<readonly Target[]> {
  const targets: Target[] = [];
  for (const { apiVersion, kind, metadata } of await readObjects(paths, recursive)) {
    const type = await cluster.discovery.find(apiVersion, kind);
    if (type !== undefined) {
      targets.push({ type, key: keyIn(type, metadata.namespace ?? namespace, metadata.name ?? '') });
    }
  }
  return targets.toReversed();
}
