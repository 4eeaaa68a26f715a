// Flags of `portcullis serve --policy-server NAME`: a replica of a PolicyServer of a cluster.
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Command, Option } from 'commander';
import type { ReplicaOptions } from '../../server/index.ts';
import {
  addControlFlags,
  connectionOf,
  type ControlFlags,
  controlTlsOf,
  type MemberFlags,
  productNamespaceOption,
} from '../daemon-flags.ts';
import { usageError } from '../errors.ts';
import { portNumber } from '../port-flag.ts';

/** The default port of the control endpoint. */
const CONTROL_PORT = 8444;
/** Random bytes of the suffix that tells processes of one host apart. */
const SUFFIX_BYTES = 4;
/** Longest part of the host name: with the suffix, a DNS label of at most 63 characters. */
const MAX_HOST_LENGTH = 63 - 1 - 2 * SUFFIX_BYTES;
/** Wildcard addresses, which others cannot connect to. */
const WILDCARDS: ReadonlySet<string> = new Set(['0.0.0.0', '::', '[::]']);

export interface ReplicaFlags extends MemberFlags, ControlFlags {
  readonly policyServer?: string;
  readonly namespace: string;
  readonly replicaName?: string;
  readonly controlAddr: string;
  readonly controlPort: number;
  readonly controlAdvertise?: string;
  readonly modulesDir?: string;
  readonly namespacedPoliciesCapabilities?: readonly string[];
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
  return addControlFlags(command)
    .option(
      '--modules-dir <folder>',
      'with --policy-server: folder for file://./ references (default: they are refused)',
    )
    .option(
      '--namespaced-policies-capabilities <patterns>',
      'with --policy-server: host capabilities of namespaced policies, such as oci/*,net/v1/* (default: none)',
      (text) => text.split(',').filter((pattern) => pattern !== ''),
    );
}

/** The options of the replica; undefined without `--policy-server`. @throws CliError, ClusterError */
export async function replicaOptions(flags: ReplicaFlags): Promise<ReplicaOptions | undefined> {
  const { policyServer, controlAddr: host, controlAdvertise: advertise } = flags;
  if (policyServer === undefined) {
    return undefined;
  }
  if (WILDCARDS.has(host) && (advertise === undefined || advertise === '')) {
    throw usageError(
      `--control-addr ${host} is not an address that others can connect to`,
      'Name the host that they reach it by with --control-advertise (in a pod: POD_IP in its environment).',
    );
  }
  const tls = controlTlsOf(flags);
  const connection = await connectionOf(flags);
  const { KubernetesCluster } = await import('../../cluster/index.ts');
  const pod = owningPod();
  return {
    cluster: new KubernetesCluster(connection, { fieldManager: 'portcullis-policy-server' }),
    namespace: flags.namespace,
    policyServer,
    name: flags.replicaName ?? replicaName(),
    ...(pod === undefined ? {} : { pod }),
    control: { host, port: flags.controlPort, tls, ...(advertise === undefined ? {} : { advertise }) },
    ...(flags.namespacedPoliciesCapabilities === undefined
      ? {}
      : { namespacedPoliciesCapabilities: flags.namespacedPoliciesCapabilities }),
    ...(flags.modulesDir === undefined ? {} : { modulesUrl: pathToFileURL(`${resolve(flags.modulesDir)}/`) }),
  };
}

/** The pod of this process, from the downward API. */
function owningPod(): ReplicaOptions['pod'] {
  const { POD_NAME: name = '', POD_UID: uid = '' } = process.env;
  return name === '' || uid === '' ? undefined : { name, uid };
}

/** A unique DNS label. */
function replicaName(): string {
  const host = hostname()
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .slice(0, MAX_HOST_LENGTH)
    .replaceAll(/^-+|-+$/g, '');
  const suffix = randomBytes(SUFFIX_BYTES).toString('hex');
  return host === '' ? `replica-${suffix}` : `${host}-${suffix}`;
}
