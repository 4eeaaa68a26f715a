import { X509Certificate } from 'node:crypto';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { certificateBytes } from './certificate-bytes.ts';

/** The answer of `crypto/v1/is_certificate_trusted`. `reason` is empty when trusted. */
export interface CertificateTrust {
  readonly trusted: boolean;
  readonly reason: string;
}

export const EXPIRED_REASON = 'Certificate is being used after its expiration date';
export const NOT_YET_VALID_REASON = 'Certificate is being used before its validity date';
export const UNTRUSTED_REASON = 'Certificate is not trusted by the provided cert chain';
export const CA_REASON = 'Certificate not trusted: it is the certificate of an authority, not of an end entity';

/** Maximum number of certificates in a chain. Public chains have 2 to 4. */
const MAX_CHAIN = 16;
/** Maximum number of issuers tried, each with a signature check of about 0.1 ms. */
const MAX_SIGNATURE_CHECKS = 64;

const RFC3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;

/**
 * Checks whether a certificate is valid at a time and leads to a trusted root: the last one of the given chain, whose
 * own dates are ignored, or one of Mozilla's roots without a chain. Key usages and names are not checked.
 */
export class CertificateVerifier {
  #mozillaRoots: readonly X509Certificate[] | undefined;

  /** `payload` is the capability's payload. Throws an Error when it is invalid or contains no certificate. */
  verify(payload: JsonValue): CertificateTrust {
    const request = objectIn(payload, 'the payload');
    const certificate = readCertificate(request.cert ?? null);
    const at = readTime(request.not_after) ?? new Date();
    const chain = readChain(request.cert_chain);
    if (certificate.ca) {
      return { trusted: false, reason: CA_REASON };
    }
    const dates = datesReason(certificate, at);
    if (dates !== undefined) {
      return { trusted: false, reason: dates };
    }
    const roots = chain === undefined ? this.#roots() : chain.slice(-1);
    const search = new PathSearch(roots, chain?.slice(0, -1) ?? [], at);
    return search.reachesRoot(certificate, 0)
      ? { trusted: true, reason: '' }
      : { trusted: false, reason: search.datesReason ?? UNTRUSTED_REASON };
  }

  #roots(): readonly X509Certificate[] {
    // Loaded on demand, because the module loads TLS, which threads of guests do not need.
    this.#mozillaRoots ??= process.getBuiltinModule('node:tls').rootCertificates.map((pem) => new X509Certificate(pem));
    return this.#mozillaRoots;
  }
}

/** Searches a path of signatures from a certificate to a root. */
class PathSearch {
  readonly #roots: readonly X509Certificate[];
  readonly #intermediates: readonly X509Certificate[];
  readonly #at: Date;
  #checks = 0;
  /** Set when a path failed only because of the dates of an intermediate. */
  datesReason: string | undefined;

  constructor(roots: readonly X509Certificate[], intermediates: readonly X509Certificate[], at: Date) {
    this.#roots = roots;
    this.#intermediates = intermediates;
    this.#at = at;
  }

  reachesRoot(certificate: X509Certificate, depth: number): boolean {
    if (this.#roots.some((root) => this.#isIssuedBy(certificate, root))) {
      return true;
    }
    if (depth >= MAX_CHAIN) {
      return false;
    }
    return this.#intermediates.some((issuer) => {
      if (issuer === certificate || !issuer.ca || !this.#isIssuedBy(certificate, issuer)) {
        return false;
      }
      const reason = datesReason(issuer, this.#at);
      if (reason !== undefined) {
        this.datesReason = reason;
        return false;
      }
      return this.reachesRoot(issuer, depth + 1);
    });
  }

  #isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
    // checkIssued compares names and key identifiers; only verify checks the signature.
    return (
      certificate.checkIssued(issuer) && ++this.#checks <= MAX_SIGNATURE_CHECKS && certificate.verify(issuer.publicKey)
    );
  }
}

function datesReason(certificate: X509Certificate, at: Date): string | undefined {
  if (at > certificate.validToDate) {
    return EXPIRED_REASON;
  }
  return at < certificate.validFromDate ? NOT_YET_VALID_REASON : undefined;
}

function readTime(value: JsonValue | undefined): Date | undefined {
  if (value === undefined || value === null) {
    return undefined;
  }
  const time = typeof value === 'string' && RFC3339.test(value) ? new Date(value) : undefined;
  if (time === undefined || Number.isNaN(time.getTime())) {
    throw new Error('not_after: expected a time in RFC 3339 such as 2030-01-01T00:00:00Z');
  }
  return time;
}

function readChain(value: JsonValue | undefined): X509Certificate[] | undefined {
  if (value === undefined || value === null) {
    return undefined;
  }
  if (!Array.isArray(value) || value.length > MAX_CHAIN) {
    throw new Error(`cert_chain: expected a list of at most ${MAX_CHAIN} certificates`);
  }
  return value.map(readCertificate);
}

function readCertificate(value: JsonValue): X509Certificate {
  const { encoding, data } = objectIn(value, 'a certificate');
  if (encoding !== 'Pem' && encoding !== 'Der') {
    throw new Error('encoding: expected "Pem" or "Der"');
  }
  const bytes = certificateBytes(data, 'data');
  // The constructor accepts both encodings; the request names the expected one.
  if ((encoding === 'Pem') !== bytes.includes('-----BEGIN CERTIFICATE-----')) {
    throw new Error(`data: expected a certificate in ${encoding} encoding`);
  }
  try {
    return new X509Certificate(bytes);
  } catch (error) {
    throw new Error(`data: expected a certificate in ${encoding} encoding`, { cause: error });
  }
}

function objectIn(value: JsonValue, what: string): JsonObject {
  if (!isJsonObject(value)) {
    throw new Error(`${what}: expected an object`);
  }
  return value;
}
