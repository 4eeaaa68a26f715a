// `portcullis pull`: downloads a module into the cache of the user, or to a file.
import { Command } from 'commander';
import { usageError } from '../errors.ts';
import { sizeText } from '../output.ts';
import { Progress } from '../progress.ts';
import { replaceFile } from '../replace-file.ts';
import { readModule, targetReference } from './module-source.ts';
import { readSources } from './read-sources.ts';
import { addSignatureFlags, readSignatureFlags, type SignatureFlags } from './signature-flags.ts';
import { addSourceFlags, type SourceFlags } from './source-flags.ts';

interface PullFlags extends SignatureFlags, SourceFlags {
  readonly outputPath?: string;
}

export function pullCommand(): Command {
  const command = new Command('pull')
    .description('download a module into the cache, for later commands without network')
    .argument('<reference>', 'registry://HOST/REPOSITORY:TAG, https://…; may end in @sha256:…')
    .option('-o, --output-path <file>', 'write the module to this file as well');
  return addSourceFlags(addSignatureFlags(command))
    .addHelpText(
      'after',
      `
Examples:
  portcullis pull registry://ghcr.io/kubewarden/policies/pod-privileged:v1.0.8
  portcullis pull registry://ghcr.io/kubewarden/policies/pod-privileged:v1.0.8 -o policy.wasm`,
    )
    .action(pull);
}

async function pull(target: string, flags: PullFlags): Promise<void> {
  const reference = targetReference(target);
  if (reference.kind === 'file') {
    throw usageError(`${target} is a file already`, 'Name a module in a registry, or on a web server.');
  }
  const [sources, verification] = await Promise.all([readSources(flags), readSignatureFlags(flags)]);
  const options = { progress: new Progress(), baseDir: process.cwd(), sources, verification, isFromSource: true };
  const module = await readModule(reference, options);
  if (flags.outputPath !== undefined) {
    await replaceFile(flags.outputPath, module.bytes);
  }
  const manifest = module.manifest === undefined ? '' : `, manifest ${module.manifest}`;
  const where = flags.outputPath === undefined ? '' : ` to ${flags.outputPath}`;
  process.stdout.write(
    `Pulled ${module.location}${where}: ${sizeText(module.bytes.length)}, ${module.digest}${manifest}\n`,
  );
}
