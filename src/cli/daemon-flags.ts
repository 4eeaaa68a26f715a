// Flags of the long-running commands `serve`, `controller` and `auditor`.
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Command, Option } from 'commander';
import type { Connection } from '../cluster/index.ts';
import type { ControlTls } from '../control/index.ts';
import type { ClusterSource } from '../evaluation/index.ts';
import { LOG_LEVELS, type LogFormat, type LogLevel } from '../log/index.ts';
import { commaList } from './comma-list.ts';
import { usageError } from './errors.ts';
import { PRODUCT_NAMESPACE } from './product-namespace.ts';

/** The cluster of a process. */
export interface MemberFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly inCluster?: true;
}

/** Certificates of control ports. */
export interface ControlFlags {
  readonly controlCertFile?: string;
  readonly controlKeyFile?: string;
  readonly controlCaFile?: string;
}

export interface LogFlags {
  readonly logLevel: LogLevel;
  readonly logFmt: LogFormat;
}

/** What policies may load and use. */
export interface ClusterPolicyFlags {
  readonly modulesDir?: string;
  readonly namespacedPoliciesCapabilities?: readonly string[];
}

/** @param when begins the help of these flags: which processes have policies of a cluster */
export function addClusterPolicyFlags(command: Command, when: string): Command {
  return command
    .option('--modules-dir <folder>', `${when}: folder for file://./ references (default: they are refused)`)
    .option(
      '--namespaced-policies-capabilities <patterns>',
      `${when}: host capabilities of namespaced policies, such as oci/*,net/v1/* (default: none)`,
      commaList,
    );
}

/** The URL of a folder, to which references to modules are relative. */
export function folderUrl(folder: string): URL {
  return pathToFileURL(`${resolve(folder)}/`);
}

/** @param use completes the sentence "the cluster …" in the help of `--kubeconfig` */
export function addMemberFlags(command: Command, use: string): Command {
  return command
    .addOption(new Option('--kubeconfig <file>', `the cluster ${use}`).conflicts('inCluster'))
    .addOption(
      new Option('--context <name>', 'a context of the kubeconfig (default: its current one)').conflicts('inCluster'),
    )
    .addOption(new Option('--in-cluster', 'use the cluster in which this pod runs'));
}

export function addControlFlags(command: Command): Command {
  return command
    .option('--control-cert-file <file>', 'PEM certificate between controller and policy servers, for both sides')
    .option('--control-key-file <file>', 'PEM key of that certificate')
    .option('--control-ca-file <file>', 'PEM CA that the other side’s certificate must come from');
}

export function addLogFlags(command: Command): Command {
  return command
    .addOption(
      new Option('--log-level <level>', 'log lines of this level and above')
        .default('info')
        .choices([...LOG_LEVELS])
        .env('KUBEWARDEN_LOG_LEVEL'),
    )
    .addOption(
      new Option('--log-fmt <format>', 'text or json')
        .default('text')
        .choices(['text', 'json'])
        .env('KUBEWARDEN_LOG_FMT'),
    );
}

export function productNamespaceOption(): Option {
  return new Option('--namespace <name>', 'namespace of Portcullis: of revisions, replicas and leases')
    .default(PRODUCT_NAMESPACE)
    .env('POD_NAMESPACE');
}

/** The connection to the cluster of the flags. @throws CliError when they name none; ClusterError */
export async function connectionOf({ kubeconfig, context, inCluster }: MemberFlags): Promise<Connection> {
  const { env } = process;
  // Loaded lazily: a policy server for a file has no cluster.
  const { inClusterAccess, loadKubeconfig } = await import('../cluster/index.ts');
  if (inCluster === true) {
    return (await inClusterAccess({ env })).connection;
  }
  if (kubeconfig === undefined && context === undefined) {
    throw usageError(
      'no cluster is named',
      'Name it with --kubeconfig FILE or --context NAME; in a pod, --in-cluster.',
    );
  }
  const { connection } = await loadKubeconfig({
    env,
    ...(kubeconfig === undefined ? {} : { paths: [kubeconfig] }),
    ...(context === undefined ? {} : { context }),
  });
  return connection;
}

/** The cluster that policies read, if one is named. A context without a kubeconfig is one of the default kubeconfig. */
export function policyCluster({ kubeconfig: file, context, inCluster }: MemberFlags): ClusterSource | undefined {
  const { env } = process;
  if (inCluster === true) {
    return { kind: 'in-cluster', env: { ...env } };
  }
  if (file === undefined && context === undefined) {
    return undefined;
  }
  return {
    kind: 'kubeconfig',
    env: { ...env },
    ...(file === undefined ? {} : { file }),
    ...(context === undefined ? {} : { context }),
  };
}

/** @throws CliError when one of them is missing */
export function controlTlsOf({ controlCertFile, controlKeyFile, controlCaFile }: ControlFlags): ControlTls {
  if (controlCertFile === undefined || controlKeyFile === undefined || controlCaFile === undefined) {
    throw usageError(
      'controller and policy servers need certificates to talk to each other',
      'Name them with --control-cert-file, --control-key-file and --control-ca-file.',
    );
  }
  return { certFile: controlCertFile, keyFile: controlKeyFile, caFile: controlCaFile };
}
