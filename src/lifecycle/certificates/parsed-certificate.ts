// Checks certificates, which users and other programs may have written.
import { createPrivateKey, type KeyObject } from 'node:crypto';
import type { ParsedCertificate } from '../../https/index.ts';

export { parseCertificates } from '../../https/index.ts';
export type { ParsedCertificate } from '../../https/index.ts';

const USAGE_OIDS = { serverAuth: '1.3.6.1.5.5.7.3.1', clientAuth: '1.3.6.1.5.5.7.3.2' } as const;

/** Certificates as one text, without duplicates. Does not depend on their order. */
export function bundleOf(certificates: Iterable<ParsedCertificate>): string {
  return [...new Map([...certificates].map((certificate) => [certificate.id, certificate])).values()]
    .toSorted((a, b) => a.notBefore - b.notBefore || (a.id < b.id ? -1 : 1))
    .map(({ pem }) => pem)
    .join('');
}

/** Whether a text is the private key of a certificate. */
export function isKeyOf(text: string, { x509 }: ParsedCertificate): boolean {
  const key = privateKey(text);
  return key !== undefined && x509.checkPrivateKey(key);
}

export function isAuthority({ x509 }: ParsedCertificate): boolean {
  return x509.ca;
}

/** Whether a text is the private key of a CA with the algorithm of ours, ECDSA on P-256. */
export function isSigningKeyOf(text: string, authority: ParsedCertificate): boolean {
  return authority.x509.publicKey.asymmetricKeyDetails?.namedCurve === 'prime256v1' && isKeyOf(text, authority);
}

/**
 * The CA that issued a certificate, directly or through intermediate CAs. Verifies signatures, because names prove nothing.
 * @param chain the certificate, then intermediate ones
 */
export function issuerOf(
  chain: readonly ParsedCertificate[],
  authorities: readonly ParsedCertificate[],
): ParsedCertificate | undefined {
  const [first, ...intermediates] = chain;
  if (first === undefined) {
    return undefined;
  }
  const direct = authorities.find((authority) => isSignedBy(first, authority));
  const next = intermediates.findIndex((each) => isAuthority(each) && isSignedBy(first, each));
  return direct ?? (next === -1 ? undefined : issuerOf(intermediates.slice(next), authorities));
}

/** A message about a DNS name or usage that a certificate lacks; undefined if it has all. */
export function missingPurpose(
  { x509 }: ParsedCertificate,
  { dnsNames, usages }: { readonly dnsNames: readonly string[]; readonly usages: readonly (keyof typeof USAGE_OIDS)[] },
): string | undefined {
  const name = dnsNames.find((each) => x509.checkHost(each, { subject: 'never', wildcards: false }) === undefined);
  if (name !== undefined) {
    return `is not for ${name}`;
  }
  // A certificate without the extension is valid for all usages.
  const permitted = x509.keyUsage as readonly string[] | undefined;
  const usage = usages.find((each) => permitted !== undefined && !permitted.includes(USAGE_OIDS[each]));
  return usage === undefined ? undefined : `is not for use as ${usage === 'serverAuth' ? 'a server' : 'a client'}`;
}

function privateKey(text: string): KeyObject | undefined {
  try {
    return createPrivateKey(text);
  } catch {
    return undefined;
  }
}

function isSignedBy({ x509 }: ParsedCertificate, authority: ParsedCertificate): boolean {
  return x509.checkIssued(authority.x509) && x509.verify(authority.x509.publicKey);
}
