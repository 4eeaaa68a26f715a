// `portcullis save`: writes policies of registries to a tarball, for clusters without network.
import { Command } from 'commander';
import { parseReference, type RegistryReference, saveBundle, type SavedArtifact } from '../../modules/index.ts';
import { usageError } from '../errors.ts';
import { Progress } from '../progress.ts';
import { transferLabel } from '../transfer-label.ts';
import { readSources } from './read-sources.ts';
import { addSourceFlags, type SourceFlags } from './source-flags.ts';

interface SaveFlags extends SourceFlags {
  readonly output: string;
}

export function saveCommand(): Command {
  const command = new Command('save')
    .description('write policies of registries, with their signatures, to a tarball')
    .argument('<references...>', 'registry://HOST/REPOSITORY:TAG')
    .requiredOption('-o, --output <file>', 'the tarball');
  return addSourceFlags(command)
    .addHelpText(
      'after',
      `
The tarball is an OCI layout. Policy servers without network use it as a mirror ("mirrors" in sources.yml), and "load"
copies its modules into the cache of these commands.

Example:
  portcullis save -o policies.tar registry://ghcr.io/kubewarden/policies/pod-privileged:v1.0.8`,
    )
    .action(save);
}

async function save(targets: readonly string[], flags: SaveFlags): Promise<void> {
  const progress = new Progress();
  const references = targets.map(registryReference);
  const sources = await readSources(flags);
  const [first] = references;
  let label = `saving ${first?.shown}`;
  await progress.during(label, async (update) => {
    const lines: string[] = [];
    const onSaved = ({ shown, digest, signatures }: SavedArtifact): void => {
      lines.push(`Saved ${shown}: ${digest}, ${signatures} ${signatures === 1 ? 'signature' : 'signatures'}\n`);
      label = `${lines.length} of ${references.length} saved: ${references[lines.length]?.shown ?? flags.output}`;
      update(label);
    };
    const onProgress = (received: number, total?: number): void => update(transferLabel(label, received, total));
    await saveBundle(flags.output, references, { sources, onSaved, onProgress });
    process.stdout.write(lines.join(''));
  });
}

function registryReference(target: string): RegistryReference {
  const reference = parseReference(target);
  if (reference.kind !== 'registry') {
    throw usageError(`${target} names no policy in a registry`, 'Name one: registry://HOST/REPOSITORY:TAG.');
  }
  return reference;
}
