// Which cluster a command talks to, as kubectl's flags name it.
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Command } from 'commander';
import { ClusterError, KubernetesCluster, loadKubeconfig } from '../../cluster/index.ts';
import { CliError } from '../errors.ts';
import { DATA_DIR } from '../start/start-flags.ts';

export interface ClusterFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly namespace?: string;
}

/** A cluster that a command talks to. */
export interface Connected extends Disposable {
  readonly cluster: KubernetesCluster;
  /** That of `--namespace`, or else of the kubeconfig's context. */
  readonly namespace: string;
  /** It is that of `--namespace`. */
  readonly isNamespaceDemanded: boolean;
}

/** Who owns the fields that these commands set. */
const FIELD_MANAGER = 'portcullis';

/** Adds the flags that {@link connect} reads. */
export function addClusterFlags(command: Command): Command {
  return addConnectionFlags(command).option('-n, --namespace <name>', 'namespace (default: that of the context)');
}

/** Those of them that say which cluster. */
export function addConnectionFlags(command: Command): Command {
  return command
    .option('--kubeconfig <file>', `kubeconfig to use (default: $KUBECONFIG, ${DATA_DIR}/kubeconfig, ~/.kube/config)`)
    .option('--context <name>', 'context of the kubeconfig (default: its current one)');
}

/** The kubeconfig files to read: the first of flag, environment, the cluster that `portcullis start` made here, and the user's. */
function kubeconfigPaths(flag: string | undefined): readonly string[] {
  const named = flag ?? process.env['KUBECONFIG'] ?? '';
  if (named !== '') {
    return flag === undefined ? named.split(delimiter).filter((path) => path !== '') : [named];
  }
  const embedded = join(DATA_DIR, 'kubeconfig');
  return [existsSync(embedded) ? embedded : join(homedir(), '.kube', 'config')];
}

/**
 * Connects to the cluster that the flags name.
 * @throws CliError when there is none, or its kubeconfig cannot be used
 */
export async function connect(flags: ClusterFlags): Promise<Connected> {
  try {
    const { connection, namespace } = await loadKubeconfig({
      paths: kubeconfigPaths(flags.kubeconfig),
      ...(flags.context === undefined ? {} : { context: flags.context }),
      env: process.env,
    });
    const cluster = new KubernetesCluster(connection, { fieldManager: FIELD_MANAGER });
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
