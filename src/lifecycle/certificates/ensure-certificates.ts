import type { Logger } from 'pino';
import type { Cluster } from '../../cluster/index.ts';
import { pause, SYSTEM_CLOCK, Waiting } from '../../runtime/index.ts';
import { errorText } from '../../values/index.ts';
import type { CertificateSettings } from './certificate-settings.ts';
import { OwnCertificates } from './own-certificates.ts';

export interface EnsureCertificatesOptions {
  readonly cluster: Cluster;
  /** Of the product. */
  readonly namespace: string;
  readonly settings: CertificateSettings;
  readonly log: Logger;
}

/**
 * Makes sure that the CA and the controller's own certificates are there and good, before anybody leads: what a process
 * serves with must be there when it begins. Changes nothing that is good, and may be done by several at once.
 * @throws ApiError, ClusterError when the cluster does not let it
 */
export async function ensureCertificates(options: EnsureCertificatesOptions, signal: AbortSignal): Promise<void> {
  const { log, ...rest } = options;
  const own = new OwnCertificates({ ...rest, log, now: () => SYSTEM_CLOCK.date() });
  while (!signal.aborted) {
    try {
      const report = await own.pass({ policyServers: [], isLeading: false, isTold: () => false }, signal);
      for (const { secret, reason, message } of [...report.problems, ...report.notices]) {
        log.warn({ secret, reason, detail: message }, 'certificates were looked at');
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
      log.debug({ error: errorText(error) }, 'certificates are looked at again');
      await pause(SYSTEM_CLOCK, error.afterMs, signal);
    }
  }
}
