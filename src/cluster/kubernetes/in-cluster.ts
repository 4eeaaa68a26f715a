import { join } from 'node:path';
import { fileProblem, readWholeFile } from '../../files/index.ts';
import { ClusterError } from '../errors.ts';
import type { Connection } from './connection.ts';
import { CachedCredentials } from './cached-credentials.ts';
import { bearerOfFile, TOKEN_FILE_MAX_AGE_MS } from './token-file.ts';

/** The folder in which Kubernetes mounts a pod's service account. */
const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';

export interface InClusterOptions {
  /** `KUBERNETES_SERVICE_HOST`, `KUBERNETES_SERVICE_PORT`, and `PORTCULLIS_SERVICE_ACCOUNT_DIR` are read. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder with `token`, `ca.crt` and `namespace`. Default: from the environment, else the mounted one. */
  readonly folder?: string;
}

/** A connection to a cluster, and its default namespace. */
export interface ClusterAccess {
  readonly connection: Connection;
  /** Name of the context of a kubeconfig; absent inside a cluster. */
  readonly context?: string;
  readonly namespace: string;
}

/**
 * The cluster of this pod, with the pod's service account.
 * @throws ClusterError `kubeconfig-missing` outside of a cluster, `credentials-failed` when the mounted files are
 * missing.
 */
export async function inClusterAccess({
  env,
  folder = env['PORTCULLIS_SERVICE_ACCOUNT_DIR'] ?? SERVICE_ACCOUNT_FOLDER,
}: InClusterOptions): Promise<ClusterAccess> {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  if (host === undefined || host === '' || port === undefined || port === '') {
    throw new ClusterError(
      'kubeconfig-missing',
      'this is not a pod of a cluster: expected KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT in the environment, got none; name a kubeconfig',
    );
  }
  const tokenFile = join(folder, 'token');
  // Read now, so that a pod without a service account fails at its start.
  await bearerOfFile(tokenFile);
  const ca = await mounted(join(folder, 'ca.crt'));
  const namespace = (await mounted(join(folder, 'namespace')).catch(() => 'default')).trim();
  const read = async (): Promise<{ authorization: string }> => ({ authorization: await bearerOfFile(tokenFile) });
  return {
    connection: {
      server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
      ca,
      credentials: new CachedCredentials(`the service account token in ${tokenFile}`, read, TOKEN_FILE_MAX_AGE_MS),
      origin: 'the cluster of this pod',
    },
    namespace: namespace === '' ? 'default' : namespace,
  };
}

async function mounted(path: string): Promise<string> {
  try {
    return (await readWholeFile(path)).toString('utf8');
  } catch (error) {
    const text = `service account file ${path}: expected a file, got none (${fileProblem(error)}); does the pod have automountServiceAccountToken: false?`;
    throw new ClusterError('credentials-failed', text, { cause: error });
  }
}
