// Issues certificates: a CA, and certificates signed by it. ECDSA on P-256 (RFC 5480), extensions of RFC 5280.
import { webcrypto } from 'node:crypto';
import type * as x509 from '@peculiar/x509';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
/** More than the 64 random bits required of CAs. */
const SERIAL_BYTES = 16;

/** A certificate and its key (PKCS #8), as PEM. */
export interface CertifiedKey {
  readonly cert: string;
  readonly key: string;
}

/** Validity in whole seconds; fractions are cut off. */
export interface CertificateValidity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** A certificate to be issued by a CA. */
export interface CertificateRequest extends CertificateValidity {
  /** For users; not used for authentication. */
  readonly commonName: string;
  readonly usages: readonly ('serverAuth' | 'clientAuth')[];
  /** The names that the certificate is valid for. */
  readonly dnsNames: readonly string[];
  readonly ipAddresses?: readonly string[];
}

/** Creates a CA that signs certificates of servers and clients, and no other CAs. */
export async function createAuthority({
  commonName,
  notBefore,
  notAfter,
}: CertificateValidity & { readonly commonName: string }): Promise<CertifiedKey> {
  const library = await loadLibrary();
  const { BasicConstraintsExtension, KeyUsageFlags, KeyUsagesExtension, SubjectKeyIdentifierExtension } = library;
  const keys = await generateKeys();
  const certificate = await library.X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: serialNumber(),
      name: `CN=${commonName}`,
      notBefore,
      notAfter,
      keys,
      signingAlgorithm: ALGORITHM,
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
        await SubjectKeyIdentifierExtension.create(keys.publicKey, false, webcrypto),
      ],
    },
    webcrypto,
  );
  return certifiedKey(library, certificate, keys);
}

/**
 * Creates a key and issues a certificate for it.
 * @param authority created by {@link createAuthority}
 */
export async function issueCertificate(authority: CertifiedKey, request: CertificateRequest): Promise<CertifiedKey> {
  const library = await loadLibrary();
  const issuer = new library.X509Certificate(authority.cert);
  const signingKey = await webcrypto.subtle.importKey(
    'pkcs8',
    library.PemConverter.decodeFirst(authority.key),
    ALGORITHM,
    false,
    ['sign'],
  );
  const keys = await generateKeys();
  const names = [
    ...request.dnsNames.map((value) => ({ type: 'dns', value }) as const),
    ...(request.ipAddresses ?? []).map((value) => ({ type: 'ip', value }) as const),
  ];
  const certificate = await library.X509CertificateGenerator.create(
    {
      serialNumber: serialNumber(),
      subject: `CN=${request.commonName}`,
      issuer: issuer.subject,
      notBefore: request.notBefore,
      notAfter: request.notAfter,
      publicKey: keys.publicKey,
      signingKey,
      signingAlgorithm: ALGORITHM,
      extensions: [
        new library.BasicConstraintsExtension(false, undefined, true),
        new library.KeyUsagesExtension(library.KeyUsageFlags.digitalSignature, true),
        new library.ExtendedKeyUsageExtension(request.usages.map((usage) => library.ExtendedKeyUsage[usage])),
        new library.SubjectAlternativeNameExtension(names),
        await library.SubjectKeyIdentifierExtension.create(keys.publicKey, false, webcrypto),
        await library.AuthorityKeyIdentifierExtension.create(issuer.publicKey, false, webcrypto),
      ],
    },
    webcrypto,
  );
  return certifiedKey(library, certificate, keys);
}

/** Loaded on demand: a server in a cluster gets its certificates from a controller. */
async function loadLibrary(): Promise<typeof x509> {
  await import('reflect-metadata');
  return import('@peculiar/x509');
}

function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}

async function certifiedKey(
  { PemConverter }: typeof x509,
  certificate: x509.X509Certificate,
  keys: webcrypto.CryptoKeyPair,
): Promise<CertifiedKey> {
  const key = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  return {
    cert: `${certificate.toString('pem').trimEnd()}\n`,
    key: `${PemConverter.encode(key, 'PRIVATE KEY').trimEnd()}\n`,
  };
}

function serialNumber(): string {
  const bytes = webcrypto.getRandomValues(new Uint8Array(SERIAL_BYTES));
  // Positive and of fixed length: the highest bit is the sign, and leading zeros are cut off.
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return Buffer.from(bytes).toString('hex');
}
