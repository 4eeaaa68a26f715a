// `portcullis install`: installs Portcullis on a cluster, or upgrades it.
import { Command, Option } from 'commander';
import { durationMs } from '../cluster/duration.ts';
import { readDocument } from '../document.ts';
import { dataText } from '../output.ts';
import { connectInstallation } from './connect-installation.ts';
import { addInstallationFlags, type InstallationFlags, productVersion } from './install-flags.ts';
import { installObjects } from '../../installation/index.ts';
import { givenMapping, givenValues } from './given-values.ts';
import { Installation } from './installation.ts';
import { planInstallation, type ToldValues } from './installation-plan.ts';
import { mergedValues } from './kept-values.ts';
import { roleNames } from './role-names.ts';

interface InstallFlags extends InstallationFlags {
  readonly image?: string;
  readonly values?: string;
  readonly governanceRole?: readonly string[];
  readonly dryRun?: 'client' | 'server';
  readonly resetValues?: true;
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
          'change nothing: print the manifests (client), or what would change in the cluster (server)',
        )
          .choices(['client', 'server'])
          .preset('server'),
      )
      .option(
        '--reset-values',
        'return to the defaults where no value is named, instead of keeping those in the cluster',
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
  portcullis install --governance-role view,my-policies

Run it again to change values or to upgrade: what is not named stays as it is in the cluster.`,
    )
    .action(install);
}

async function install(flags: InstallFlags): Promise<void> {
  const timeoutMs = durationMs(flags.timeout, '--timeout');
  const version = productVersion();
  const told = await toldValues(flags);
  const { namespace, ...which } = flags;
  if (flags.dryRun === 'client') {
    const context = { namespace, values: givenValues(told.values, version, told.source) };
    process.stdout.write(
      installObjects(context)
        .map((object) => dataText(object, 'yaml'))
        .join('---\n'),
    );
    return;
  }
  using connected = await connectInstallation(which);
  const { cluster } = connected;
  const plan = await planInstallation(cluster, namespace, told, { version, resetsValues: flags.resetValues === true });
  await new Installation(cluster, plan, {
    isDryRun: flags.dryRun === 'server',
    isBesideKubewarden: flags.besideKubewarden === true,
    waits: flags.wait,
    timeoutMs,
  }).run();
}

/** The values of the flags and of the file. @throws CliError */
async function toldValues({ values: file, image, governanceRole }: InstallFlags): Promise<ToldValues> {
  const document = file === undefined ? undefined : await readDocument(file);
  const values = givenMapping(document?.value, document?.name ?? 'values');
  const flags = {
    ...(image === undefined ? {} : { image }),
    ...(governanceRole === undefined ? {} : { governance: { roles: [...governanceRole] } }),
  };
  return { values: mergedValues(values, flags), source: document?.name ?? 'values' };
}
