// Prometheus metrics of certificates. Docs: docs/certificates.md.
import { Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import type { RotationPhase } from './certificate-plan.ts';
import type { CertificatesReport } from './certificates-report.ts';

const PHASES: readonly RotationPhase[] = ['Stable', 'Introducing', 'Retiring'];

/** Only the leader has values. */
export class CertificateMetrics {
  readonly #expiry;
  readonly #phase;
  readonly #problems;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#expiry = new Gauge({
      name: 'portcullis_certificate_expiry_timestamp_seconds',
      help: 'When the certificate in a Secret expires, in seconds since 1970',
      labelNames: ['secret'],
      registers,
    });
    this.#phase = new Gauge({
      name: 'portcullis_certificate_rotation_phase',
      help: 'Phase of the rotation of the CA: 1 for the current phase',
      labelNames: ['phase'],
      registers,
    });
    this.#problems = new Gauge({
      name: 'portcullis_certificate_problems',
      help: 'Secrets of certificates that are missing, unusable, or of another owner',
      registers,
    });
    this.forget();
  }

  update({ expiries, phase, problems }: CertificatesReport): void {
    this.#expiry.reset();
    for (const [secret, notAfter] of expiries) {
      this.#expiry.set({ secret }, notAfter / 1000);
    }
    for (const each of PHASES) {
      this.#phase.set({ phase: each }, each === phase ? 1 : 0);
    }
    this.#problems.set(problems.length);
  }

  /** Removes all values when leadership ends. */
  forget(): void {
    this.#expiry.reset();
    this.#phase.reset();
    this.#problems.remove();
  }
}
