// Prometheus metrics of the auditor. Docs: docs/metrics.md.
import { Counter, Gauge, type Metric, type Registry } from 'prom-client';
import type { ApiResource } from '../../cluster/index.ts';
import type { Coverage } from '../coverage.ts';
import type { AuditFinding } from '../finding.ts';
import type { KindAudit } from './kind-audit.ts';
import type { PolicyVersion } from './policy-version.ts';

/** Most series with the name of a policy: with tenants there may be thousands of policies. */
const MAX_SERIES = 2_000;

/** What metrics are read from. */
export interface MetricsSource {
  readonly evaluations: () => number;
  readonly findings: () => Iterable<AuditFinding>;
  readonly kinds: () => Iterable<KindAudit>;
  readonly coverage: () => Iterable<Coverage>;
  readonly versions: () => Iterable<PolicyVersion>;
}

export class AuditorMetrics {
  readonly #failures: Counter<'group' | 'kind'>;

  constructor(registry: Registry, source: MetricsSource) {
    this.#failures = new Counter({
      name: 'portcullis_audit_read_failures_total',
      help: 'Lists and watches of audited kinds that failed',
      labelNames: ['group', 'kind'],
      registers: [registry],
    });
    [evaluations(source), findings(source), unlisted(source), coverage(source), pending(source), scans(source)].forEach(
      (metric) => registry.registerMetric(metric),
    );
  }

  /** Counts a list or watch that failed. */
  failed({ group, kind }: ApiResource): void {
    this.#failures.inc({ group, kind });
  }
}

function evaluations(source: MetricsSource): Metric {
  let counted = 0;
  return new Counter({
    name: 'portcullis_audit_evaluations_total',
    help: 'Evaluations of an existing object by a policy',
    registers: [],
    collect() {
      this.inc(source.evaluations() - counted);
      counted = source.evaluations();
    },
  });
}

function findings(source: MetricsSource): Metric {
  return new Gauge({
    name: 'portcullis_audit_findings',
    help: 'Findings about existing objects, by mode of the policy and by result',
    labelNames: ['mode', 'result'],
    registers: [],
    collect() {
      this.reset();
      for (const { mode, result } of source.findings()) {
        this.inc({ mode, result });
      }
    },
  });
}

function unlisted(source: MetricsSource): Metric {
  return new Gauge({
    name: 'portcullis_audit_unlisted_findings',
    help: 'Findings that are counted only, because the auditor keeps no more',
    registers: [],
    collect() {
      this.set([...source.coverage()].reduce((sum, entry) => sum + (entry.unlisted ?? 0), 0));
    },
  });
}

function coverage(source: MetricsSource): Metric {
  return new Gauge({
    name: 'portcullis_audit_coverage',
    help: 'Entries of coverage, each of a policy and a kind, by state',
    labelNames: ['state'],
    registers: [],
    collect() {
      this.reset();
      for (const { state } of source.coverage()) {
        this.inc({ state });
      }
    },
  });
}

function pending(source: MetricsSource): Metric {
  return new Gauge({
    name: 'portcullis_audit_pending_objects',
    help: 'Changed objects that wait to be judged',
    registers: [],
    collect() {
      this.set([...source.kinds()].reduce((sum, kind) => sum + kind.pending, 0));
    },
  });
}

function scans(source: MetricsSource): Metric {
  return new Gauge({
    name: 'portcullis_audit_last_complete_scan_timestamp_seconds',
    help: 'When all objects of a kind were last known to be judged by a policy; 0: never',
    labelNames: ['policy', 'group', 'kind'],
    registers: [],
    collect() {
      this.reset();
      for (const { policy, group, kind, at } of lastScans(source).take(MAX_SERIES)) {
        this.set({ policy, group, kind }, at / 1000);
      }
    },
  });
}

function* lastScans({ kinds, versions }: MetricsSource): Generator<{
  readonly policy: string;
  readonly group: string;
  readonly kind: string;
  readonly at: number;
}> {
  const policies = [...versions()];
  for (const audit of kinds()) {
    const { group, kind } = audit.type;
    for (const { id, name } of policies) {
      if (audit.isFor(id)) {
        yield { policy: name, group, kind, at: audit.completeAt(id) ?? 0 };
      }
    }
  }
}
