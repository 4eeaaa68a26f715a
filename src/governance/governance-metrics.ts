// Prometheus metrics of governance policies. Docs: docs/metrics.md.
import { Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import {
  CERTIFICATE_POLICIES,
  CONFIGURATION_POLICIES,
  type KubernetesObject,
  POLICIES,
  POLICY_SETS,
  valueAt,
} from '../resources/index.ts';
import type { SharedCaches } from '../runtime/index.ts';
import type { OtherControllers } from './other-controllers.ts';
import type { Targets } from './targets/targets.ts';

/** The values of `compliance`, besides Unknown. */
const COMPLIANCE = ['Compliant', 'NonCompliant', 'Pending', 'Terminating'] as const;

export interface GovernanceMetricsOptions {
  readonly registry: Registry;
  readonly caches: SharedCaches;
  readonly targets: Pick<Targets, 'hasCopies'>;
  /** The namespace of this cluster's own copies, and of their templates. */
  readonly namespace: string;
  readonly others: Pick<OtherControllers, 'running'>;
}

/** Registers the metrics. None has a policy as a label: there may be thousands. */
export function registerGovernanceMetrics(options: GovernanceMetricsOptions): void {
  const { registry, caches, targets, namespace, others } = options;
  const registers = [registry];
  const policies = caches.cache<KubernetesObject>(POLICIES);
  const isCopy = ({ metadata }: KubernetesObject): boolean => targets.hasCopies(metadata.namespace ?? '');
  const sets = caches.cache<KubernetesObject>(POLICY_SETS);
  const templates = [CONFIGURATION_POLICIES, CERTIFICATE_POLICIES].map((kind) =>
    caches.cache<KubernetesObject>(kind, { namespace }),
  );
  const counted = new Gauge({
    name: 'portcullis_governance_policies',
    help: 'Governance policies by kind and compliance. Copies of Policies are not counted',
    labelNames: ['kind', 'compliance'],
    registers,
    collect() {
      this.reset();
      const roots = policies.list().filter((policy) => !isCopy(policy));
      for (const object of [...roots, ...sets.list(), ...templates.flatMap((cache) => cache.list())]) {
        this.inc({ kind: object.kind, compliance: complianceIn(object) });
      }
    },
  });
  counted.reset();
  const copies = new Gauge({
    name: 'portcullis_governance_copies',
    help: 'Copies of Policies by the cluster that they are for, which is named by its namespace, and by compliance',
    labelNames: ['target', 'compliance'],
    registers,
    collect() {
      this.reset();
      for (const copy of policies.list().filter(isCopy)) {
        this.inc({ target: copy.metadata.namespace ?? '', compliance: complianceIn(copy) });
      }
    },
  });
  copies.reset();
  const stopped = new Gauge({
    name: 'portcullis_governance_other_controllers',
    help: 'Deployments of Open Cluster Management that run. While there is one, governance does nothing',
    registers,
    collect() {
      this.set(others.running().length);
    },
  });
  stopped.set(0);
}

/** The compliance in a status. Texts that are no compliance count as Unknown, so that the number of series is bounded. */
function complianceIn({ status }: KubernetesObject): string {
  const compliance = valueAt(status, 'compliant');
  return COMPLIANCE.find((one) => one === compliance) ?? 'Unknown';
}
