// `portcullis rm`: removes modules from the cache of the user.
import { Command } from 'commander';
import { type CachedModule, parseReference } from '../../modules/index.ts';
import { CliError } from '../errors.ts';
import { moduleCache } from './module-cache.ts';

const DIGEST_PREFIX = /^(?:sha256:)?([0-9a-f]{1,64})$/;

export function rmCommand(): Command {
  return new Command('rm')
    .description('remove a module from the cache')
    .argument('<module>', 'its reference, or the first digits of its digest, as "policies" prints them')
    .addHelpText(
      'after',
      `
Examples:
  portcullis rm registry://ghcr.io/kubewarden/policies/pod-privileged:v1.0.8
  portcullis rm sha256:1f0c`,
    )
    .action(rm);
}

async function rm(target: string): Promise<void> {
  const cache = moduleCache();
  const isNamed = namedBy(target);
  const removed = (await cache.list()).filter(isNamed);
  const digests = [...new Set(removed.map(({ digest }) => digest))];
  if (digests.length === 0) {
    throw new CliError(`${target} is not in the cache`, { hint: '"portcullis policies" lists what is.' });
  }
  if (digests.length > 1) {
    throw new CliError(`${target} is the beginning of ${digests.length} digests: expected more digits`, {
      hint: `They are ${digests.join(', ')}.`,
    });
  }
  await cache.remove(isNamed);
  process.stdout.write(removed.map(({ shown, digest }) => `Removed ${shown}: ${digest}\n`).join(''));
}

/** @throws ModuleError for what is neither a digest nor a reference */
function namedBy(target: string): (module: Omit<CachedModule, 'size'>) => boolean {
  const digits = DIGEST_PREFIX.exec(target)?.[1];
  if (digits !== undefined) {
    return ({ digest }) => digest.startsWith(`sha256:${digits}`);
  }
  const reference = parseReference(target);
  const named = reference.kind === 'registry' ? reference.manifest : undefined;
  return ({ shown, manifest }) => shown === reference.shown && (named === undefined || named === manifest);
}
