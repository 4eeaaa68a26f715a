// Certificates and Secrets for tests.
import { webcrypto } from 'node:crypto';
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import type { KubernetesObject } from '../../../resources/index.ts';

const EC = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** The moment at which tests evaluate. */
export const NOW = Date.parse('2030-06-01T00:00:00Z');
export const HOUR = 3_600_000;

type Name = Readonly<{ type: 'dns' | 'ip' | 'url' | 'email' | 'dn'; value: string }>;

/** A self-signed certificate as PEM: valid from and until so many hours from now. */
export async function pem({
  from = -1,
  until = 2_000,
  isCa = false,
  names = [],
}: {
  readonly from?: number;
  readonly until?: number;
  readonly isCa?: boolean;
  readonly names?: readonly (Name | string)[];
} = {}): Promise<string> {
  const keys = await webcrypto.subtle.generateKey(EC, true, ['sign', 'verify']);
  const sans = names.map((name) => (typeof name === 'string' ? ({ type: 'dns', value: name } as const) : name));
  const certificate = await x509.X509CertificateGenerator.createSelfSigned(
    {
      name: 'CN=test',
      serialNumber: '01',
      notBefore: new Date(NOW + from * HOUR),
      notAfter: new Date(NOW + until * HOUR),
      keys,
      signingAlgorithm: EC,
      extensions: [
        new x509.BasicConstraintsExtension(isCa, undefined, true),
        ...(sans.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(sans)]),
      ],
    },
    webcrypto,
  );
  return `${certificate.toString('pem')}\n`;
}

/** A Secret with a text in one key. */
export function secret(
  name: string,
  text: string,
  { key = 'tls.crt', labels = {} }: { readonly key?: string; readonly labels?: Readonly<Record<string, string>> } = {},
): KubernetesObject {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: 'default', labels },
    data: { [key]: Buffer.from(text).toString('base64') },
  };
}
