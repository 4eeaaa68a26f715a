// What a PEM text holds, checked: Secrets are written by people and other programs, too.
import { createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';

/** Certificates of one text that are looked at: a bundle during a change has two or three. */
const MAX_CERTIFICATES = 32;
/** Longest text that is looked at: that many certificates of 4 KiB. Characters. */
const MAX_PEM_LENGTH = 128 * 1024;
const BLOCK = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

const USAGE_OIDS = { serverAuth: '1.3.6.1.5.5.7.3.1', clientAuth: '1.3.6.1.5.5.7.3.2' } as const;

/** A certificate, as far as it matters here. */
export interface ParsedCertificate {
  /** Whose it is, and nobody else's: its fingerprint. */
  readonly id: string;
  readonly pem: string;
  /** Milliseconds since 1970. */
  readonly notBefore: number;
  readonly notAfter: number;
  readonly x509: X509Certificate;
}

/** The certificates of a text, in its order. What is none is left out. */
export function parseCertificates(text: string): readonly ParsedCertificate[] {
  if (text.length > MAX_PEM_LENGTH) {
    return [];
  }
  return text
    .matchAll(BLOCK)
    .take(MAX_CERTIFICATES)
    .flatMap(([block]) => {
      try {
        const x509 = new X509Certificate(block);
        const pem = x509.toString();
        const [notBefore, notAfter] = [x509.validFromDate.getTime(), x509.validToDate.getTime()];
        const id = createHash('sha256').update(x509.raw).digest('hex');
        return [{ id, pem, notBefore, notAfter, x509 }];
      } catch {
        return [];
      }
    })
    .toArray();
}

/** One text for several certificates, each once; empty for none. The same for the same ones, in whatever order they come. */
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

/** Whether a certificate is a CA's. */
export function isAuthority({ x509 }: ParsedCertificate): boolean {
  return x509.ca;
}

/** Whether a text is the private key of a CA that signs as ours do: ECDSA on P-256. */
export function isSigningKeyOf(text: string, authority: ParsedCertificate): boolean {
  return authority.x509.publicKey.asymmetricKeyDetails?.namedCurve === 'prime256v1' && isKeyOf(text, authority);
}

/**
 * The CA that a certificate comes from, directly or through others that come with it. By their keys: names prove nothing.
 * @param chain the certificate, then those between
 */
export function issuerOf(
  chain: readonly ParsedCertificate[],
  authorities: readonly ParsedCertificate[],
): ParsedCertificate | undefined {
  const [first, ...between] = chain;
  if (first === undefined) {
    return undefined;
  }
  const direct = authorities.find((authority) => isSignedBy(first, authority));
  const next = between.findIndex((each) => isAuthority(each) && isSignedBy(first, each));
  return direct ?? (next === -1 ? undefined : issuerOf(between.slice(next), authorities));
}

/** What a certificate is not for, of what it is to be for, in words; undefined when it is for all of that. */
export function missingPurpose(
  { x509 }: ParsedCertificate,
  { dnsNames, usages }: { readonly dnsNames: readonly string[]; readonly usages: readonly (keyof typeof USAGE_OIDS)[] },
): string | undefined {
  const name = dnsNames.find((each) => x509.checkHost(each, { subject: 'never', wildcards: false }) === undefined);
  if (name !== undefined) {
    return `is not for ${name}`;
  }
  // Without that extension a certificate is for everything.
  const held = x509.keyUsage as readonly string[] | undefined;
  const usage = usages.find((each) => held !== undefined && !held.includes(USAGE_OIDS[each]));
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
