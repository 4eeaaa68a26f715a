// `portcullis dryrun generate`: the kinds of a cluster, for `--mappings-file`.
import { Command } from 'commander';
import { addConnectionFlags, type ClusterFlags, connect } from '../../cluster/cluster-flags.ts';
import { dataText } from '../../output.ts';
import { mappingsOf } from './api-mappings.ts';

export function generateCommand(): Command {
  return addConnectionFlags(
    new Command('generate').description('print the kinds of a cluster, for --mappings-file'),
  ).action(generate);
}

async function generate(flags: ClusterFlags): Promise<void> {
  using connected = await connect(flags);
  process.stdout.write(dataText(mappingsOf(await connected.cluster.discovery.resources()), 'yaml'));
}
