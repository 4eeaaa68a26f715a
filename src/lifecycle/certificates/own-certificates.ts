// Issues the certificates of mode `own`.
import type { CertificatePassOptions, PassOptions } from './certificate-pass.ts';
import { CertificatePass } from './certificate-pass.ts';
import type { CertificatesReport } from './certificates-report.ts';
import { IssueRateLimit } from './issue-rate-limit.ts';
import type { Secret } from './secret.ts';

/** Creates and renews the Secrets of the CA and its certificates. */
export class OwnCertificates {
  readonly #options: CertificatePassOptions;
  readonly #rateLimit = new IssueRateLimit();
  /** The last Secret of the CA that had its certificate and key, to restore it after a loss. */
  #lastGood: Secret | undefined;

  constructor(options: CertificatePassOptions) {
    this.#options = options;
  }

  /** Forgets the CA when leadership ends, since another leader may rotate it. */
  forget(): void {
    this.#lastGood = undefined;
  }

  /**
   * Reads all Secrets and writes what is missing or due.
   * @throws ApiError, ClusterError when Secrets cannot be read; Waiting after too many conflicts
   */
  async pass(options: PassOptions, signal: AbortSignal): Promise<CertificatesReport> {
    const pass = new CertificatePass({
      ...this.#options,
      ...options,
      rateLimit: this.#rateLimit,
      lastGood: this.#lastGood,
      signal,
    });
    const report = await pass.run();
    this.#lastGood = pass.lastGood;
    return report;
  }
}
