// The Service, PodDisruptionBudget and NetworkPolicy of a PolicyServer.
import type { JsonObject, PolicyServerObject } from '../../resources/index.ts';
import {
  policyServerLabels,
  policyServerObjectName,
  policyServerSelector,
} from '../certificates/policy-server-names.ts';
import { policyServerPorts, SERVICE_PORT } from './policy-server-ports.ts';
import type { PolicyServerSettings } from './policy-server-settings.ts';

/** Pods that may connect to control ports: controllers and replicas. */
export const PRODUCT_PODS = { matchLabels: { 'app.kubernetes.io/part-of': 'portcullis' } } as const;

/**
 * Peers that may connect to ports with metrics: pods of namespaces with this label. Kubelets of the same node, which probe, are
 * always allowed: https://kubernetes.io/docs/concepts/services-networking/network-policies/
 */
export const METRICS_PEERS = [{ namespaceSelector: { matchLabels: { 'portcullis.dev/metrics': 'true' } } }];

/** `v1` Service, which webhook configurations refer to. */
export function policyServerService(server: PolicyServerObject, { namespace }: PolicyServerSettings): JsonObject {
  const ports = policyServerPorts(server.spec);
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: metadataOf(server, namespace),
    spec: {
      type: 'ClusterIP',
      selector: policyServerSelector(nameOf(server)),
      ports: [
        { name: 'webhook', port: SERVICE_PORT, protocol: 'TCP', targetPort: 'webhook' },
        { name: 'metrics', port: ports.metrics, protocol: 'TCP', targetPort: 'readiness' },
      ],
    },
  };
}

/**
 * `policy/v1` PodDisruptionBudget: as in the spec; by default one pod at a time if there are several. Undefined: none.
 * Unhealthy pods do not block the drain of a node.
 */
export function policyServerDisruptionBudget(
  server: PolicyServerObject,
  { namespace }: PolicyServerSettings,
): JsonObject | undefined {
  const { minAvailable, maxUnavailable, replicas } = server.spec;
  const amount =
    minAvailable !== undefined
      ? { minAvailable }
      : maxUnavailable !== undefined
        ? { maxUnavailable }
        : replicas > 1
          ? { maxUnavailable: 1 }
          : undefined;
  return amount === undefined
    ? undefined
    : {
        apiVersion: 'policy/v1',
        kind: 'PodDisruptionBudget',
        metadata: metadataOf(server, namespace),
        spec: {
          ...amount,
          selector: { matchLabels: policyServerSelector(nameOf(server)) },
          unhealthyPodEvictionPolicy: 'AlwaysAllow',
        },
      };
}

/**
 * `networking.k8s.io/v1` NetworkPolicy. The addresses of API servers are unknown, so reviews are allowed from anywhere;
 * metrics only from {@link METRICS_PEERS}, control ports only from our own pods. Egress is not restricted: modules come
 * from any source that policies name.
 */
export function policyServerNetworkPolicy(server: PolicyServerObject, { namespace }: PolicyServerSettings): JsonObject {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: metadataOf(server, namespace),
    spec: {
      podSelector: { matchLabels: policyServerSelector(nameOf(server)) },
      policyTypes: ['Ingress'],
      ingress: [
        { ports: [{ port: 'webhook', protocol: 'TCP' }] },
        { ports: [{ port: 'readiness', protocol: 'TCP' }], from: METRICS_PEERS },
        { ports: [{ port: 'control', protocol: 'TCP' }], from: [{ podSelector: PRODUCT_PODS }] },
      ],
    },
  };
}

function nameOf({ metadata }: PolicyServerObject): string {
  return metadata.name ?? '';
}

function metadataOf(server: PolicyServerObject, namespace: string): JsonObject {
  const name = nameOf(server);
  return { name: policyServerObjectName(name), namespace, labels: policyServerLabels(name) };
}
