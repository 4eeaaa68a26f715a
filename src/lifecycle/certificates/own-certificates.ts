// Certificates that the product makes itself.
import type { CertificatePassOptions, PassOptions } from './certificate-pass.ts';
import { CertificatePass } from './certificate-pass.ts';
import type { CertificatesReport } from './certificates-report.ts';
import { IssueRestraint } from './issue-restraint.ts';
import type { Secret } from './secret.ts';

/** Keeps the Secrets of a CA and its certificates. */
export class OwnCertificates {
  readonly #options: CertificatePassOptions;
  readonly #restraint = new IssueRestraint();
  /** The Secret of the CA when it was good for the last time, in case that it is lost. */
  #lastGood: Secret | undefined;

  constructor(options: CertificatePassOptions) {
    this.#options = options;
  }

  /** Forgets what is known of the CA: others may have changed it since. */
  forget(): void {
    this.#lastGood = undefined;
  }

  /**
   * Looks at everything and writes what is to be written.
   * @throws ApiError, ClusterError when the cluster cannot be looked at; Waiting when others write at the same time.
   */
  async pass(options: PassOptions, signal: AbortSignal): Promise<CertificatesReport> {
    const pass = new CertificatePass({
      ...this.#options,
      ...options,
      restraint: this.#restraint,
      lastGood: this.#lastGood,
      signal,
    });
    const report = await pass.run();
    this.#lastGood = pass.good;
    return report;
  }
}
