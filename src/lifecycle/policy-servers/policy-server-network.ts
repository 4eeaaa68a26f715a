// How the processes of a PolicyServer are reached, and how many of them a disruption may take.
import type { JsonObject, PolicyServer } from '../../resources/index.ts';
import { policyServerLabels, policyServerObjectName, policyServerSelector } from './policy-server-names.ts';
import { policyServerPorts, SERVICE_PORT } from './policy-server-ports.ts';
import type { PolicyServerSettings } from './policy-server-settings.ts';

/** What may call control ports: controllers and other replicas. */
const PRODUCT_PODS = { matchLabels: { 'app.kubernetes.io/part-of': 'portcullis' } } as const;

/** `v1` Service: what webhook configurations name. */
export function policyServerService(server: PolicyServer, { namespace }: PolicyServerSettings): JsonObject {
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
 * `policy/v1` PodDisruptionBudget: as the spec says; where it says nothing one pod at a time, if there are several. Undefined:
 * none. Pods that do not work hold up no node that is emptied.
 */
export function policyServerDisruptionBudget(
  server: PolicyServer,
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
 * `networking.k8s.io/v1` NetworkPolicy. Where API servers and kubelets call from no policy can say, so reviews, probes and
 * metrics come from anywhere; control ports are called by the product's own pods. What goes out is not restricted: modules
 * come from wherever policies say.
 */
export function policyServerNetworkPolicy(server: PolicyServer, { namespace }: PolicyServerSettings): JsonObject {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: metadataOf(server, namespace),
    spec: {
      podSelector: { matchLabels: policyServerSelector(nameOf(server)) },
      policyTypes: ['Ingress'],
      ingress: [
        {
          ports: [
            { port: 'webhook', protocol: 'TCP' },
            { port: 'readiness', protocol: 'TCP' },
          ],
        },
        { ports: [{ port: 'control', protocol: 'TCP' }], from: [{ podSelector: PRODUCT_PODS }] },
      ],
    },
  };
}

function nameOf({ metadata }: PolicyServer): string {
  return metadata.name ?? '';
}

function metadataOf(server: PolicyServer, namespace: string): JsonObject {
  const name = nameOf(server);
  return { name: policyServerObjectName(name), namespace, labels: policyServerLabels(name) };
}
