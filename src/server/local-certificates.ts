// Certificates for a server on one's own machine: a CA of its own, made once, and a certificate for localhost.
import { webcrypto, X509Certificate } from 'node:crypto';
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
/** A CA that a developer has told curl or a cluster to trust should last; its key stays on the machine. Days. */
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
  readonly certFile: string;
  readonly keyFile: string;
}

/**
 * Makes sure that a folder holds a CA and a certificate for localhost, both valid for a while. Keys have mode 0600.
 * @param folder created when missing.
 */
export async function ensureLocalCertificates(folder: string): Promise<LocalCertificates> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const files = { caFile: join(folder, 'ca.crt'), certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') };
  if (await areCurrent(files)) {
    return files;
  }
  // Loaded when needed: a server in a cluster gets its certificates from others, and should not carry the library.
  await import('reflect-metadata');
  const {
    BasicConstraintsExtension,
    ExtendedKeyUsage,
    ExtendedKeyUsageExtension,
    KeyUsageFlags,
    KeyUsagesExtension,
    PemConverter,
    SubjectAlternativeNameExtension,
    X509CertificateGenerator,
  } = await import('@peculiar/x509');
  const caKeys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const ca = await X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: serialNumber(),
      name: 'CN=Portcullis local CA',
      ...validity(CA_DAYS),
      keys: caKeys,
      signingAlgorithm: ALGORITHM,
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      ],
    },
    webcrypto,
  );
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const leaf = await X509CertificateGenerator.create(
    {
      serialNumber: serialNumber(),
      subject: 'CN=localhost',
      issuer: ca.subject,
      ...validity(LEAF_DAYS),
      publicKey: keys.publicKey,
      signingKey: caKeys.privateKey,
      signingAlgorithm: ALGORITHM,
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
        new SubjectAlternativeNameExtension([
          { type: 'dns', value: 'localhost' },
          { type: 'ip', value: '127.0.0.1' },
          { type: 'ip', value: '::1' },
        ]),
      ],
    },
    webcrypto,
  );
  const key = PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY');
  await writeWhole(files.keyFile, key, 0o600);
  await writeWhole(files.certFile, leaf.toString('pem'), 0o644);
  // Last, because a missing CA is what makes an interrupted attempt start over.
  await writeWhole(files.caFile, ca.toString('pem'), 0o644);
  return files;
}

async function areCurrent({ caFile, certFile, keyFile }: LocalCertificates): Promise<boolean> {
  try {
    const [ca, leaf] = await Promise.all(
      [caFile, certFile].map(async (file) => new X509Certificate(await readFile(file, 'utf8'))),
    );
    await readFile(keyFile);
    const soon = new Date(Date.now() + RENEW_DAYS * DAY_MS);
    return (
      ca !== undefined && leaf !== undefined && leaf.checkIssued(ca) && leaf.validToDate > soon && ca.validToDate > soon
    );
  } catch {
    return false;
  }
}

function validity(days: number): { notBefore: Date; notAfter: Date } {
  const now = Date.now();
  return { notBefore: new Date(now - CLOCK_SKEW_MS), notAfter: new Date(now + days * DAY_MS) };
}

function serialNumber(): string {
  const bytes = webcrypto.getRandomValues(new Uint8Array(16));
  // A positive number: the highest bit is its sign.
  bytes[0] = (bytes[0] ?? 0) & 0x7f;
  return Buffer.from(bytes).toString('hex');
}

async function writeWhole(file: string, text: string, mode: number): Promise<void> {
  const temporary = `${file}.${process.pid}.new`;
  await writeFile(temporary, text, { mode });
  await chmod(temporary, mode);
  await rename(temporary, file);
}
