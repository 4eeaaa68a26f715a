// What one look at the certificates of an installation finds.
import type { RotationPhase } from './certificate-plan.ts';

/** Something that somebody has to do something about. */
export interface CertificateProblem {
  /** `metadata.name` of the Secret. */
  readonly secret: string;
  /** The PolicyServer whose Secret it is. */
  readonly policyServer?: string | undefined;
  /** CamelCase, for events and conditions. */
  readonly reason:
    | 'SecretNotOurs'
    | 'CertificateMissing'
    | 'CertificateInvalid'
    | 'CertificateNotWritten'
    | 'CertificateContested'
    /** The Secrets could not be read, or not by the same process at the same time. */
    | 'CertificatesNotKept';
  readonly message: string;
}

/** Something that was done, for an event about a Secret. */
export interface CertificateNotice {
  readonly secret: string;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

export interface CertificatesReport {
  /** PEM of all CAs that are to be trusted; undefined when none is known. */
  readonly bundle: string | undefined;
  readonly phase: RotationPhase;
  /** When certificates end, by Secret. Milliseconds since 1970. */
  readonly expiries: ReadonlyMap<string, number>;
  readonly problems: readonly CertificateProblem[];
  readonly notices: readonly CertificateNotice[];
  /** What requests failed with: they are to be tried again. */
  readonly failures: readonly unknown[];
  /** Milliseconds. */
  readonly lookAgainMs: number;
}
