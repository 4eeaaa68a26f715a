// `portcullis policies`: the modules in the cache of the user.
import { Command } from 'commander';
import type { CachedModule } from '../../modules/index.ts';
import { ageOf } from '../../resources/index.ts';
import { dataText, type OutputFormat, outputOption, sizeText } from '../output.ts';
import { oneLine, table } from '../table.ts';
import { moduleCache } from './module-cache.ts';

/** Digits of a digest in the table, which `rm` accepts. */
const SHORT_DIGEST = 'sha256:'.length + 12;

export function policiesCommand(): Command {
  return new Command('policies')
    .description('list the modules in the cache')
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
Examples:
  portcullis policies
  portcullis policies -o json`,
    )
    .action(policies);
}

async function policies({ output }: { readonly output: OutputFormat }): Promise<void> {
  const modules = await moduleCache().list();
  if (output !== 'table') {
    const rows = modules.map(({ shown, digest, manifest, size, fetchedAt }) => ({
      reference: shown,
      digest,
      manifest: manifest ?? null,
      sizeBytes: size,
      fetchedAt,
    }));
    process.stdout.write(dataText(rows, output, { pretty: true }));
    return;
  }
  if (modules.length === 0) {
    process.stderr.write('The cache is empty. "portcullis pull" and "portcullis load" fill it.\n');
    return;
  }
  const now = Date.now();
  const text = table<CachedModule>(
    [
      { header: 'REFERENCE', cell: ({ shown }) => oneLine(shown) },
      { header: 'DIGEST', cell: ({ digest }) => digest.slice(0, SHORT_DIGEST) },
      { header: 'SIZE', cell: ({ size }) => sizeText(size) },
      { header: 'FETCHED', cell: ({ fetchedAt }) => `${ageOf(fetchedAt, now)} ago` },
    ],
    modules,
  );
  process.stdout.write(`${text}\n`);
}
