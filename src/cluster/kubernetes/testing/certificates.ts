import 'reflect-metadata';
import { randomBytes, webcrypto } from 'node:crypto';
import {
  BasicConstraintsExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';

/** A self-signed certificate and its key, both PEM. */
export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
}

/** A certificate for 127.0.0.1 and `names`, valid for an hour. */
export async function testCertificate(commonName: string, names: readonly string[] = []): Promise<TestCertificate> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const alternatives = names.length === 0 ? [{ type: 'ip' as const, value: '127.0.0.1' }] : [];
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: randomBytes(8).toString('hex'),
      name: `CN=${commonName}`,
      keys,
      signingAlgorithm: algorithm,
      notBefore: new Date(Date.now() - 60_000),
      notAfter: new Date(Date.now() + 3_600_000),
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new SubjectAlternativeNameExtension([
          ...alternatives,
          ...names.map((value) => ({ type: 'dns' as const, value })),
        ]),
      ],
    },
    webcrypto,
  );
  const key = PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY');
  return { cert: certificate.toString('pem'), key };
}
