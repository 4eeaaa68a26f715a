// The result of one pass over the certificates of an installation.
import type { RotationPhase } from './certificate-plan.ts';

/** A problem that users have to solve. */
export interface CertificateProblem {
  /** `metadata.name` of the Secret. */
  readonly secret: string;
  /** The PolicyServer that uses the Secret. */
  readonly policyServer?: string | undefined;
  /** CamelCase, for events and conditions. */
  readonly reason:
    | 'SecretNotOurs'
    | 'CertificateMissing'
    | 'CertificateInvalid'
    | 'CertificateNotWritten'
    | 'CertificateContested'
    /** A pass failed before its end. */
    | 'CertificatesNotKept';
  readonly message: string;
}

/** An event about a Secret. */
export interface CertificateEvent {
  readonly secret: string;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

export interface CertificatesReport {
  /** PEM of all trusted CAs; undefined if there are none. */
  readonly bundle: string | undefined;
  readonly phase: RotationPhase;
  /** Expiry of certificates by Secret. Milliseconds since 1970. */
  readonly expiries: ReadonlyMap<string, number>;
  readonly problems: readonly CertificateProblem[];
  readonly events: readonly CertificateEvent[];
  /** Errors of writes, which have to be retried. */
  readonly failures: readonly unknown[];
  /** Delay until the next pass. Milliseconds. */
  readonly requeueAfterMs: number;
}
