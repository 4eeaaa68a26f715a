import type { KubernetesObject } from '../src/resources/index.ts';
import type { JsonObject } from '../src/values/index.ts';

/** A policy with most of the features, in one of 100 namespaces. */
export function samplePolicy(index: number): JsonObject & KubernetesObject {
  const block = `10.${index % 250}.0.0/16`;
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: `policy-${index}`, namespace: `namespace-${index % 100}` },
    spec: {
      podSelector: { matchLabels: { app: `app-${index}` } },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        {
          from: [
            {
              namespaceSelector: { matchLabels: { team: `team-${index % 7}` } },
              podSelector: { matchLabels: { role: 'client' } },
            },
            { ipBlock: { cidr: block, except: [`10.${index % 250}.1.0/24`] } },
          ],
          ports: [{ port: 80 }, { port: 'web' }, { protocol: 'UDP', port: 30_000, endPort: 32_000 }],
        },
      ],
      egress: [{ to: [{ ipBlock: { cidr: '0.0.0.0/0' } }], ports: [{ port: 443 }] }],
    },
  };
}
