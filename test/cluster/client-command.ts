// kubectl and helm, run against a cluster.
import { spawn } from 'node:child_process';
import { join } from 'node:path';

/** How a call of kubectl or helm ended. */
export interface KubectlResult {
  readonly stdout: string;
  readonly stderr: string;
  /** Exit code; -1 when a signal or the time limit ended it. */
  readonly code: number;
}

/** What a client is run with. */
export interface ClientCommandOptions {
  readonly kubeconfig: string;
  /** For its caches. */
  readonly folder: string;
  readonly stdin?: string;
  /** Default: 60,000. */
  readonly timeoutMs?: number;
}

/** Runs a client to its end. */
export async function runClient(
  program: string,
  args: readonly string[],
  { kubeconfig, folder, stdin = '', timeoutMs = 60_000 }: ClientCommandOptions,
): Promise<KubectlResult> {
  const child = spawn(program, args, {
    // Caches of their own: those of the user know the resources of other clusters at this address.
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
  // It may end before it has read everything.
  child.stdin.on('error', () => undefined);
  child.stdin.end(stdin);
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  child.once('error', reject);
  child.once('close', (code) => resolve(code ?? -1));
  const code = await promise;
  return { stdout, stderr, code };
}
