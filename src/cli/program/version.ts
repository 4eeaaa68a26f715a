// `portcullis version`: the versions of this program and of the cluster.
import { Command } from 'commander';
import { outputOption, type OutputFormat, dataText } from '../output.ts';
import { packageVersion } from '../package-version.ts';
import { oneLine } from '../table.ts';
import { addConnectionFlags, type ClusterFlags, connect } from '../cluster/cluster-flags.ts';

interface VersionFlags extends ClusterFlags {
  readonly client?: true;
  readonly output: OutputFormat;
}

export function versionCommand(): Command {
  return addConnectionFlags(
    new Command('version')
      .description('print the versions of this program and of the cluster')
      .option('--client', 'only the version of this program')
      .addOption(outputOption()),
  )
    .addHelpText(
      'after',
      `
Examples:
  portcullis version
  portcullis version --client -o json`,
    )
    .action(version);
}

async function version(flags: VersionFlags): Promise<void> {
  const clientVersion = packageVersion();
  const client = { clientVersion: { gitVersion: `v${clientVersion}` } };
  if (flags.output === 'table') {
    process.stdout.write(`Client Version: v${clientVersion}\n`);
  }
  if (flags.client === true) {
    print(client, flags);
    return;
  }
  using connected = await connect(flags);
  const serverVersion = await connected.cluster.version();
  if (flags.output === 'table') {
    process.stdout.write(`Server Version: ${oneLine(serverVersion.gitVersion)}\n`);
  }
  print({ ...client, serverVersion }, flags);
}

function print(versions: object, { output }: VersionFlags): void {
  if (output !== 'table') {
    process.stdout.write(dataText(versions, output, { pretty: true }));
  }
}
