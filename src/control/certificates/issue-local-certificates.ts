// Issues certificates for a server on the local machine: a CA, a certificate for localhost, and one for control ports.
import { chmod, rename, writeFile } from 'node:fs/promises';
import { createAuthority, issueCertificate } from '../../https/index.ts';
import { CONTROL_NAME } from '../replica-protocol.ts';
import type { LocalCertificates } from './local-certificates.ts';

/** Long enough for a CA that a developer configured in curl or a cluster. Days. */
const CA_DAYS = 3650;
/** Below 398 days, the limit of clients for server certificates. Days. */
const LEAF_DAYS = 365;
/** Start of validity before now, for clocks that are behind. Milliseconds. */
const CLOCK_SKEW_MS = 5 * 60_000;
const DAY_MS = 86_400_000;

/** Writes all of them. */
export async function issueLocalCertificates(files: LocalCertificates): Promise<void> {
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
