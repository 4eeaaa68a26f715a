/** What a NetworkPolicy can use, and a provider may not support. In the order in which people read it. */
export const FEATURES = [
  'Enforcement',
  'Ingress',
  'Egress',
  'NamespaceSelector',
  'NamespaceAndPodSelector',
  'PortWithoutNumber',
  'NamedPort',
  'EndPort',
  'PortCount',
  'SCTP',
  'IPBlock',
  'IPBlockExcept',
  'IPBlockOfPods',
  'IPBlockOfNodes',
  'IPv6',
  'HostNetworkPods',
] as const;

export type Feature = (typeof FEATURES)[number];

/** Each feature in words. */
export const FEATURE_TEXTS: Readonly<Record<Feature, string>> = {
  Enforcement: 'pods and peers by labels, numeric ports of TCP and UDP',
  Ingress: 'rules for ingress',
  Egress: 'rules for egress',
  NamespaceSelector: 'a peer with namespaceSelector alone',
  NamespaceAndPodSelector: 'a peer with namespaceSelector and podSelector',
  PortWithoutNumber: 'an entry of ports without a port: all ports of the protocol',
  NamedPort: 'a port by name',
  EndPort: 'a range of ports: endPort',
  PortCount: 'the number of ports',
  SCTP: 'the protocol SCTP',
  IPBlock: 'ipBlock for addresses outside the cluster',
  IPBlockExcept: 'except in an ipBlock',
  IPBlockOfPods: 'an ipBlock that matches IPs of pods',
  IPBlockOfNodes: 'an ipBlock that matches IPs of nodes',
  IPv6: 'IPv6 addresses',
  HostNetworkPods: 'a policy for pods in the network of their host',
};

/** What happens where a feature is not supported, from the least to the most dangerous. */
export const EFFECTS = ['FailClosed', 'RuleDropped', 'FailOpen', 'PolicyDropped', 'Inert'] as const;

export type Effect = (typeof EFFECTS)[number];

export const EFFECT_TEXTS: Readonly<Record<Effect, string>> = {
  FailClosed: 'allows less than written',
  RuleDropped: 'ignores the rule',
  FailOpen: 'allows more than written',
  PolicyDropped: 'ignores the policy: its pods are open unless others isolate them',
  Inert: 'has no effect at all',
};

/** How a policy uses a feature, where a provider may support one use and not another. */
export const TRAITS = [
  'Ingress',
  'Egress',
  'EgressToAnyPeer',
  'EgressToIPBlock',
  'EmptyEntry',
  'NegativeExpression',
  'MixedFamilies',
  'WithPorts',
] as const;

export type Trait = (typeof TRAITS)[number];

/** Each use in words. */
export const TRAIT_TEXTS: Readonly<Record<Trait, string>> = {
  Ingress: 'ingress',
  Egress: 'egress',
  EgressToAnyPeer: 'egress to any peer',
  EgressToIPBlock: 'egress to an ipBlock',
  EmptyEntry: 'an empty entry of ports',
  NegativeExpression: 'NotIn and DoesNotExist',
  MixedFamilies: 'rules with IPv4 and IPv6',
  WithPorts: 'rules with ports',
};

export function worseEffect(one: Effect | undefined, other: Effect | undefined): Effect | undefined {
  const rank = (effect: Effect | undefined): number => (effect === undefined ? -1 : EFFECTS.indexOf(effect));
  return rank(one) >= rank(other) ? one : other;
}
