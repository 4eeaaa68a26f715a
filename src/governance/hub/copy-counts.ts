import { Gauge, type Registry } from 'prom-client';
import type { Policy } from '../../resources/index.ts';
import { complianceIn } from '../parts/policy-counts.ts';

/** Registers the metric of copies by cluster. @param copies those of all clusters */
export function countCopies(registry: Registry, copies: () => readonly Policy[]): void {
  const counted = new Gauge({
    name: 'portcullis_governance_copies',
    help: 'Copies of Policies by the cluster that they are for, which is named by its namespace, and by compliance',
    labelNames: ['target', 'compliance'],
    registers: [],
    collect() {
      this.reset();
      for (const copy of copies()) {
        this.inc({ target: copy.metadata.namespace ?? '', compliance: complianceIn(copy) });
      }
    },
  });
  registry.registerMetric(counted);
}
