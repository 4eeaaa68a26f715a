import 'reflect-metadata';
import { randomBytes, webcrypto } from 'node:crypto';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';

/** A self-signed certificate and its key. PEM. */
export interface LoopbackCertificate {
  readonly cert: string;
  readonly key: string;
}

/** Creates a self-signed certificate for 127.0.0.1, `localhost` and the given names. It is valid for a day. */
export async function createLoopbackCertificate(names: readonly string[] = []): Promise<LoopbackCertificate> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: randomBytes(8).toString('hex'),
      name: 'CN=Portcullis test webhook',
      keys,
      signingAlgorithm: algorithm,
      notBefore: new Date(Date.now() - 3_600_000),
      notAfter: new Date(Date.now() + 24 * 3_600_000),
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
        new SubjectAlternativeNameExtension([
          { type: 'ip', value: '127.0.0.1' },
          ...['localhost', ...names].map((value) => ({ type: 'dns' as const, value })),
        ]),
      ],
    },
    webcrypto,
  );
  const key = PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY');
  return { cert: certificate.toString('pem'), key };
}
