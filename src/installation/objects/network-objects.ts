import type { KubernetesObject } from '../../resources/index.ts';
import { METRICS_PEERS, PRODUCT_PODS } from '../../lifecycle/index.ts';
import { commented } from './comments.ts';
import {
  AUDITOR,
  AUDITOR_OPERATIONS_PORT,
  componentLabels,
  CONTROLLER,
  CONTROLLER_CONTROL_PORT,
  CONTROLLER_OPERATIONS_PORT,
  CONTROLLER_WEBHOOK_PORT,
  type InstallContext,
  podSelector,
} from './naming.ts';

/** Of the pods of controller and auditor. The controller creates the NetworkPolicies of policy servers. */
export function networkPolicies({ namespace }: InstallContext): readonly KubernetesObject[] {
  const ports = (port: number): readonly object[] => [{ protocol: 'TCP', port }];
  return [
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: CONTROLLER, namespace, labels: componentLabels('controller') },
      spec: commented(
        'Egress is not restricted: the controller calls the API server, which may be outside of the cluster.',
        {
          podSelector: { matchLabels: podSelector('controller') },
          policyTypes: ['Ingress'],
          ingress: [
            commented(
              "From anywhere: API servers call the webhook for the product's own kinds, and no selector matches their addresses.",
              { ports: ports(CONTROLLER_WEBHOOK_PORT) },
            ),
            commented('Copies of modules, for policy servers and other controllers.', {
              from: [{ podSelector: PRODUCT_PODS }],
              ports: ports(CONTROLLER_CONTROL_PORT),
            }),
            commented('Metrics, for namespaces with this label. The probes of the kubelet need no rule.', {
              from: METRICS_PEERS,
              ports: ports(CONTROLLER_OPERATIONS_PORT),
            }),
          ],
        },
      ),
    },
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: AUDITOR, namespace, labels: componentLabels('auditor') },
      spec: {
        podSelector: { matchLabels: podSelector('auditor') },
        policyTypes: ['Ingress'],
        ingress: [
          commented('Metrics, for namespaces with this label. Nothing calls the auditor.', {
            from: METRICS_PEERS,
            ports: ports(AUDITOR_OPERATIONS_PORT),
          }),
        ],
      },
    },
  ];
}
