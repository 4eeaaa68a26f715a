// Parses certificates in PEM, which users and other programs may have written.
import { createHash, X509Certificate } from 'node:crypto';
import { errorText } from '../values/index.ts';

/** Certificates that are parsed from one text; a bundle has two or three during a rotation. */
const MAX_CERTIFICATES = 32;
/** Longest text that is parsed: that many certificates of 4 KiB. Characters. */
const MAX_PEM_LENGTH = 128 * 1024;
const BLOCK = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;
const BEGIN = /-----BEGIN CERTIFICATE-----/g;

export interface ParsedCertificate {
  /** SHA-256 fingerprint. */
  readonly id: string;
  readonly pem: string;
  /** Milliseconds since 1970. */
  readonly notBefore: number;
  readonly notAfter: number;
  readonly x509: X509Certificate;
}

/** What a text contains. */
export interface CertificateText {
  /** In order. */
  readonly certificates: readonly ParsedCertificate[];
  /** Why the text may contain certificates that are not among these. */
  readonly problems: readonly string[];
}

/** The certificates in a text, in order. Ignores everything else. */
export function parseCertificates(text: string): readonly ParsedCertificate[] {
  return readCertificates(text).certificates;
}

/** The certificates in a text, and what is wrong with it. */
export function readCertificates(text: string): CertificateText {
  if (text.length > MAX_PEM_LENGTH) {
    return { certificates: [], problems: [`longer than ${MAX_PEM_LENGTH} characters`] };
  }
  const blocks = text.match(BLOCK) ?? [];
  const malformed = (text.match(BEGIN) ?? []).length - blocks.length;
  const problems = malformed > 0 ? [`${malformed} certificates are not valid PEM`] : [];
  if (blocks.length > MAX_CERTIFICATES) {
    problems.push(`more than ${MAX_CERTIFICATES} certificates`);
  }
  const certificates = blocks.slice(0, MAX_CERTIFICATES).flatMap((block, index) => {
    try {
      return [parsedCertificate(block)];
    } catch (error) {
      problems.push(`certificate ${index + 1} cannot be parsed: ${errorText(error)}`);
      return [];
    }
  });
  return { certificates, problems };
}

function parsedCertificate(block: string): ParsedCertificate {
  const x509 = new X509Certificate(block);
  const [notBefore, notAfter] = [x509.validFromDate.getTime(), x509.validToDate.getTime()];
  const id = createHash('sha256').update(x509.raw).digest('hex');
  return { id, pem: x509.toString(), notBefore, notAfter, x509 };
}
