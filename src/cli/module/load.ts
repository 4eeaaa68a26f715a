// `portcullis load`: copies the modules of a tarball into the cache of the user.
import { Command } from 'commander';
import { ModuleStore } from '../../modules/index.ts';
import { LARGEST_MODULE_BYTES } from '../../modules/sources/index.ts';
import { CliError } from '../errors.ts';
import { sizeText } from '../output.ts';
import { Progress } from '../progress.ts';
import { moduleCacheFolder } from './module-cache.ts';

export function loadCommand(): Command {
  return new Command('load')
    .description('copy the modules of a tarball into the cache')
    .requiredOption('--input <file>', 'a tarball of "save", or another one with an OCI layout')
    .addHelpText(
      'after',
      `
Later commands find the modules in the cache by their references, also without network.

Example:
  portcullis load --input policies.tar`,
    )
    .action(load);
}

async function load({ input }: { readonly input: string }): Promise<void> {
  const store = new ModuleStore({ cacheDir: moduleCacheFolder(), maxModuleBytes: LARGEST_MODULE_BYTES });
  const lines: string[] = [];
  await new Progress().during(`loading ${input}`, async (update) => {
    for await (const { url, digest, manifest, bytes } of store.load(input)) {
      lines.push(`Loaded ${url}: ${sizeText(bytes.length)}, ${digest}, manifest ${manifest}\n`);
      update(`loading ${input}: ${lines.length} loaded`);
    }
  });
  process.stdout.write(lines.join(''));
  if (lines.length === 0) {
    throw new CliError(`${input} names no policy`, {
      hint: 'Expected is an OCI layout whose index.json names artifacts as HOST/REPOSITORY:TAG (org.opencontainers.image.ref.name).',
    });
  }
}
