// `portcullis push`: stores a module in a registry, with the flags and the JSON of `kwctl push`.
import { Command, Option } from 'commander';
import {
  executionModeOf,
  moduleInterface,
  parseReference,
  PROVIDER_CATALOGUE,
  pushModule,
  type PushOptions,
  readMetadata,
  type RegistryReference,
} from '../../modules/index.ts';
import { CliError, usageError } from '../errors.ts';
import { isCataloguePath, readCatalogueFiles } from '../netpol/catalogue-files.ts';
import { dataText } from '../output.ts';
import { Progress } from '../progress.ts';
import { transferLabel } from '../transfer-label.ts';
import { readModule, targetReference } from './module-source.ts';
import { readSources } from './read-sources.ts';
import { addSourceFlags, type SourceFlags } from './source-flags.ts';

interface PushFlags extends SourceFlags {
  readonly force?: true;
  readonly output: 'text' | 'json';
}

export function pushCommand(): Command {
  const command = new Command('push')
    .description('store a module, or a catalogue of network providers, in a registry')
    .argument('<module>', 'a file, or a reference (registry://, https://, …); for a catalogue a YAML file, or a folder')
    .argument('<destination>', 'registry://HOST/REPOSITORY:TAG')
    .option('-f, --force', 'push a module without metadata as well')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'));
  return addSourceFlags(command)
    .addHelpText(
      'after',
      `
Prints the reference with the digest of the artifact, which no later push changes.

Examples:
  portcullis push policy.wasm registry://registry.example.com/policies/pod-privileged:v1.0.0
  portcullis push catalogue/ registry://registry.example.com/network-providers:v1
  portcullis push registry://ghcr.io/kubewarden/policies/pod-privileged:v1.0.8 registry://registry.example.com/policies/pod-privileged:v1.0.8`,
    )
    .action(push);
}

async function push(target: string, destination: string, flags: PushFlags): Promise<void> {
  const progress = new Progress();
  const reference = destinationOf(destination);
  const sources = await readSources(flags);
  const catalogue = await catalogueOf(target);
  if (catalogue !== undefined) {
    await pushContent(reference, catalogue, { sources, annotations: {}, content: PROVIDER_CATALOGUE }, flags, progress);
    return;
  }
  const { bytes } = await readModule(targetReference(target), { progress, baseDir: process.cwd(), sources });
  const annotations = annotationsOf(target, bytes, flags, progress);
  await pushContent(reference, bytes, { sources, annotations }, flags, progress);
}

async function pushContent(
  reference: RegistryReference,
  bytes: Uint8Array,
  options: PushOptions,
  flags: PushFlags,
  progress: Progress,
): Promise<void> {
  const label = `pushing ${reference.shown}`;
  const { manifest, wasThere } = await progress.during(label, (update) =>
    pushModule(reference, bytes, {
      ...options,
      onSent: (sent, total) => update(transferLabel(label, sent, total)),
    }),
  );
  const pushed = `registry://${reference.host}/${reference.repository}@${manifest}`;
  if (flags.output === 'json') {
    process.stdout.write(dataText({ immutable_ref: pushed }, 'json'));
    return;
  }
  const isModule = options.content === undefined;
  if (wasThere) {
    progress.line(
      `note: the registry had the ${isModule ? 'module' : 'catalogue'} already, so only the manifest was sent`,
    );
  }
  process.stdout.write(`${isModule ? 'Policy' : 'Catalogue'} successfully pushed: ${pushed}\n`);
}

/** The catalogue of a YAML file or a folder, as one text; undefined for a module. @throws CliError which lists its mistakes */
async function catalogueOf(target: string): Promise<Uint8Array | undefined> {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(target) || !isCataloguePath(target)) {
    return undefined;
  }
  const files = await readCatalogueFiles(target);
  const text = files.map((file) => file.text.trimEnd()).join('\n---\n');
  // Loaded only for catalogues.
  const { builtinCatalogue, parseCatalogue } = await import('../../engine/network-policy/index.ts');
  parseCatalogue(text, target, builtinCatalogue());
  return Buffer.from(`${text}\n`);
}

/** @throws CliError, ModuleError */
function destinationOf(destination: string): RegistryReference {
  const reference = parseReference(destination);
  if (reference.kind !== 'registry') {
    throw usageError(`${destination} names no place in a registry`, 'Name one: registry://HOST/REPOSITORY:TAG.');
  }
  if (reference.manifest !== undefined) {
    throw usageError(
      'a push has the digest of what it pushes, so the destination cannot name one',
      'Name a tag: registry://HOST/REPOSITORY:TAG.',
    );
  }
  return reference;
}

/** The annotations of the metadata. Without metadata, they are empty with `--force`, and otherwise it is an error. */
function annotationsOf(
  target: string,
  bytes: Uint8Array,
  { force }: PushFlags,
  progress: Progress,
): Readonly<Record<string, string>> {
  const metadata = readMetadata(bytes);
  if (metadata !== undefined) {
    return metadata.annotations;
  }
  const hint = 'Write metadata into it with "portcullis annotate".';
  if (force !== true) {
    throw new CliError(`${target} has no metadata: expected an annotated policy`, {
      hint: `${hint} --force pushes it without.`,
    });
  }
  try {
    executionModeOf(moduleInterface(bytes), { metadata: undefined });
  } catch (error) {
    throw new CliError(`${target} has no metadata, and does not run without: --force cannot help`, {
      cause: error,
      hint,
    });
  }
  progress.line(`note: ${target} has no metadata; policy servers refuse waPC modules without`);
  return {};
}
