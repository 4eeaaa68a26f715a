import type { Logger } from 'pino';
import type { Cluster } from '../../cluster/index.ts';
import { pause, SYSTEM_CLOCK, Waiting } from '../../runtime/index.ts';
import { errorText } from '../../values/index.ts';
import type { CertificateSettings } from './certificate-settings.ts';
import { OwnCertificates } from './own-certificates.ts';

export interface EnsureCertificatesOptions {
  readonly cluster: Cluster;
  /** The namespace of the product. */
  readonly namespace: string;
  readonly settings: CertificateSettings;
  readonly log: Logger;
}

/**
 * Issues the CA and the controller's own certificates if they are missing or unusable. Runs before leader election, because a
 * controller needs its certificates to start; several controllers may run it at once.
 * @throws ApiError, ClusterError
 */
export async function ensureCertificates(options: EnsureCertificatesOptions, signal: AbortSignal): Promise<void> {
  const { log, ...rest } = options;
  const own = new OwnCertificates({ ...rest, log, now: () => SYSTEM_CLOCK.date() });
  while (!signal.aborted) {
    try {
      const report = await own.pass({ policyServers: [], isLeading: false, isPublished: () => false }, signal);
      for (const { secret, reason, message } of [...report.problems, ...report.events]) {
        log.warn({ secret, reason, detail: message }, 'certificates checked');
      }
      const [failure] = report.failures;
      if (failure !== undefined) {
        throw failure;
      }
      return;
    } catch (error) {
      if (!(error instanceof Waiting)) {
        throw error;
      }
      log.debug({ error: errorText(error) }, 'checking certificates again');
      await pause(SYSTEM_CLOCK, error.afterMs, signal);
    }
  }
}
