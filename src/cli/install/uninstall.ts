// `portcullis uninstall`: removes Portcullis from a cluster.
import { Command } from 'commander';
import { inClusterAccess, KubernetesCluster } from '../../cluster/index.ts';
import { durationMs } from '../cluster/duration.ts';
import { usageError } from '../errors.ts';
import { connectInstallation } from './connect-installation.ts';
import { addInstallationFlags, type InstallationFlags } from './install-flags.ts';
import { Removal } from './removal.ts';

interface UninstallFlags extends InstallationFlags {
  readonly dryRun?: true;
  readonly deletePolicies?: true;
  readonly deleteCrds?: true;
  readonly keepNamespace?: true;
  readonly webhooksOnly?: true;
  readonly inCluster?: true;
  readonly timeout: string;
}

export function uninstallCommand(): Command {
  return addInstallationFlags(
    new Command('uninstall')
      .description('remove Portcullis from a cluster, webhooks first; policies and kinds stay by default')
      .option('--dry-run', 'change nothing: print what would be deleted')
      .option('--delete-policies', 'delete all policies and PolicyServers, too')
      .option('--delete-crds', 'delete the kinds, too; with --delete-policies')
      .option('--keep-namespace', 'keep the namespace, and everything in it that is not Portcullis')
      .option('--webhooks-only', 'only remove the webhooks and stop controller and auditor')
      .option('--in-cluster', 'use the cluster of this pod')
      .option('--timeout <duration>', 'how long to wait until pods and objects are gone', '2m'),
  )
    .addHelpText(
      'after',
      `
Examples:
  portcullis uninstall --dry-run
  portcullis uninstall
  portcullis uninstall --delete-policies --delete-crds

It can be run again at any time, also after a failed installation. Policies that stay are not enforced.`,
    )
    .action(uninstall);
}

async function uninstall(flags: UninstallFlags): Promise<void> {
  const timeoutMs = durationMs(flags.timeout, '--timeout');
  if (flags.deleteCrds === true && flags.deletePolicies !== true) {
    throw usageError(
      '--delete-crds deletes every policy and PolicyServer of the cluster',
      'Confirm it with --delete-policies. Nothing was changed.',
    );
  }
  const { namespace } = flags;
  using cluster = await clusterOf(flags);
  await new Removal(cluster, namespace, {
    isDryRun: flags.dryRun === true,
    webhooksOnly: flags.webhooksOnly === true,
    policies: flags.deletePolicies === true,
    definitions: flags.deleteCrds === true,
    keepsNamespace: flags.keepNamespace === true,
    timeoutMs,
  }).run();
}

async function clusterOf({ inCluster, namespace: _product, ...which }: UninstallFlags): Promise<KubernetesCluster> {
  return inCluster === true
    ? new KubernetesCluster((await inClusterAccess({ env: process.env })).connection)
    : (await connectInstallation(which)).cluster;
}
