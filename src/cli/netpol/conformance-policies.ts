// The NetworkPolicies that a network provider must report: one for each feature that providers have missed.
import type { JsonObject, KubernetesObject } from '../../resources/index.ts';

const SPECS: Readonly<Record<string, JsonObject>> = {
  plain: { podSelector: {}, policyTypes: ['Ingress'] },
  'port-range': {
    podSelector: {},
    policyTypes: ['Egress'],
    egress: [{ ports: [{ protocol: 'TCP', port: 30_000, endPort: 32_000 }] }],
  },
  'named-port': { podSelector: {}, ingress: [{ ports: [{ protocol: 'TCP', port: 'metrics' }] }] },
  sctp: { podSelector: {}, ingress: [{ ports: [{ protocol: 'SCTP', port: 7777 }] }] },
  'block-with-exception': {
    podSelector: {},
    policyTypes: ['Egress'],
    egress: [{ to: [{ ipBlock: { cidr: '192.0.2.0/24', except: ['192.0.2.128/25'] } }] }],
  },
  namespaces: {
    podSelector: { matchLabels: { app: 'web' } },
    ingress: [
      { from: [{ namespaceSelector: { matchLabels: { team: 'a' } }, podSelector: { matchLabels: { app: 'db' } } }] },
    ],
  },
};

/** The name of the policy that changes. */
export const CHANGED_POLICY = 'plain';
/** What it becomes. */
export const CHANGED_SPEC: JsonObject = { podSelector: { matchLabels: { app: 'web' } }, policyTypes: ['Ingress'] };

export function conformancePolicies(namespace: string): readonly KubernetesObject[] {
  return Object.entries(SPECS).map(([name, spec]) => ({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name, namespace },
    spec,
  }));
}
