// Certificates for a server on one's own machine: a CA of its own, a certificate for localhost, and one for control ports.
import { createPrivateKey, webcrypto, X509Certificate } from 'node:crypto';
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type * as x509 from '@peculiar/x509';
import { CONTROL_NAME } from './replica/replica-protocol.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
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
  // Loaded when needed: a server in a cluster gets its certificates from others, and should not carry the library.
  await import('reflect-metadata');
  const authority = await LocalAuthority.create(await import('@peculiar/x509'));
  const server = await authority.issue(
    'localhost',
    ['serverAuth'],
    [
      { type: 'dns', value: 'localhost' },
      { type: 'ip', value: '127.0.0.1' },
      { type: 'ip', value: '::1' },
    ],
  );
  const control = await authority.issue(
    'Portcullis control',
    ['serverAuth', 'clientAuth'],
    [{ type: 'dns', value: CONTROL_NAME }],
  );
  await writeWhole(files.keyFile, server.key, 0o600);
  await writeWhole(files.certFile, server.cert, 0o644);
  await writeWhole(files.controlKeyFile, control.key, 0o600);
  await writeWhole(files.controlCertFile, control.cert, 0o644);
  // Last, because certificates of another CA are what makes an interrupted attempt start over.
  await writeWhole(files.caFile, authority.pem, 0o644);
  return files;
}

/** A CA that is forgotten once it has signed what it was made for. */
export class LocalAuthority {
  readonly pem: string;
  readonly #x509: typeof x509;
  readonly #subject: string;
  readonly #keys: webcrypto.CryptoKeyPair;

  private constructor(library: typeof x509, certificate: x509.X509Certificate, keys: webcrypto.CryptoKeyPair) {
    this.#x509 = library;
    this.#subject = certificate.subject;
    this.#keys = keys;
    this.pem = certificate.toString('pem');
  }

  static async create(library: typeof x509): Promise<LocalAuthority> {
    const { BasicConstraintsExtension, KeyUsageFlags, KeyUsagesExtension, X509CertificateGenerator } = library;
    const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
    const certificate = await X509CertificateGenerator.createSelfSigned(
      {
        serialNumber: serialNumber(),
        name: 'CN=Portcullis local CA',
        ...validity(CA_DAYS),
        keys,
        signingAlgorithm: ALGORITHM,
        extensions: [
          new BasicConstraintsExtension(true, 0, true),
          new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
        ],
      },
      webcrypto,
    );
    return new LocalAuthority(library, certificate, keys);
  }

  /** A certificate and its key, as PEM. */
  async issue(
    commonName: string,
    usages: readonly ('serverAuth' | 'clientAuth')[],
    names: x509.JsonGeneralNames,
  ): Promise<{ readonly cert: string; readonly key: string }> {
    const library = this.#x509;
    const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
    const certificate = await library.X509CertificateGenerator.create(
      {
        serialNumber: serialNumber(),
        subject: `CN=${commonName}`,
        issuer: this.#subject,
        ...validity(LEAF_DAYS),
        publicKey: keys.publicKey,
        signingKey: this.#keys.privateKey,
        signingAlgorithm: ALGORITHM,
        extensions: [
          new library.BasicConstraintsExtension(false, undefined, true),
          new library.KeyUsagesExtension(library.KeyUsageFlags.digitalSignature, true),
          new library.ExtendedKeyUsageExtension(usages.map((usage) => library.ExtendedKeyUsage[usage])),
          new library.SubjectAlternativeNameExtension(names),
        ],
      },
      webcrypto,
    );
    const key = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
    return { cert: certificate.toString('pem'), key: library.PemConverter.encode(key, 'PRIVATE KEY') };
  }
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
