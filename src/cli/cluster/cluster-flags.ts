// The cluster of a command, by the flags of kubectl.
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Command } from 'commander';
import { ClusterError, KubernetesCluster, loadKubeconfig } from '../../cluster/index.ts';
import type { ClusterSource } from '../../evaluation/index.ts';
import { CliError } from '../errors.ts';
import { DATA_DIR } from '../data-dir.ts';

export interface ClusterFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly namespace?: string;
}

export interface Connected extends Disposable {
  readonly cluster: KubernetesCluster;
  /** The namespace of `--namespace`, else of the context. */
  readonly namespace: string;
  /** Whether `--namespace` was given. */
  readonly isNamespaceDemanded: boolean;
}

/** The field manager of these commands. */
const FIELD_MANAGER = 'portcullis';
/** A new connection takes longer than three requests to a cluster nearby, because of its TLS handshake. */
const MAX_CONNECTIONS = 4;

/** Adds the flags that {@link connect} reads. */
export function addClusterFlags(command: Command): Command {
  return addConnectionFlags(command).option('-n, --namespace <name>', 'namespace (default: that of the context)');
}

/** Adds the flags that select a cluster. */
export function addConnectionFlags(command: Command): Command {
  return command
    .option('--kubeconfig <file>', `kubeconfig to use (default: $KUBECONFIG, ${DATA_DIR}/kubeconfig, ~/.kube/config)`)
    .option('--context <name>', 'context of the kubeconfig (default: its current one)');
}

/** The kubeconfig files: of the flag, else $KUBECONFIG, else of `portcullis start` in this folder, else ~/.kube/config. */
function kubeconfigPaths(flag: string | undefined): readonly string[] {
  const named = flag ?? process.env['KUBECONFIG'] ?? '';
  if (named !== '') {
    return flag === undefined ? named.split(delimiter).filter((path) => path !== '') : [named];
  }
  const embedded = join(DATA_DIR, 'kubeconfig');
  return [existsSync(embedded) ? embedded : join(homedir(), '.kube', 'config')];
}

/** The cluster of the flags, for policies that read it. Several kubeconfigs are those of the environment. */
export function clusterSource({ kubeconfig, context }: ClusterFlags): ClusterSource {
  const [file, ...more] = kubeconfigPaths(kubeconfig);
  return {
    kind: 'kubeconfig',
    ...(file === undefined || more.length > 0 ? {} : { file }),
    ...(context === undefined ? {} : { context }),
    env: process.env,
  };
}

/**
 * Connects to the cluster of the flags.
 * @throws CliError when there is none, or its kubeconfig cannot be used
 */
export async function connect(flags: ClusterFlags): Promise<Connected> {
  try {
    const { connection, namespace } = await loadKubeconfig({
      paths: kubeconfigPaths(flags.kubeconfig),
      ...(flags.context === undefined ? {} : { context: flags.context }),
      env: process.env,
    });
    const cluster = new KubernetesCluster(connection, { fieldManager: FIELD_MANAGER, maxConnections: MAX_CONNECTIONS });
    return {
      cluster,
      namespace: flags.namespace ?? namespace,
      isNamespaceDemanded: flags.namespace !== undefined,
      [Symbol.dispose]: () => cluster.close(),
    };
  } catch (error) {
    if (error instanceof ClusterError) {
      const hint = 'Name one with --kubeconfig, or start a cluster of your own with: portcullis start';
      throw new CliError(
        error.message,
        error.code === 'kubeconfig-missing' ? { hint, cause: error } : { cause: error },
      );
    }
    throw error;
  }
}
