// Prometheus metrics of reports. Docs: docs/metrics.md.
import { Counter, Gauge, type Registry } from 'prom-client';
import { ApiError } from '../../cluster/index.ts';
import type { FollowedReports } from './followed-reports.ts';

/** The metrics. None has a namespace or policy as a label: there may be thousands. */
export class ReportMetrics {
  readonly #writes: Counter<'kind' | 'verb' | 'code'>;

  constructor(registry: Registry, followed: readonly Pick<FollowedReports, 'type' | 'state'>[]) {
    const registers = [registry];
    this.#writes = new Counter({
      name: 'portcullis_audit_report_writes_total',
      help: 'Requests that write reports of findings, by kind, verb and code',
      labelNames: ['kind', 'verb', 'code'],
      registers,
    });
    const served = new Gauge({
      name: 'portcullis_audit_reports_served',
      help: 'Whether the cluster serves a kind of reports, and lets the auditor list it',
      labelNames: ['kind'],
      registers,
      collect() {
        for (const { type, state } of followed) {
          this.set({ kind: type.kind }, state === 'Served' ? 1 : 0);
        }
      },
    });
    served.reset();
  }

  async counted<Result>(kind: string, verb: 'create' | 'update' | 'delete', request: Promise<Result>): Promise<Result> {
    try {
      const result = await request;
      this.#writes.inc({ kind, verb, code: '200' });
      return result;
    } catch (error) {
      this.#writes.inc({ kind, verb, code: error instanceof ApiError ? String(error.code) : 'none' });
      throw error;
    }
  }
}
