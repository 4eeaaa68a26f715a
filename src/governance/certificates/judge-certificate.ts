import type { CertificateRequirements } from './certificate-requirements.ts';
import type { SecretCertificate } from './secret-certificates.ts';

const NS_PER_MS = 1_000_000n;

/** What is wrong with a certificate, and when that changes. */
export interface CertificateFaults {
  /** Undefined if it does not expire soon. The CA variant only where the policy has a duration for CAs. */
  readonly expiring: 'certificate' | 'ca' | undefined;
  readonly isExpired: boolean;
  readonly tooLong: 'certificate' | 'ca' | undefined;
  /** Undefined when its names were not checked, because the patterns take too long. */
  readonly isSanMismatch: boolean | undefined;
  /** The first moment with another verdict, milliseconds since 1970; undefined if there is none. */
  readonly nextChange: number | undefined;
}

/** @param now milliseconds since 1970 */
export function judgeCertificate(
  certificate: SecretCertificate,
  requirements: CertificateRequirements,
  now: number,
): CertificateFaults {
  const { notAfter, isCa, sans } = certificate;
  const minimumCa = isCa ? requirements.minimumCa : undefined;
  const expiringFrom = firstMoment(notAfter, minimumCa ?? requirements.minimum);
  // It is valid until the end of `notAfter`.
  const expiredFrom = notAfter + 1;
  const nextChange = [expiringFrom, expiredFrom].filter((moment) => moment > now).toSorted((a, b) => a - b)[0];
  return {
    expiring: now < expiringFrom ? undefined : minimumCa === undefined ? 'certificate' : 'ca',
    isExpired: now >= expiredFrom,
    tooLong: tooLong(certificate, requirements),
    isSanMismatch: requirements.names.forbid(sans),
    nextChange,
  };
}

export function isNonCompliant({ expiring, tooLong: isLong, isSanMismatch }: CertificateFaults): boolean {
  return expiring !== undefined || isLong !== undefined || isSanMismatch === true;
}

/** The first millisecond at which less than the duration remains. */
function firstMoment(notAfter: number, minimum: bigint): number {
  const threshold = BigInt(notAfter) * NS_PER_MS - minimum;
  return Number(threshold / NS_PER_MS) + (threshold < 0n && threshold % NS_PER_MS !== 0n ? 0 : 1);
}

/**
 * The CA of a chain lives longer than the certificates that it issues. Upstream does not look at it, so that only
 * `maximumCADuration` applies to it.
 */
function tooLong(
  { index, isCa, notBefore, notAfter }: SecretCertificate,
  { maximum, maximumCa }: CertificateRequirements,
): CertificateFaults['tooLong'] {
  const isOfCa = isCa && (maximumCa !== undefined || index > 0);
  const limit = isOfCa ? maximumCa : maximum;
  const isLonger = limit !== undefined && BigInt(notAfter - notBefore) * NS_PER_MS > limit;
  return isLonger ? (isOfCa ? 'ca' : 'certificate') : undefined;
}
