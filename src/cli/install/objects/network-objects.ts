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
 * Who may reach the pods of the controller. API servers and kubelets have addresses that no selector knows, so the ports that
 * they call are open, and no others. What goes out is not limited: the API server is outside of the cluster. Those of policy
 * servers are made by the controller.
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
