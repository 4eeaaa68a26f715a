// `portcullis install`: installs Portcullis on a cluster, or upgrades it.
import { Command, Option } from 'commander';
import { durationMs } from '../cluster/duration.ts';
import { readDocument } from '../document.ts';
import { dataText } from '../output.ts';
import { connectInstallation } from './connect-installation.ts';
import { addInstallationFlags, type InstallationFlags, productVersion } from './install-flags.ts';
import { installObjects } from './install-objects.ts';
import { Installation } from './installation.ts';
import type { InstallContext } from './objects/naming.ts';
import { installValues } from './read-values.ts';
import { roleNames } from './role-names.ts';

interface InstallFlags extends InstallationFlags {
  readonly image?: string;
  readonly values?: string;
  readonly governanceRole?: readonly string[];
  readonly dryRun?: 'client' | 'server';
  readonly besideKubewarden?: true;
  readonly wait: boolean;
  readonly timeout: string;
}

export function installCommand(): Command {
  return addInstallationFlags(
    new Command('install')
      .description('install Portcullis on a cluster, or upgrade it: kinds, rights, controller, default PolicyServer')
      .option('--image <image>', 'image of controller and policy servers (default: portcullis:VERSION)')
      .option('-f, --values <file>', 'values as for the Helm chart; - for standard input')
      .addOption(
        new Option(
          '--governance-role <names>',
          'ClusterRoles that Policies have the rights of, instead of the value governance.roles',
        ).argParser(roleNames),
      )
      .addOption(
        new Option(
          '--dry-run [how]',
          'change nothing: print the manifests (client), or let the API server validate them (server)',
        )
          .choices(['client', 'server'])
          .preset('server'),
      )
      .option('--beside-kubewarden', 'install although Kubewarden’s controller runs; it keeps its PolicyServers')
      .option('--no-wait', 'do not wait until the controller and the default PolicyServer are ready')
      .option('--timeout <duration>', 'how long to wait for each of them', '5m'),
  )
    .addHelpText(
      'after',
      `
Examples:
  portcullis install --image registry.example.com/portcullis:0.1.0
  portcullis install --dry-run=client > portcullis.yaml
  portcullis install --values values.yaml --dry-run
  portcullis install --namespace policies --timeout 10m
  portcullis install --governance-role view,my-policies`,
    )
    .action(install);
}

async function install(flags: InstallFlags): Promise<void> {
  const timeoutMs = durationMs(flags.timeout, '--timeout');
  const context = await contextOf(flags);
  if (flags.dryRun === 'client') {
    process.stdout.write(
      installObjects(context)
        .map((object) => dataText(object, 'yaml'))
        .join('---\n'),
    );
    return;
  }
  const { namespace: _product, ...which } = flags;
  using connected = await connectInstallation(which);
  await new Installation(connected.cluster, context, {
    isDryRun: flags.dryRun === 'server',
    isBesideKubewarden: flags.besideKubewarden === true,
    waits: flags.wait,
    timeoutMs,
  }).run();
}

/** The namespace and the values of the flags. @throws CliError */
async function contextOf({ namespace, values: file, image, governanceRole }: InstallFlags): Promise<InstallContext> {
  const version = productVersion();
  const document = file === undefined ? undefined : await readDocument(file);
  const values = installValues(document?.value, version, document?.name ?? 'values');
  const governance = governanceRole === undefined ? values.governance : { ...values.governance, roles: governanceRole };
  return { namespace, values: { ...values, governance, ...(image === undefined ? {} : { image }) } };
}
