// `portcullis start`: a local cluster for kubectl with a controller and a policy server; or, with --policies, only a policy
// server for a file. All data is in one folder.
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { Command, Option } from 'commander';
import { addFailingPoliciesFlags } from '../controller/failing-policies-flags.ts';
import { addGovernanceFlags } from '../controller/governance-flags.ts';
import { addNetworkPolicyFlags } from '../controller/network-policy-flags.ts';
import { CliError } from '../errors.ts';
import { roleNames } from '../install/role-names.ts';
import { DOCKER_CONFIG_FLAG, DOCKER_CONFIG_HELP, SOURCES_FLAG, SOURCES_HELP } from '../module/source-flags.ts';
import { TRUST_FLAG, TRUST_HELP, VERIFICATION_FLAG, VERIFICATION_HELP } from '../module/verification-flags.ts';
import { endThreads } from '../../threads/index.ts';
import { portNumber } from '../port-flag.ts';
import { DATA_DIR } from '../data-dir.ts';
import { openDataFolder } from './data-folder.ts';
import type { StartFlags } from './start-flags.ts';

/** Whoever may write Policies in this cluster has the token of an administrator, unless that administrator grants more. */
const DEFAULT_GOVERNANCE_ROLES: readonly string[] = ['cluster-admin'];

export function startCommand(): Command {
  const command = new Command('start')
    .description('run a local cluster for kubectl, with a policy server for its policies')
    .option('--examples', 'add the example policies of Portcullis to a new cluster')
    .addOption(
      new Option(
        '--policies <file>',
        'serve a policies file, or manifests in a file or folder, without a cluster; watched',
      ).conflicts([
        'degradedPolicies',
        'unservedPolicies',
        'governance',
        'governanceMode',
        'clusterName',
        'governanceNamespaces',
        'governanceRole',
        'networkPolicyStatus',
        'networkPolicyAnnotation',
        'networkPolicyCatalogue',
        'networkPolicyStatusSubresource',
        'auditor',
      ]),
    )
    .option('--port <port>', 'first port to try for admission reviews', portNumber, 8443)
    .option('--operations-port <port>', 'first port to try for status and metrics', portNumber, 8081)
    .option('--cluster-port <port>', 'first port to try for kubectl', portNumber, 6443)
    .option('--data-dir <folder>', 'folder for the cluster, certificates and modules', DATA_DIR)
    .option(SOURCES_FLAG, SOURCES_HELP)
    .option(DOCKER_CONFIG_FLAG, DOCKER_CONFIG_HELP)
    .option(VERIFICATION_FLAG, VERIFICATION_HELP)
    .option(TRUST_FLAG, TRUST_HELP);
  return addNetworkPolicyFlags(addGovernanceFlags(addFailingPoliciesFlags(command)))
    .option(
      '--network-policy-status-subresource',
      'serve the status of NetworkPolicy that KEP-2943 had behind a feature gate, and write it',
      true,
    )
    .option('--no-network-policy-status-subresource', 'serve NetworkPolicy as API servers of today')
    .option('--auditor', 'judge existing objects by the policies, in a process of its own', true)
    .option('--no-auditor', 'judge requests only')
    .addOption(
      new Option('--governance-role <names>', 'ClusterRoles with the rights of Policies: here the only user is you')
        .default(DEFAULT_GOVERNANCE_ROLES, DEFAULT_GOVERNANCE_ROLES.join())
        .argParser(roleNames),
    )
    .addHelpText(
      'after',
      `
Examples:
  portcullis start --examples
  portcullis start --policies policy.yaml --port 9443`,
    )
    .action(start);
}

async function start(flags: StartFlags): Promise<void> {
  const dataDir = resolve(flags.dataDir);
  if (flags.policies !== undefined && !existsSync(flags.policies)) {
    throw new CliError(`${flags.policies} does not exist`, {
      hint: 'Name a policies file or manifests with --policies, or leave it out for a cluster with --examples.',
    });
  }
  using _folder = openDataFolder(dataDir);
  // Loaded lazily: a server for a file needs no cluster code.
  await (flags.policies === undefined
    ? (await import('./start-with-cluster.ts')).startWithCluster(flags, dataDir)
    : (await import('./start-with-file.ts')).startWithFile(flags, flags.policies, dataDir));
  await endThreads();
}
