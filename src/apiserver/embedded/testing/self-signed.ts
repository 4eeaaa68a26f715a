import 'reflect-metadata';
import { randomBytes, webcrypto } from 'node:crypto';
import {
  BasicConstraintsExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';

/** A self-signed certificate and its key. PEM. */
export interface SelfSigned {
  readonly cert: string;
  readonly key: string;
}

const HOUR_MS = 3_600_000;

/** Creates a certificate for 127.0.0.1, `localhost` and other names. If `validForMs` is negative, it has expired. */
export async function selfSigned(names: readonly string[] = [], validForMs = HOUR_MS): Promise<SelfSigned> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const now = Date.now();
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: randomBytes(8).toString('hex'),
      name: 'CN=Test webhook',
      keys,
      signingAlgorithm: algorithm,
      notBefore: new Date(now - 2 * HOUR_MS),
      notAfter: new Date(now + validForMs),
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
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
