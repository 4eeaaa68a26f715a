// Kubeconfigs for a gateway.
import { randomBytes } from 'node:crypto';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { dump } from 'js-yaml';

/** A kubeconfig's cluster and user. */
export interface KubeconfigEntry {
  /** `https://127.0.0.1:6443` */
  readonly server: string;
  /** The CA that the server's certificate is verified with. PEM. */
  readonly ca: string;
  /** Name of the cluster, the user and the context. Default: `portcullis`. */
  readonly name?: string;
  readonly token: string;
  /** The namespace of commands that name none. Default: kubectl's own, `default`. */
  readonly namespace?: string;
}

/** The text of a kubeconfig with one user of one cluster. YAML. */
export function kubeconfigText({ server, ca, name = 'portcullis', token, namespace }: KubeconfigEntry): string {
  return dump({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [{ name, cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: name, user: name, ...(namespace === undefined ? {} : { namespace }) } }],
  });
}

/** Writes a kubeconfig atomically, with mode 0600. Creates missing folders. */
export async function writeKubeconfig(file: string, entry: KubeconfigEntry): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.${randomBytes(6).toString('hex')}`;
  try {
    await writeFile(temporary, kubeconfigText(entry), { mode: 0o600, flag: 'wx' });
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
