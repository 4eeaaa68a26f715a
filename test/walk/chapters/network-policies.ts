// KEP-2943: a network provider that does not know a field of a NetworkPolicy ignores it, and nobody is told.
import type { WalkChapter } from '../walk-step.ts';
import { applyObject } from './policies.ts';

function networkPolicy(name: string, spec: object): object {
  const metadata = { name, namespace: 'shop' };
  return { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata, spec: { podSelector: {}, ...spec } };
}

const RANGE = networkPolicy('range', {
  policyTypes: ['Egress'],
  egress: [{ ports: [{ protocol: 'TCP', port: 30_000, endPort: 32_000 }] }],
});
const SCTP = networkPolicy('sctp', { ingress: [{ ports: [{ protocol: 'SCTP', port: 7 }] }] });
const NAMED = networkPolicy('named', { ingress: [{ ports: [{ protocol: 'TCP', port: 'http' }] }] });
const PLAIN = networkPolicy('plain', { policyTypes: ['Ingress'] });

/** The agent of a provider. No node runs it: what is detected is what its pod says. */
function agent(name: string, image: string): string {
  const metadata = { name: `${name}-1`, namespace: 'kube-system' };
  const spec = { hostNetwork: true, schedulerName: 'none', containers: [{ name, image }] };
  return applyObject({ apiVersion: 'v1', kind: 'Pod', metadata, spec });
}

export const NETWORK_POLICIES: WalkChapter = {
  title: '5 what the network provider ignores',
  steps: [
    {
      by: 'admin',
      shows: 'applies NetworkPolicies with a range of ports, SCTP, a named port, and none of it',
      sh: [RANGE, SCTP, NAMED, PLAIN].map(applyObject).join('\n'),
      prints: [/range created\n.*sctp created\n.*named created\n.*plain created/],
    },
    {
      by: 'tenant',
      shows: 'reads that it is not known what becomes of them while no provider is known',
      sh: 'kubectl get npst',
      prints: [/^range +Unknown +ProviderNotFound /m, /^plain +Unknown +ProviderNotFound /m],
    },
    {
      by: 'admin',
      shows: 'runs a provider that knows no ranges',
      sh: agent('cilium-agent', 'quay.io/cilium/cilium:v1.15.4'),
      prints: [/created/],
    },
    {
      by: 'tenant',
      shows: 'reads of each policy what the provider does with it, and in which field',
      sh: `kubectl get npst && kubectl get npst -o wide && kubectl describe npst range
        portcullis netpol check`,
      code: 1,
      prints: [
        /^range +cilium 1\.15\.4 +False +FeatureNotSupported +endPort +FailClosed /m,
        /^plain +cilium 1\.15\.4 +True +Accepted /m,
        /^named +cilium 1\.15\.4 +(?:True|False) /m,
        /^sctp +cilium 1\.15\.4 +Unknown +SettingUnknown /m,
        /Cilium 1\.15\.4 allows only port 30000, not 30000 to 32000/,
        /Cilium 1\.15\.4 supports SCTP \(SCTP port 7\) only if enable-sctp is "true"/,
        /spec\.egress\[0\]\.ports\[0\]\.endPort/,
        /^Their statuses say .*: portcullis get networkpolicystatuses -n shop$/m,
      ],
    },
    {
      by: 'reader',
      shows: 'reads which provider was found, and sees the wait for a feature fail',
      sh: `kubectl get npp; kubectl get npst -n shop range
        kubectl wait npst/range -n shop --for=condition=Accepted=False --timeout=0`,
      prints: [/^cilium +True +v1\.15\.4 +1 /m, /^range +cilium 1\.15\.4 +False /m, /condition met/],
    },
    {
      by: 'admin',
      shows: 'upgrades the provider, and configures it, without touching a NetworkPolicy',
      sh: `kubectl get networkpolicies -n shop -o jsonpath='{.items[*].metadata.resourceVersion}' > versions
        kubectl set image pod/cilium-agent-1 -n kube-system cilium-agent=quay.io/cilium/cilium:v1.16.0
        kubectl create configmap cilium-config -n kube-system --from-literal=enable-sctp=true`,
      prints: [/image updated/, /cilium-config created/],
    },
    {
      by: 'tenant',
      shows: 'reads that the policies are supported now',
      sh: 'kubectl wait npst/range --for=condition=Accepted && kubectl get npst',
      prints: [/^range +cilium 1\.16\.0 +True +Accepted /m, /^sctp +cilium 1\.16\.0 +True +Accepted /m],
    },
    {
      by: 'admin',
      shows: 'runs a second provider beside it, which drops what has a named port',
      sh: agent('weave-npc', 'docker.io/weaveworks/weave-npc:2.8.1'),
      prints: [/created/],
    },
    {
      by: 'tenant',
      shows: 'reads the worst of both, with an entry for each',
      sh: "kubectl get npst; kubectl get npst named -o jsonpath='{.status.providers[*].controllerName}'",
      prints: [/^named +\S.* +False +FeatureNotSupported +namedPort +PolicyDropped /m],
    },
    {
      by: 'admin',
      shows: 'has touched no NetworkPolicy',
      sh: "kubectl get networkpolicies -n shop -o jsonpath='{.items[*].metadata.resourceVersion}' | diff versions -",
      prints: [/^$/],
    },
  ],
};
