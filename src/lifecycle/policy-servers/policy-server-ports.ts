import type { PolicyServerObject } from '../../resources/index.ts';

/** The default port of Services in webhook configurations. */
export const SERVICE_PORT = 443;

/** Default ports. */
export const DEFAULT_PORTS = { webhookPort: 8443, readinessProbePort: 8081, metricsPort: 8080 } as const;

/** The control port, unless the spec uses it otherwise. */
const CONTROL_PORT = 8444;

export interface PolicyServerPorts {
  /** Admission reviews. */
  readonly webhook: number;
  /** Probes and metrics. */
  readonly operations: number;
  /** Controllers and other replicas. */
  readonly control: number;
  /** Port of the Service only; its target is `operations`. */
  readonly metrics: number;
}

export function policyServerPorts(spec: PolicyServerObject['spec']): PolicyServerPorts {
  const { webhookPort: webhook, readinessProbePort: operations, metricsPort: metrics } = { ...DEFAULT_PORTS, ...spec };
  const control = [CONTROL_PORT, CONTROL_PORT + 1, CONTROL_PORT + 2].find(
    (port) => port !== webhook && port !== operations,
  );
  return { webhook, operations, control: control ?? CONTROL_PORT, metrics };
}
