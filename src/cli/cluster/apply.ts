// `portcullis apply`: server-side apply of manifests.
import { Command } from 'commander';
import { ApiError, unlessGone } from '../../cluster/index.ts';
import { apiVersionOf, type KubernetesObject, OWN_KINDS } from '../../resources/index.ts';
import { CliError } from '../errors.ts';
import { manyLines, oneLine } from '../table.ts';
import { fieldPathOf } from '../field-path.ts';
import { placedMessage } from '../policy/placed-manifests.ts';
import { unknownFieldHint } from '../policy/unknown-field-hint.ts';
import { type PlacedObject, readPlacedObjects } from './apply-files.ts';
import { applyObject } from './apply-object.ts';
import { addClusterFlags, type ClusterFlags, connect, type Connected } from './cluster-flags.ts';
import { type DryRunMode, dryRunOption, dryRunText } from './dry-run-flag.ts';
import { refusedFields } from './refused-fields.ts';
import { keyOfManifest, objectName, unknownKind } from './resource-arguments.ts';

interface ApplyFlags extends ClusterFlags {
  readonly filename: readonly string[];
  readonly recursive?: true;
  readonly dryRun: DryRunMode;
  readonly forceConflicts?: true;
  readonly fieldManager: string;
}

export function applyCommand(): Command {
  return addClusterFlags(
    new Command('apply')
      .description('apply manifests to a cluster (server-side apply)')
      .requiredOption('-f, --filename <file...>', 'manifests: files, folders, or - for standard input')
      .option('-R, --recursive', 'include subfolders')
      .addOption(dryRunOption())
      .option('--force-conflicts', 'take over fields of other managers')
      .option('--field-manager <name>', 'field manager of the applied fields', 'portcullis'),
  )
    .addHelpText(
      'after',
      `
Examples:
  portcullis apply -f examples/pinned-images/policy.yaml
  portcullis apply -f policies/ -R --dry-run=server
  cat policy.yaml | portcullis apply -f -`,
    )
    .action(apply);
}

async function apply(flags: ApplyFlags): Promise<void> {
  const objects = await readPlacedObjects(flags.filename, flags.recursive === true);
  using connected = await connect(flags);
  let failed = 0;
  for (const one of objects) {
    try {
      process.stdout.write(`${await applyOne(connected, one.object, flags)}\n`);
    } catch (error) {
      if (!(error instanceof ApiError) && !(error instanceof CliError)) {
        throw error;
      }
      failed += 1;
      process.stderr.write(`error: ${manyLines(refusalText(error, one))}\n`);
    }
  }
  if (failed > 0) {
    throw new CliError(`${failed} of ${objects.length} objects could not be applied`);
  }
}

/** Why an object was not applied, at the line of the first field that an API server names. */
function refusalText(error: ApiError | CliError, { object, placed }: PlacedObject): string {
  const [refused] = error instanceof ApiError ? refusedFields(error) : [];
  const kind = OWN_KINDS.find((one) => one.kind === object.kind && apiVersionOf(one) === object.apiVersion);
  const hint = refused?.isUnknown === true && kind !== undefined ? unknownFieldHint(refused.field, kind) : '';
  const text = `${oneLine(`${object.kind} ${object.metadata.name ?? ''}`)}: ${error.message}${hint}`;
  return refused === undefined ? text : placedMessage(placed, fieldPathOf(refused.field), text);
}

async function applyOne(connected: Connected, object: KubernetesObject, flags: ApplyFlags): Promise<string> {
  const { cluster } = connected;
  const type = await cluster.discovery.find(object.apiVersion, object.kind);
  if (type === undefined) {
    throw await unknownKind(cluster, object);
  }
  const key = keyOfManifest(type, object, connected);
  const body = { ...object, metadata: { ...object.metadata, ...key } };
  if (flags.dryRun === 'client') {
    const isNew = (await unlessGone(cluster.get(type, key))) === undefined;
    return `${objectName(type, key.name)} ${isNew ? 'created' : 'configured'}${dryRunText('client')}`;
  }
  const { outcome } = await applyObject(cluster, type, body, {
    key,
    fieldManager: flags.fieldManager,
    force: flags.forceConflicts === true,
    dryRun: flags.dryRun === 'server',
    onWarning: (text) => process.stderr.write(`Warning: ${oneLine(text)}\n`),
  });
  return `${objectName(type, key.name)} ${outcome}${dryRunText(flags.dryRun)}`;
}
