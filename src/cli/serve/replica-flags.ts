// Flags of `portcullis serve --policy-server NAME`: a replica of a PolicyServer of a cluster.
import { type Command, Option } from 'commander';
import type { ClusterPoliciesOptions } from '../../server/index.ts';
import {
  addControlFlags,
  addClusterPolicyFlags,
  connectionOf,
  type ControlFlags,
  controlTlsOf,
  folderUrl,
  type MemberFlags,
  type ClusterPolicyFlags,
  productNamespaceOption,
} from '../daemon-flags.ts';
import { portNumber } from '../port-flag.ts';
import { owningPod, processName, requireReachable } from '../process-identity.ts';

/** The default port of the control endpoint. */
const CONTROL_PORT = 8444;

export interface ReplicaFlags extends MemberFlags, ControlFlags, ClusterPolicyFlags {
  readonly policyServer?: string;
  readonly namespace: string;
  readonly replicaName?: string;
  readonly controlAddr: string;
  readonly controlPort: number;
  readonly controlAdvertise?: string;
}

export function addReplicaFlags(command: Command): Command {
  command
    .addOption(
      new Option(
        '--policy-server <name>',
        'serve the policies of this PolicyServer of a cluster, instead of a file',
      ).conflicts('policies'),
    )
    .addOption(productNamespaceOption())
    .addOption(
      new Option('--replica-name <name>', 'name of this replica (default: the host’s, with a random end)').env(
        'POD_NAME',
      ),
    )
    .option(
      '--control-addr <address>',
      'with --policy-server: address of the control endpoint, for controllers and other replicas',
      '0.0.0.0',
    )
    .option('--control-port <port>', 'port for them, mutual TLS', portNumber, CONTROL_PORT)
    .addOption(new Option('--control-advertise <host>', 'host of the control endpoint for others').env('POD_IP'));
  return addClusterPolicyFlags(addControlFlags(command), 'with --policy-server');
}

/** The options of the replica; undefined without `--policy-server`. @throws CliError, ClusterError */
export async function replicaOptions(flags: ReplicaFlags): Promise<ClusterPoliciesOptions | undefined> {
  const { policyServer, controlAddr: host, controlAdvertise: advertise } = flags;
  if (policyServer === undefined) {
    return undefined;
  }
  requireReachable(host, advertise);
  const tls = controlTlsOf(flags);
  const connection = await connectionOf(flags);
  const { KubernetesCluster } = await import('../../cluster/index.ts');
  const pod = owningPod();
  return {
    cluster: new KubernetesCluster(connection, { fieldManager: 'portcullis-policy-server' }),
    namespace: flags.namespace,
    policyServer,
    name: flags.replicaName ?? processName('replica'),
    ...(pod === undefined ? {} : { pod }),
    control: { host, port: flags.controlPort, tls, ...(advertise === undefined ? {} : { advertise }) },
    ...(flags.namespacedPoliciesCapabilities === undefined
      ? {}
      : { namespacedPoliciesCapabilities: flags.namespacedPoliciesCapabilities }),
    ...(flags.modulesDir === undefined ? {} : { modulesUrl: folderUrl(flags.modulesDir) }),
  };
}
