import type { KubernetesObject } from '../../../resources/index.ts';
import {
  componentLabels,
  CONTROLLER,
  CONTROLLER_OPERATIONS_PORT,
  CONTROLLER_WEBHOOK_PORT,
  type InstallContext,
  podSelector,
} from './naming.ts';

/**
 * Ingress of the controller's pods: only the ports that API servers and kubelets call, from anywhere, because selectors cannot
 * match their addresses. Egress is not limited: the API server may be outside of the cluster. The controller creates the
 * NetworkPolicies of policy servers.
 */
export function networkPolicies({ namespace }: InstallContext): readonly KubernetesObject[] {
  return [
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: CONTROLLER, namespace, labels: componentLabels('controller') },
      spec: {
        podSelector: { matchLabels: podSelector('controller') },
        policyTypes: ['Ingress'],
        ingress: [
          {
            ports: [CONTROLLER_WEBHOOK_PORT, CONTROLLER_OPERATIONS_PORT].map((port) => ({ protocol: 'TCP', port })),
          },
        ],
      },
    },
  ];
}
