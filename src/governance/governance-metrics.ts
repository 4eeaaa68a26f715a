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

/** The values of `compliance`, besides Unknown. */
const COMPLIANCE = ['Compliant', 'NonCompliant', 'Pending', 'Terminating'] as const;

export interface GovernanceMetricsOptions {
  readonly registry: Registry;
  readonly caches: SharedCaches;
  /** The namespace with copies of Policies, and their templates. */
  readonly clusterName: string;
  readonly others: Pick<OtherControllers, 'running'>;
}

/** Registers the metrics. None has a policy as a label: there may be thousands. */
export function registerGovernanceMetrics({ registry, caches, clusterName, others }: GovernanceMetricsOptions): void {
  const registers = [registry];
  const namespace = clusterName;
  const policies = caches.cache<KubernetesObject>(POLICIES);
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
      const roots = policies.list().filter(({ metadata }) => metadata.namespace !== clusterName);
      for (const object of [...roots, ...sets.list(), ...templates.flatMap((cache) => cache.list())]) {
        this.inc({ kind: object.kind, compliance: complianceIn(object) });
      }
    },
  });
  counted.reset();
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
