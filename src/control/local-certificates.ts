// Certificates for a server on one's own machine: a CA of its own, a certificate for localhost, and one for control ports.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createAuthority, issueCertificate } from '../https/index.ts';
import { CONTROL_NAME } from './replica-protocol.ts';

/** A CA that a developer has told curl or a cluster to trust should last. Days. */
const CA_DAYS = 3650;
/** Below the 398 days that clients accept of a server certificate. Days. */
const LEAF_DAYS = 365;
/** A certificate that ends within this is made anew. Days. */
const RENEW_DAYS = 30;
/** Certificates are valid from a little before now, for clocks that are behind. Milliseconds. */
const CLOCK_SKEW_MS = 5 * 60_000;
const DAY_MS = 86_400_000;

/** Where the files of a {@link ensureLocalCertificates} folder are. */
export interface LocalCertificates {
  readonly caFile: string;
  /** For localhost; of servers only. */
  readonly certFile: string;
  readonly keyFile: string;
  /** For `CONTROL_NAME`; of servers and clients. */
  readonly controlCertFile: string;
  readonly controlKeyFile: string;
}

/**
 * Makes sure that a folder holds a CA and certificates for localhost and for control ports, all valid for a while. Keys
 * have mode 0600. The CA's own key is kept nowhere: nobody who reads the folder can make a certificate. So all are made anew
 * when one is missing or ends.
 * @param folder created when missing.
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
  // Its key is forgotten when this returns.
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
  // Last, because certificates of another CA are what makes an interrupted attempt start over.
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
      // By the CA's key: every CA of this kind has the same name.
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
