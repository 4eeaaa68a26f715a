// `portcullis patch`: changes fields of an object.
import { Command, Option } from 'commander';
import type { ApiResource, Patch } from '../../cluster/index.ts';
import { apiVersionOf, kubernetesKind, type KubernetesObject } from '../../resources/index.ts';
import { isJsonObject, type JsonValue } from '../../values/index.ts';
import { parseDocument, readDocument } from '../document.ts';
import { usageError } from '../errors.ts';
import { oneLine } from '../table.ts';
import { addClusterFlags, type ClusterFlags, connect } from './cluster-flags.ts';
import { type DryRunMode, dryRunOption, dryRunText } from './dry-run-flag.ts';
import { keyIn, objectName, selectResources } from './resource-arguments.ts';

interface PatchFlags extends ClusterFlags {
  readonly patch?: string;
  readonly patchFile?: string;
  readonly type?: PatchType;
  readonly subresource?: string;
  readonly dryRun: DryRunMode;
}

type PatchType = Exclude<Patch['type'], 'apply'>;

export function patchCommand(): Command {
  return addClusterFlags(
    new Command('patch')
      .description('change fields of an object')
      .argument('<resources...>', 'TYPE NAME, TYPE/NAME, or the NAME of a policy')
      .option('-p, --patch <text>', 'the patch, as JSON or YAML')
      .option('--patch-file <file>', 'file with the patch, or - for standard input')
      .addOption(
        new Option(
          '--type <type>',
          'type of the patch (default: strategic for kinds of Kubernetes, merge for others)',
        ).choices(['json', 'merge', 'strategic']),
      )
      .option('--subresource <name>', 'patch this part, such as status or scale')
      .addOption(dryRunOption()),
  )
    .addHelpText(
      'after',
      `
Examples:
  portcullis patch cap pinned-images -p '{"spec":{"mode":"monitor"}}'
  portcullis patch deployment web --subresource=status --type=merge -p '{"status":{"readyReplicas":1}}'
  portcullis patch cm/one --type=json -p '[{"op":"remove","path":"/data/key"}]' --dry-run=server`,
    )
    .action(patch);
}

async function patch(resources: readonly string[], flags: PatchFlags): Promise<void> {
  const value = await patchValue(flags);
  using connected = await connect(flags);
  const { cluster, namespace } = connected;
  const [selection, ...more] = await selectResources(cluster, resources, { namespace });
  const [name, ...others] = selection?.names ?? [];
  if (selection === undefined || name === undefined || more.length > 0 || others.length > 0) {
    throw usageError('expected one object', 'Name it as TYPE NAME or TYPE/NAME, such as cap/pinned-images.');
  }
  const { type } = selection;
  const key = keyIn(type, namespace, name);
  const body = patchOf(value, flags.type ?? defaultType(type));
  const before = await cluster.get(type, key);
  const after =
    flags.dryRun === 'client'
      ? undefined
      : await cluster.patch(type, key, body, {
          dryRun: flags.dryRun === 'server',
          ...(flags.subresource === undefined ? {} : { subresource: flags.subresource }),
          onWarning: (text) => process.stderr.write(`Warning: ${oneLine(text)}\n`),
        });
  const outcome =
    flags.dryRun === 'none' && after !== undefined && versionOf(after) === versionOf(before)
      ? 'patched (no change)'
      : 'patched';
  process.stdout.write(`${objectName(type, name)} ${outcome}${dryRunText(flags.dryRun)}\n`);
}

function versionOf({ metadata }: KubernetesObject): string | undefined {
  return metadata.resourceVersion;
}

/** API servers know how lists merge for their own kinds only. */
function defaultType(type: ApiResource): PatchType {
  return kubernetesKind(apiVersionOf(type), type.kind) === undefined ? 'merge' : 'strategic';
}

/** @throws CliError */
async function patchValue({ patch: text, patchFile }: PatchFlags): Promise<JsonValue | undefined> {
  if ((text === undefined) === (patchFile === undefined)) {
    throw usageError('expected either -p PATCH or --patch-file FILE');
  }
  const { value } = text === undefined ? await readDocument(patchFile ?? '') : parseDocument(text, '--patch');
  // Documents are parsed from JSON or YAML.
  return value as JsonValue | undefined;
}

/** @throws CliError when the value has not the form of the type */
function patchOf(value: JsonValue | undefined, type: PatchType): Patch {
  if (type === 'json') {
    if (!Array.isArray(value)) {
      throw usageError('expected a list of operations, as --type is json');
    }
    return { type, body: value };
  }
  if (!isJsonObject(value)) {
    throw usageError(`expected a mapping with the fields to change, as the type of the patch is ${type}`);
  }
  return { type, body: value };
}
