// Certificates for a server on the local machine: a CA, a certificate for localhost, and one for control ports.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startThread } from '../../threads/index.ts';

/** Certificates are renewed this long before they expire. Days. */
const RENEW_DAYS = 30;
const DAY_MS = 86_400_000;
/** The heap of the thread that issues certificates: twice what it takes. MiB. */
const THREAD_HEAP_MB = 64;

/** The files of {@link ensureLocalCertificates}. */
export interface LocalCertificates {
  readonly caFile: string;
  /** For localhost; server authentication only. */
  readonly certFile: string;
  readonly keyFile: string;
  /** For `CONTROL_NAME`; server and client authentication. */
  readonly controlCertFile: string;
  readonly controlKeyFile: string;
}

/** The files in a folder, which may not exist yet. */
export function localCertificates(folder: string): LocalCertificates {
  return {
    caFile: join(folder, 'ca.crt'),
    certFile: join(folder, 'tls.crt'),
    keyFile: join(folder, 'tls.key'),
    controlCertFile: join(folder, 'control.crt'),
    controlKeyFile: join(folder, 'control.key'),
  };
}

/**
 * Ensures that a folder contains a CA and valid certificates for localhost and for control ports. Keys have mode 0600.
 * The CA's key is not stored, so that a reader of the folder cannot issue certificates; all are issued again when one
 * is missing or expires.
 * @param folder created if missing
 */
export async function ensureLocalCertificates(folder: string): Promise<LocalCertificates> {
  // Nothing is awaited before the thread has started: its user may load code then.
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const files = localCertificates(folder);
  if (!areCurrent(files)) {
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const thread = new URL(`./issuing-thread.${extension}`, import.meta.url);
    // Rejects with the error of the thread.
    await once(startThread(thread, { name: 'certificates', workerData: files, heapMb: THREAD_HEAP_MB }), 'exit');
  }
  return files;
}

function areCurrent(files: LocalCertificates): boolean {
  try {
    const ca = new X509Certificate(readFileSync(files.caFile));
    const pairs = [
      [files.certFile, files.keyFile],
      [files.controlCertFile, files.controlKeyFile],
    ] as const;
    const soon = new Date(Date.now() + RENEW_DAYS * DAY_MS);
    return (
      ca.validToDate > soon &&
      pairs.every(([certFile, keyFile]) => {
        const leaf = new X509Certificate(readFileSync(certFile));
        const isPair = leaf.checkPrivateKey(createPrivateKey(readFileSync(keyFile)));
        // Compares keys, because all these CAs have the same name.
        return isPair && leaf.verify(ca.publicKey) && leaf.validToDate > soon;
      })
    );
  } catch {
    return false;
  }
}
