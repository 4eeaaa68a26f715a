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
  'AllowsNothing',
  'WithPorts',
  'WithNumber',
  'BesideNumberedPort',
  'SidecarPort',
  'SameStart',
  'PodSelectorPeer',
  'NegativeExpression',
  'InSeveralValues',
  'NotInSeveralValues',
  'DoesNotExist',
  'NegativeNamespaceSelector',
  'MixedFamilies',
  'HostBits',
  'BesideBlocks',
  'BesideSelectors',
  'OverlappingBlocks',
  'SameBlock',
  'ServiceWithoutLabel',
] as const;

export type Trait = (typeof TRAITS)[number];

const shared = new Map<string, readonly Trait[]>();

/** The same list for the same traits, so that providers judge it once. There are hundreds: most traits exclude others. */
export function sharedTraits(traits: readonly Trait[]): readonly Trait[] {
  const key = traits.join();
  const known = shared.get(key) ?? traits;
  shared.set(key, known);
  return known;
}

/** Each use in words. */
export const TRAIT_TEXTS: Readonly<Record<Trait, string>> = {
  Ingress: 'ingress',
  Egress: 'egress',
  EgressToAnyPeer: 'egress to any peer',
  EgressToIPBlock: 'egress to an ipBlock',
  AllowsNothing: 'a direction without rules',
  WithPorts: 'rules with ports',
  WithNumber: 'an entry with a port',
  BesideNumberedPort: 'an entry beside one with a number, of the same protocol',
  SidecarPort: 'a name that a sidecar (a restartable init container) of a selected pod declares',
  SameStart: 'ranges of ports that begin with the same one and end with others',
  PodSelectorPeer: 'a peer with podSelector',
  NegativeExpression: 'NotIn or DoesNotExist',
  InSeveralValues: 'In with several values',
  NotInSeveralValues: 'NotIn with several values',
  DoesNotExist: 'DoesNotExist',
  NegativeNamespaceSelector: 'a namespaceSelector of NotIn and DoesNotExist only',
  MixedFamilies: 'rules with IPv4 and IPv6',
  HostBits: 'a CIDR with bits after its prefix',
  BesideBlocks: 'several ipBlocks in a rule',
  BesideSelectors: 'an ipBlock beside selectors in a rule',
  OverlappingBlocks: 'an exception in another ipBlock of the direction',
  SameBlock: 'a CIDR that is in several peers of the direction',
  ServiceWithoutLabel: 'pods behind a Service whose selector lacks labels of the peer',
};

const DIRECTIONS = ['Ingress', 'Egress'] as const;
const OF_PORTS = [...DIRECTIONS, 'EgressToAnyPeer', 'EgressToIPBlock'] as const;
const OF_PORT = [...OF_PORTS, 'WithNumber', 'BesideNumberedPort', 'SidecarPort', 'SameStart'] as const;
const OF_SELECTOR = ['NegativeExpression', 'InSeveralValues', 'NotInSeveralValues', 'DoesNotExist'] as const;
const OF_NAMESPACES = [...DIRECTIONS, 'NegativeNamespaceSelector', ...OF_SELECTOR] as const;
const OF_BLOCK = [
  ...DIRECTIONS,
  'WithPorts',
  'MixedFamilies',
  'HostBits',
  'BesideBlocks',
  'BesideSelectors',
  'OverlappingBlocks',
  'SameBlock',
] as const;

/** The traits that uses of a feature can have: a row or a fault that is about another one would never count. */
export const FEATURE_TRAITS: Readonly<Record<Feature, readonly Trait[]>> = {
  Enforcement: ['PodSelectorPeer', ...OF_SELECTOR],
  Ingress: ['AllowsNothing'],
  Egress: ['AllowsNothing', 'ServiceWithoutLabel'],
  NamespaceSelector: OF_NAMESPACES,
  NamespaceAndPodSelector: OF_NAMESPACES,
  PortWithoutNumber: OF_PORT,
  NamedPort: OF_PORT,
  EndPort: OF_PORT,
  PortCount: OF_PORTS,
  SCTP: OF_PORT,
  IPBlock: OF_BLOCK,
  IPBlockExcept: OF_BLOCK,
  IPBlockOfPods: OF_BLOCK,
  IPBlockOfNodes: OF_BLOCK,
  IPv6: OF_BLOCK,
  HostNetworkPods: [],
};

/** A use, or several that must come together. */
export type UsePattern = Trait | readonly Trait[];

/** Whether a use is one of those that are meant; of all uses when none is named. */
export function isMeant(patterns: readonly UsePattern[] | undefined, traits: readonly Trait[]): boolean {
  return patterns?.some((pattern) => traitsOf(pattern).every((trait) => traits.includes(trait))) ?? true;
}

/** The uses in words. */
export function usesText(patterns: readonly UsePattern[]): string {
  return patterns
    .map((pattern) =>
      traitsOf(pattern)
        .map((trait) => TRAIT_TEXTS[trait])
        .join(' with '),
    )
    .join(', ');
}

function traitsOf(pattern: UsePattern): readonly Trait[] {
  return typeof pattern === 'string' ? [pattern] : pattern;
}

export function worseEffect(one: Effect | undefined, other: Effect | undefined): Effect | undefined {
  const rank = (effect: Effect | undefined): number => (effect === undefined ? -1 : EFFECTS.indexOf(effect));
  return rank(one) >= rank(other) ? one : other;
}
