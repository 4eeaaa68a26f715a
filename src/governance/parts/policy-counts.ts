// The metric of governance policies by compliance. Docs: docs/metrics.md.
import { Gauge, type Registry } from 'prom-client';
import { type KubernetesObject, valueAt } from '../../resources/index.ts';

/** The values of `compliance`, besides Unknown. */
const COMPLIANCE = ['Compliant', 'NonCompliant', 'Pending', 'Terminating'] as const;

/** Counts policies. None is a label: there may be thousands. Hub and member count their own kinds, under one name. */
export class PolicyCounts {
  readonly #lists: (() => readonly KubernetesObject[])[] = [];

  constructor(registry: Registry) {
    const lists = this.#lists;
    const counted = new Gauge({
      name: 'portcullis_governance_policies',
      help: 'Governance policies by kind and compliance. Copies of Policies are not counted',
      labelNames: ['kind', 'compliance'],
      registers: [],
      collect() {
        this.reset();
        for (const object of lists.flatMap((list) => list())) {
          this.inc({ kind: object.kind, compliance: complianceIn(object) });
        }
      },
    });
    registry.registerMetric(counted);
  }

  /** Counts what `list` returns whenever metrics are read, besides what is counted already. */
  add(list: () => readonly KubernetesObject[]): void {
    this.#lists.push(list);
  }
}

/** The compliance in a status. Texts that are no compliance count as Unknown, so that the number of series is bounded. */
export function complianceIn({ status }: KubernetesObject): string {
  const compliance = valueAt(status, 'compliant');
  return COMPLIANCE.find((one) => one === compliance) ?? 'Unknown';
}
