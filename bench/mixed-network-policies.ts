// NetworkPolicies as clusters have them: many shapes, in namespaces of different sizes.
import type { KubernetesObject } from '../src/resources/index.ts';
import type { JsonObject } from '../src/values/index.ts';

const NAMESPACES = 100;
/** The index of the shape that selects fewer pods than the one before. */
const NARROWER = 4;
/** Rules of a large policy. */
const MANY_RULES = 50;
/** Peers of a long list of addresses. */
const MANY_PEERS = 100;

type Spec = JsonObject;
type Shape = (app: string, index: number) => Spec;

const DNS = {
  to: [
    {
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } },
      podSelector: { matchLabels: { 'k8s-app': 'kube-dns' } },
    },
  ],
  ports: [
    { protocol: 'UDP', port: 53 },
    { protocol: 'TCP', port: 53 },
  ],
} as const satisfies JsonObject;

/** Each is as frequent as the others. */
const SHAPES: readonly Shape[] = [
  // Deny all for everything in the namespace: each after the first is redundant.
  () => ({ podSelector: {}, policyTypes: ['Ingress'] }),
  (app) => ({ podSelector: selected(app), policyTypes: ['Egress'] }),
  // The same namespace.
  (app) => ({ podSelector: selected(app), policyTypes: ['Ingress'], ingress: [{ from: [{ podSelector: {} }] }] }),
  (app) => ({
    podSelector: selected(app),
    policyTypes: ['Ingress'],
    ingress: [{ from: [{ podSelector: selected('web') }], ports: [{ protocol: 'TCP', port: 8080 }] }],
  }),
  // As the one before, for fewer pods.
  (app, index) => ({
    podSelector: { matchLabels: { app, tier: `tier-${index % 3}` } },
    policyTypes: ['Ingress'],
    ingress: [{ from: [{ podSelector: selected('web') }], ports: [{ protocol: 'TCP', port: 8080 }] }],
  }),
  (app) => ({ podSelector: selected(app), policyTypes: ['Egress'], egress: [DNS] }),
  (app) => ({
    podSelector: selected(app),
    policyTypes: ['Ingress', 'Egress'],
    ingress: [{ from: [{ namespaceSelector: named('ingress-nginx', 'gateways') }], ports: [{ port: 'http' }] }],
    egress: [DNS, { to: [{ podSelector: selected('database') }], ports: [{ protocol: 'TCP', port: 5432 }] }],
  }),
  // Everything outside the cluster, except private addresses.
  (app) => ({
    podSelector: selected(app),
    policyTypes: ['Egress'],
    egress: [
      { to: [{ ipBlock: { cidr: '0.0.0.0/0', except: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'] } }] },
      DNS,
    ],
  }),
  (app, index) => ({
    podSelector: selected(app),
    policyTypes: ['Egress'],
    egress: [{ to: [{ ipBlock: { cidr: `10.${index % 200}.0.0/16` } }, { ipBlock: { cidr: 'fd00:10::/64' } }] }],
  }),
  // Bits after the prefix, of which API servers warn.
  (app, index) => ({
    podSelector: selected(app),
    policyTypes: ['Ingress'],
    ingress: [{ from: [{ ipBlock: { cidr: `192.0.2.${(index % 200) + 1}/24` } }], ports: [{ port: 443 }] }],
  }),
  (app) => ({
    podSelector: selected(app),
    policyTypes: ['Ingress'],
    ingress: [{ ports: [{ port: 'metrics' }, { port: 'web' }, { protocol: 'UDP', port: 'dns' }] }],
  }),
  (app) => ({
    podSelector: selected(app),
    policyTypes: ['Ingress'],
    ingress: [{ from: [{ podSelector: {} }], ports: [{ protocol: 'TCP', port: 30_000, endPort: 32_767 }] }],
  }),
  (app) => ({
    podSelector: selected(app),
    policyTypes: ['Ingress'],
    ingress: [
      {
        from: [{ namespaceSelector: { matchLabels: { team: 'telecom' } } }],
        ports: [{ protocol: 'SCTP', port: 3868 }],
      },
    ],
  }),
  // Rules without effect, since policyTypes does not name their direction.
  (app) => ({ podSelector: selected(app), policyTypes: ['Ingress'], ingress: [{}], egress: [DNS] }),
  (app) => ({
    podSelector: { matchExpressions: [{ key: 'app', operator: 'NotIn', values: [app, 'legacy'] }] },
    policyTypes: ['Ingress'],
    ingress: [
      {
        from: [
          { namespaceSelector: { matchExpressions: [{ key: 'env', operator: 'In', values: ['prod', 'stage'] }] } },
          { podSelector: { matchExpressions: [{ key: 'debug', operator: 'DoesNotExist' }] } },
        ],
      },
    ],
  }),
  (app, index) => (index % 4 === 0 ? manyRules(app) : manyPeers(app, index)),
];

/** The policies, in no order of their namespaces. The same in each run. */
export function* mixedPolicies(count: number): Generator<JsonObject & KubernetesObject> {
  for (let index = 0; index < count; index += 1) {
    const round = Math.floor(index / SHAPES.length);
    const shape = index % SHAPES.length;
    // Of the two shapes for the same pods, the second is redundant.
    const app = `app-${round}-${shape === NARROWER ? NARROWER - 1 : shape}`;
    yield {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: `policy-${index}`, namespace: namespaceOf(round) },
      spec: SHAPES[shape]?.(app, round) ?? {},
    };
  }
}

/** The namespaces of {@link mixedPolicies}. */
export const MIXED_NAMESPACES: readonly string[] = Array.from({ length: NAMESPACES }, (_, index) => `team-${index}`);

/** A tenth of the policies are in the largest namespace, one in 200 in the smallest. All policies for an app are in one. */
function namespaceOf(round: number): string {
  // The golden ratio spreads consecutive numbers evenly.
  const share = (round * 0.618_033_988_749_895) % 1;
  return `team-${Math.floor(NAMESPACES * share ** 2)}`;
}

function selected(app: string): JsonObject {
  return { matchLabels: { app } };
}

function named(...names: string[]): JsonObject {
  return { matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: names }] };
}

function manyRules(app: string): Spec {
  const ingress = Array.from({ length: MANY_RULES }, (_, rule) => ({
    from: [{ namespaceSelector: named(`tenant-${rule}`), podSelector: selected(`client-${rule}`) }],
    ports: [{ protocol: 'TCP', port: 8000 + rule }, { port: 'admin' }],
  }));
  return { podSelector: selected(app), policyTypes: ['Ingress'], ingress };
}

function manyPeers(app: string, index: number): Spec {
  const to = Array.from({ length: MANY_PEERS }, (_, peer) => ({
    ipBlock: { cidr: `198.${(index + peer) % 250}.${peer}.0/28` },
  }));
  return { podSelector: selected(app), policyTypes: ['Egress'], egress: [{ to, ports: [{ port: 443 }] }] };
}
