// Reads and writes Secrets of certificates (`kubernetes.io/tls`, with all trusted CAs as `ca.crt`).
import { type CertifiedKey, issueCertificate } from '../../https/index.ts';
import type { SigningAuthority } from './authority-secret.ts';
import { labelsOf, type WantedCertificate } from './certificate-names.ts';
import type { LeafState } from './certificate-plan.ts';
import { BACKDATED_MS, type CertificateSettings } from './certificate-settings.ts';
import {
  bundleOf,
  isAuthority,
  isKeyOf,
  issuerOf,
  missingPurpose,
  type ParsedCertificate,
  parseCertificates,
} from './parsed-certificate.ts';
import { dataOf, type Secret, SECRET_LABELS, withTexts } from './secret.ts';

/** The content of the Secret of a certificate. */
export interface FoundLeaf extends LeafState {
  readonly wanted: WantedCertificate;
  /** Undefined if the Secret is missing. */
  readonly object: Secret | undefined;
  /** The CAs in the Secret. */
  readonly authorities: readonly ParsedCertificate[];
  /** The CA among them, or among `known`, that issued the certificate, usable or not. */
  readonly issuedBy: ParsedCertificate | undefined;
}

/** @param known CAs that may have issued the certificate, besides those in the Secret */
export function readLeaf(
  object: Secret | undefined,
  wanted: WantedCertificate,
  known: readonly ParsedCertificate[] = [],
): FoundLeaf {
  const { secret } = wanted;
  if (object === undefined) {
    return { secret, wanted, object, trusts: [], authorities: [], issuedBy: undefined };
  }
  const data = dataOf(object);
  const authorities = parseCertificates(data['ca.crt'] ?? '').filter(isAuthority);
  const found = { secret, wanted, object, authorities, trusts: authorities.map(({ id }) => id) };
  const chain = parseCertificates(data['tls.crt'] ?? '');
  const [certificate] = chain;
  const fault = faultOf(certificate, data['tls.key'] ?? '', wanted);
  const issuedBy = issuerOf(chain, [...known, ...authorities]);
  if (certificate === undefined || fault !== undefined) {
    return { ...found, fault, issuedBy };
  }
  const { notBefore, notAfter } = certificate;
  return { ...found, issuedBy, certificate: { notBefore, notAfter, issuer: issuedBy?.id } };
}

function faultOf(
  certificate: ParsedCertificate | undefined,
  key: string,
  wanted: WantedCertificate,
): string | undefined {
  if (certificate === undefined) {
    return 'tls.crt contains no certificate';
  }
  if (!isKeyOf(key, certificate)) {
    return 'tls.key is not the key of the certificate in tls.crt';
  }
  const missing = missingPurpose(certificate, wanted);
  return missing === undefined ? undefined : `the certificate in tls.crt ${missing}`;
}

/** The unexpired CAs in Secrets: first those that issued certificates, newest first, then the others. */
export function survivingAuthorities(leaves: readonly FoundLeaf[], now: number): readonly ParsedCertificate[] {
  const issuers = leaves
    .flatMap(({ issuedBy }) => issuedBy ?? [])
    .toSorted((a, b) => b.x509.validFromDate.getTime() - a.x509.validFromDate.getTime());
  const others = leaves.flatMap(({ issuedBy, authorities }) => (issuedBy === undefined ? [] : authorities));
  const all = new Map([...issuers, ...others].map((authority) => [authority.id, authority]));
  return [...all.values()].filter(({ notAfter }) => notAfter > now);
}

/** Issues a certificate, which does not outlive its CA. */
export function issueLeaf(
  { certificate, key }: SigningAuthority,
  { policyServer, dnsNames, usages }: WantedCertificate,
  now: number,
  { leafLifetimeMs }: CertificateSettings,
): Promise<CertifiedKey> {
  return issueCertificate(
    { cert: certificate.pem, key },
    {
      commonName: policyServer === undefined ? 'Portcullis controller' : 'Portcullis policy server',
      usages,
      dnsNames,
      notBefore: new Date(now - BACKDATED_MS),
      notAfter: new Date(Math.min(now + leafLifetimeMs, certificate.notAfter)),
    },
  );
}

/** The Secret with all trusted CAs, and with a new certificate if given. Keeps foreign data and labels. */
export function leafSecret(
  { object, wanted }: Pick<FoundLeaf, 'object' | 'wanted'>,
  namespace: string,
  trusted: readonly ParsedCertificate[],
  issued: CertifiedKey | undefined,
): Secret {
  const texts = {
    'ca.crt': bundleOf(trusted),
    ...(issued === undefined ? {} : { 'tls.crt': issued.cert, 'tls.key': issued.key }),
  };
  const metadata = object?.metadata ?? { namespace, name: wanted.secret };
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type: object?.type ?? 'kubernetes.io/tls',
    metadata: { ...metadata, labels: { ...object?.metadata.labels, ...SECRET_LABELS, ...labelsOf(wanted) } },
    data: withTexts(object ?? {}, texts),
  };
}
