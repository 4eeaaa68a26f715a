// Certificates for a server on the local machine: a CA, a certificate for localhost, and one for control ports.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createAuthority, issueCertificate } from '../../https/index.ts';
import { CONTROL_NAME } from '../replica-protocol.ts';

/** Long enough for a CA that a developer configured in curl or a cluster. Days. */
const CA_DAYS = 3650;
/** Below 398 days, the limit of clients for server certificates. Days. */
const LEAF_DAYS = 365;
/** Certificates are renewed this long before they expire. Days. */
const RENEW_DAYS = 30;
/** Start of validity before now, for clocks that are behind. Milliseconds. */
const CLOCK_SKEW_MS = 5 * 60_000;
const DAY_MS = 86_400_000;

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

/**
 * Ensures that a folder contains a CA and valid certificates for localhost and for control ports. Keys have mode 0600.
 * The CA's key is not stored, so that a reader of the folder cannot issue certificates; all are issued again when one
 * is missing or expires.
 * @param folder created if missing
 */
export async function ensureLocalCertificates(folder: string): Promise<LocalCertificates> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const files: LocalCertificates = {
    caFile: join(folder, 'ca.crt'),
    certFile: join(folder, 'tls.crt'),
    keyFile: join(folder, 'tls.key'),
    controlCertFile: join(folder, 'control.crt'),
    controlKeyFile: join(folder, 'control.key'),
  };
  if (await areCurrent(files)) {
    return files;
  }
  // The CA's key is never stored.
  const authority = await createAuthority({ commonName: 'Portcullis local CA', ...validity(CA_DAYS) });
  const server = await issueCertificate(authority, {
    commonName: 'localhost',
    usages: ['serverAuth'],
    dnsNames: ['localhost'],
    ipAddresses: ['127.0.0.1', '::1'],
    ...validity(LEAF_DAYS),
  });
  const control = await issueCertificate(authority, {
    commonName: 'Portcullis control',
    usages: ['serverAuth', 'clientAuth'],
    dnsNames: [CONTROL_NAME],
    ...validity(LEAF_DAYS),
  });
  await writeWhole(files.keyFile, server.key, 0o600);
  await writeWhole(files.certFile, server.cert, 0o644);
  await writeWhole(files.controlKeyFile, control.key, 0o600);
  await writeWhole(files.controlCertFile, control.cert, 0o644);
  // Last: after an interruption, the certificates do not match the old CA, and all are issued again.
  await writeWhole(files.caFile, authority.cert, 0o644);
  return files;
}

async function areCurrent(files: LocalCertificates): Promise<boolean> {
  try {
    const ca = new X509Certificate(await readFile(files.caFile));
    const pairs = [
      [files.certFile, files.keyFile],
      [files.controlCertFile, files.controlKeyFile],
    ] as const;
    const soon = new Date(Date.now() + RENEW_DAYS * DAY_MS);
    const checks = pairs.map(async ([certFile, keyFile]) => {
      const leaf = new X509Certificate(await readFile(certFile));
      const isPair = leaf.checkPrivateKey(createPrivateKey(await readFile(keyFile)));
      // Compares keys, because all these CAs have the same name.
      return isPair && leaf.verify(ca.publicKey) && leaf.validToDate > soon;
    });
    return ca.validToDate > soon && (await Promise.all(checks)).every(Boolean);
  } catch {
    return false;
  }
}

function validity(days: number): { notBefore: Date; notAfter: Date } {
  const now = Date.now();
  return { notBefore: new Date(now - CLOCK_SKEW_MS), notAfter: new Date(now + days * DAY_MS) };
}

async function writeWhole(file: string, text: string, mode: number): Promise<void> {
  const temporary = `${file}.${process.pid}.new`;
  await writeFile(temporary, text, { mode });
  await chmod(temporary, mode);
  await rename(temporary, file);
}
