// Secrets with expired certificates, that of the CA included, as after years without a running controller.
import { createAuthority, issueCertificate } from '../../src/https/index.ts';

const DAY_MS = 24 * 3_600_000;

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** The data of the Secrets, by name. */
export async function expiredCertificates(
  namespace: string,
  controller: string,
  policyServer: string,
): Promise<ReadonlyMap<string, Readonly<Record<string, string>>>> {
  const validity = { notBefore: new Date(Date.now() - 2 * DAY_MS), notAfter: new Date(Date.now() - DAY_MS) };
  const authority = await createAuthority({ commonName: 'Expired', ...validity });
  const data = ({ cert, key }: { readonly cert: string; readonly key: string }): Record<string, string> => ({
    'tls.crt': base64(cert),
    'tls.key': base64(key),
    'ca.crt': base64(authority.cert),
  });
  const found = new Map([['portcullis-ca', data(authority)]]);
  for (const name of [controller, policyServer]) {
    for (const use of ['webhook', 'control']) {
      const leaf = await issueCertificate(authority, {
        commonName: name,
        usages: ['serverAuth', 'clientAuth'],
        dnsNames: [`${name}.${namespace}.svc`],
        ...validity,
      });
      found.set(`${name}-${use}`, data(leaf));
    }
  }
  return found;
}
