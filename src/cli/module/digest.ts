// `portcullis digest`: the digest that a tag of a registry has now.
import { Command } from 'commander';
import { resolveDigest } from '../../modules/index.ts';
import { usageError } from '../errors.ts';
import { Progress } from '../progress.ts';
import { targetReference } from './module-source.ts';
import { readSources } from './read-sources.ts';
import { addSourceFlags, type SourceFlags } from './source-flags.ts';

export function digestCommand(): Command {
  const command = new Command('digest')
    .description('print a reference with the digest that its tag has now')
    .argument('<reference>', 'registry://HOST/REPOSITORY:TAG');
  return addSourceFlags(command)
    .addHelpText(
      'after',
      `
Example:
  portcullis digest registry://ghcr.io/kubewarden/policies/pod-privileged:v1.0.8`,
    )
    .action(digest);
}

async function digest(target: string, flags: SourceFlags): Promise<void> {
  const reference = targetReference(target);
  if (reference.kind !== 'registry') {
    throw usageError(`${target} names no module in a registry`, 'Name one: registry://HOST/REPOSITORY:TAG.');
  }
  const sources = await readSources(flags);
  const found = await new Progress().during(`resolving ${reference.shown}`, () =>
    resolveDigest(reference, { sources }),
  );
  process.stdout.write(`registry://${reference.host}/${reference.repository}@${found}\n`);
}
