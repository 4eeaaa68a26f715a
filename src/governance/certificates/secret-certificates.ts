import { type ParsedCertificate, readCertificates } from '../../https/index.ts';
import type { KubernetesObject, Labels } from '../../resources/index.ts';
import { valueAt } from '../../values/index.ts';
import { alternativeNames, MAX_ALTERNATIVE_NAMES } from './alternative-names.ts';

/** Names the key with the certificate in a Secret. */
const KEY_LABEL = 'certificate_key_name';
/** Name the certificate in messages; the first one counts. */
const NAME_LABELS = ['certificate-name', 'certmanager.k8s.io/certificate-name'];
const DEFAULT_KEY = 'tls.crt';

/** One certificate of a Secret. */
export interface SecretCertificate {
  /** Position in the Secret. */
  readonly index: number;
  /** Milliseconds since 1970. */
  readonly notBefore: number;
  readonly notAfter: number;
  readonly isCa: boolean;
  readonly sans: readonly string[];
}

/** The certificates of a Secret. */
export interface SecretCertificates {
  readonly secret: string;
  /** The name for users. */
  readonly name: string;
  readonly certificates: readonly SecretCertificate[];
  /** Why certificates of the Secret could not be checked. */
  readonly problems: readonly string[];
}

/** A Secret without its values: what evaluation needs to know of it. */
export interface CertificateSecret {
  readonly labels: Labels;
  /** Undefined for a Secret that is not about certificates. */
  readonly found?: SecretCertificates;
}

/** The certificates of Secrets, each Secret read once: a cluster's cache has a new object after each change. */
export class KnownCertificates {
  readonly #known = new WeakMap<KubernetesObject, CertificateSecret>();

  /** What evaluation needs to know of a Secret. */
  in(secret: KubernetesObject): CertificateSecret {
    const known = this.#known.get(secret) ?? certificateSecret(secret);
    this.#known.set(secret, known);
    return known;
  }
}

/** A Secret without its values. */
export function certificateSecret(secret: KubernetesObject): CertificateSecret {
  const found = secretCertificates(secret);
  return { labels: secret.metadata.labels ?? {}, ...(found === undefined ? {} : { found }) };
}

/**
 * The certificates of a Secret, all of its chain. Undefined for a Secret that is not about certificates: without a key
 * `tls.crt`, or with an empty one, as while a certificate is being issued. A key that a label names must contain one.
 */
function secretCertificates(secret: KubernetesObject): SecretCertificates | undefined {
  const label = labelOf(secret, KEY_LABEL);
  const key = label || DEFAULT_KEY;
  const encoded = valueAt(secret, 'data', key);
  const secretName = secret.metadata.name ?? '';
  const name = NAME_LABELS.map((each) => labelOf(secret, each)).find(Boolean) ?? secretName;
  if (typeof encoded !== 'string' || encoded === '') {
    const problem = `no certificate in the key ${key}`;
    return label === '' ? undefined : { secret: secretName, name, certificates: [], problems: [problem] };
  }
  return { secret: secretName, name, ...checkedCertificates(encoded) };
}

function checkedCertificates(encoded: string): Pick<SecretCertificates, 'certificates' | 'problems'> {
  // A cluster stores no Secret of more than 1 MiB.
  const text = readCertificates(Buffer.from(encoded, 'base64').toString('latin1'));
  const problems = [...text.problems];
  const certificates = text.certificates.flatMap((certificate, index) => {
    const checked = checkedCertificate(certificate, index);
    return typeof checked === 'string' ? (problems.push(checked), []) : [checked];
  });
  return { certificates, problems: certificates.length + problems.length === 0 ? ['no certificate'] : problems };
}

/** A message when the certificate cannot be checked. */
function checkedCertificate(
  { x509, notBefore, notAfter }: ParsedCertificate,
  index: number,
): SecretCertificate | string {
  const sans = alternativeNames(x509);
  if (sans === undefined) {
    return `certificate ${index + 1} has more than ${MAX_ALTERNATIVE_NAMES} names, or malformed ones`;
  }
  return Number.isNaN(notBefore) || Number.isNaN(notAfter)
    ? `certificate ${index + 1} has no valid time`
    : { index, notBefore, notAfter, isCa: x509.ca, sans };
}

function labelOf({ metadata }: KubernetesObject, name: string): string {
  const labels = metadata.labels ?? {};
  return Object.hasOwn(labels, name) ? (labels[name] ?? '') : '';
}
