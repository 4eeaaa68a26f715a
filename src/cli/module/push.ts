// `portcullis push`: stores a module, or an OCI layout, in a registry, with the flags and the JSON of `kwctl push`.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import { createGuest } from '../../engine/index.ts';
import { loadPolicyModule } from '../../modules/compiling/index.ts';
import {
  type Digest,
  parseReference,
  PROVIDER_CATALOGUE,
  pushLayout,
  pushModule,
  type PushOptions,
  readMetadata,
  type RegistryReference,
  requireProtocol,
} from '../../modules/index.ts';
import type { SourcesConfig } from '../../modules/sources/index.ts';
import { errorText } from '../../values/index.ts';
import { CliError, usageError } from '../errors.ts';
import { isCataloguePath, readCatalogueFiles } from './catalogue-files.ts';
import { dataText } from '../output.ts';
import { Progress } from '../progress.ts';
import { transferLabel } from '../transfer-label.ts';
import { readModule, targetReference } from './module-source.ts';
import { readSources } from './read-sources.ts';
import { addSourceFlags, type SourceFlags } from './source-flags.ts';

/** Length of a digest in progress lines. Characters. */
const SHOWN_DIGEST = 'sha256:'.length + 12;

interface PushFlags extends SourceFlags {
  readonly force?: true;
  readonly output: 'text' | 'json';
}

export function pushCommand(): Command {
  const command = new Command('push')
    .description('store a module, a catalogue of network providers, or an image in a registry')
    .argument(
      '<module>',
      'a file, or a reference (registry://, https://, …); for a catalogue a YAML file, or a folder; for an image an OCI layout',
    )
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
  portcullis push release/image registry://registry.example.com/portcullis:0.1.0
  portcullis push registry://ghcr.io/kubewarden/policies/pod-privileged:v1.0.8 registry://registry.example.com/policies/pod-privileged:v1.0.8`,
    )
    .action(push);
}

async function push(target: string, destination: string, flags: PushFlags): Promise<void> {
  const progress = new Progress();
  const reference = destinationOf(destination);
  const sources = await readSources(flags);
  if (isLayoutPath(target)) {
    await pushLayoutOf(target, reference, sources, flags, progress);
    return;
  }
  const catalogue = await catalogueOf(target);
  if (catalogue !== undefined) {
    await pushContent(reference, catalogue, { sources, annotations: {}, content: PROVIDER_CATALOGUE }, flags, progress);
    return;
  }
  const { bytes } = await readModule(targetReference(target), { progress, baseDir: process.cwd(), sources });
  const annotations = annotationsOf(target, bytes, flags, progress);
  requireLoadable(target, bytes);
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
  const isModule = options.content === undefined;
  if (wasThere && flags.output === 'text') {
    progress.line(
      `note: the registry had the ${isModule ? 'module' : 'catalogue'} already, so only the manifest was sent`,
    );
  }
  writePushed(isModule ? 'Policy' : 'Catalogue', reference, manifest, flags);
}

/** Prints the reference with the digest of what was pushed. */
function writePushed(noun: string, { host, repository }: RegistryReference, manifest: Digest, flags: PushFlags): void {
  const pushed = `registry://${host}/${repository}@${manifest}`;
  process.stdout.write(
    flags.output === 'json' ? dataText({ immutable_ref: pushed }, 'json') : `${noun} successfully pushed: ${pushed}\n`,
  );
}

/** Whether a path is that of an OCI layout: a folder, or a tarball of one. */
function isLayoutPath(path: string): boolean {
  return existsSync(join(path, 'oci-layout')) || (path.endsWith('.tar') && existsSync(path));
}

async function pushLayoutOf(
  path: string,
  reference: RegistryReference,
  sources: SourcesConfig,
  flags: PushFlags,
  progress: Progress,
): Promise<void> {
  const label = `pushing ${reference.shown}`;
  const { manifest, isImage } = await progress.during(label, (update) =>
    pushLayout(reference, path, {
      sources,
      onSent: (digest, sent, total) => update(transferLabel(`${label}: ${digest.slice(0, SHOWN_DIGEST)}`, sent, total)),
    }),
  );
  writePushed(isImage ? 'Image' : 'Artifact', reference, manifest, flags);
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
  if (force !== true) {
    throw new CliError(`${target} has no metadata: expected an annotated policy`, {
      hint: 'Write metadata into it with "portcullis annotate". --force pushes it without.',
    });
  }
  progress.line(`note: ${target} has no metadata; policy servers refuse waPC modules without`);
  return {};
}

/**
 * Does what a policy server does with a module before its first review. Only the protocol of a module without metadata is not
 * required.
 * @throws CliError
 */
function requireLoadable(target: string, bytes: Uint8Array): void {
  try {
    const { compiled, mode, metadata } = loadPolicyModule(bytes);
    if (mode === 'kubewarden-wapc' && metadata !== undefined) {
      requireProtocol(metadata);
    }
    createGuest({ compiled, mode }).start();
  } catch (error) {
    const message = `${target} is not pushed, because no policy server would load it: ${errorText(error)}`;
    throw new CliError(message, { cause: error, hint: 'What "portcullis inspect" accepts can be pushed.' });
  }
}
