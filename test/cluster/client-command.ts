// Runs kubectl and helm against a cluster.
import { spawn } from 'node:child_process';
import { join } from 'node:path';

/** The result of a kubectl or helm command. */
export interface KubectlResult {
  readonly stdout: string;
  readonly stderr: string;
  /** Exit code; -1 when a signal or the time limit ended it. */
  readonly code: number;
}

/** Options of {@link runClient}. */
export interface ClientCommandOptions {
  readonly kubeconfig: string;
  /** The folder for caches. */
  readonly folder: string;
  readonly stdin?: string;
  /** Time limit. Milliseconds. Default: 60,000. */
  readonly timeoutMs?: number;
}

/** Runs a client until it ends. */
export async function runClient(
  program: string,
  args: readonly string[],
  { kubeconfig, folder, stdin = '', timeoutMs = 60_000 }: ClientCommandOptions,
): Promise<KubectlResult> {
  const child = spawn(program, args, {
    // The caches of the user may have the resources of another cluster that had this address.
    env: {
      ...process.env,
      KUBECONFIG: kubeconfig,
      KUBECACHEDIR: join(folder, 'kubectl-cache'),
      KUBERC: 'off',
      HELM_CACHE_HOME: join(folder, 'helm-cache'),
      HELM_CONFIG_HOME: join(folder, 'helm-config'),
      HELM_DATA_HOME: join(folder, 'helm-data'),
    },
    stdio: 'pipe',
    timeout: timeoutMs,
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  // The client may end before it has read all its input.
  child.stdin.on('error', () => undefined);
  child.stdin.end(stdin);
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  child.once('error', reject);
  child.once('close', (code) => resolve(code ?? -1));
  const code = await promise;
  return { stdout, stderr, code };
}
