import type { Selector } from '../../resources/index.ts';
import { containsCidr, overlapsCidr, parseCidr } from './cidr.ts';
import type { Cidr } from './cidr.ts';
import type { Feature, Trait } from './feature.ts';
import type { Direction, IPBlock, NetworkPolicy, Peer, PortEntry, Rule } from './network-policy.ts';

/** A place where a policy uses a feature. */
export interface FeatureUse {
  readonly feature: Feature;
  readonly path: string;
  readonly traits: readonly Trait[];
  /** What uses it, for messages: a port, a CIDR. */
  readonly port?: PortEntry;
  readonly block?: string;
  /** The rule that it is in. */
  readonly rule?: string;
  /** Whether it depends on the cluster, of which nothing is known: whether pods have addresses of the block. */
  readonly isPossible?: true;
}

/** What is known of a cluster. */
export interface ClusterFacts {
  /** The CIDRs of pods. */
  readonly podCidrs?: readonly string[];
  /** The addresses of nodes, or their CIDRs. */
  readonly nodeCidrs?: readonly string[];
  /** Number of sets of labels among the pods and namespaces that may be peers. */
  readonly identities?: number;
}

/** Addresses that pods and nodes usually have: RFC 1918, RFC 6598 and RFC 4193. */
const PRIVATE = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7'].map(parseCidr);

/** Every use of a feature, in the order of the policy. */
export function featureUses(policy: NetworkPolicy, facts: ClusterFacts = {}): readonly FeatureUse[] {
  return [
    enforcementUse(policy),
    ...[...policy.directions].map(([feature, path]) => ({ feature, path, traits: [] })),
    ...policy.rules.flatMap((rule) => ruleUses(rule, facts)),
  ];
}

function enforcementUse({ podSelector, rules }: NetworkPolicy): FeatureUse {
  const selectors = [podSelector, ...rules.flatMap(({ peers }) => peers.map((peer) => peer.podSelector))];
  const traits = negativeTraits(...selectors);
  return { feature: 'Enforcement', path: 'spec', traits };
}

function negativeTraits(...selectors: readonly (Selector | undefined)[]): readonly Trait[] {
  const isNegative = selectors.some((selector) =>
    selector?.requirements.some(({ operator }) => operator === 'notin' || operator === '!'),
  );
  return isNegative ? ['NegativeExpression'] : [];
}

function ruleUses(rule: Rule, facts: ClusterFacts): readonly FeatureUse[] {
  const traits = portTraits(rule);
  const uses = [
    ...(rule.ports.length > 0 ? [{ feature: 'PortCount', path: `${rule.path}.ports`, traits } as const] : []),
    ...rule.ports.flatMap((port) => portUses(port, traits)),
    ...rule.peers.flatMap((peer) => peerUses(peer, rule, facts)),
  ];
  return uses.map((use) => ({ ...use, rule: rule.path }));
}

function portTraits({ direction, peers }: Rule): readonly Trait[] {
  const isEgress = direction === 'Egress';
  return [
    direction,
    ...(isEgress && peers.length === 0 ? (['EgressToAnyPeer'] as const) : []),
    ...(isEgress && peers.some(({ ipBlock }) => ipBlock !== undefined) ? (['EgressToIPBlock'] as const) : []),
  ];
}

function portUses(entry: PortEntry, traits: readonly Trait[]): readonly FeatureUse[] {
  const use = (feature: Feature, field: string, more: readonly Trait[] = []): FeatureUse => ({
    feature,
    path: field === '' ? entry.path : `${entry.path}.${field}`,
    traits: [...traits, ...more],
    port: entry,
  });
  const { port, endPort, protocol, hasProtocol } = entry;
  return [
    ...(port === undefined ? [use('PortWithoutNumber', '', hasProtocol ? [] : ['EmptyEntry'])] : []),
    ...(typeof port === 'string' ? [use('NamedPort', 'port')] : []),
    ...(endPort === undefined ? [] : [use('EndPort', 'endPort')]),
    ...(protocol === 'SCTP' ? [use('SCTP', 'protocol')] : []),
  ];
}

function peerUses(peer: Peer, rule: Rule, facts: ClusterFacts): readonly FeatureUse[] {
  const { podSelector, namespaceSelector, ipBlock, path } = peer;
  if (ipBlock !== undefined) {
    return blockUses(ipBlock, rule, facts);
  }
  if (namespaceSelector === undefined) {
    return [];
  }
  const [selects, both] = [negativeTraits(namespaceSelector), negativeTraits(namespaceSelector, podSelector)];
  return [
    { feature: 'NamespaceSelector', path: `${path}.namespaceSelector`, traits: selects },
    ...(podSelector === undefined ? [] : [{ feature: 'NamespaceAndPodSelector', path, traits: both } as const]),
  ];
}

function blockUses(block: IPBlock, rule: Rule, facts: ClusterFacts): readonly FeatureUse[] {
  const traits = [
    rule.direction,
    ...(rule.ports.length > 0 ? (['WithPorts'] as const) : []),
    ...(hasBothFamilies(rule) ? (['MixedFamilies'] as const) : []),
  ];
  const use = (feature: Feature, path: string, text = block.text): FeatureUse => ({
    feature,
    path,
    traits,
    block: text,
  });
  const path = `${block.path}.cidr`;
  return [
    use('IPBlock', path),
    ...(block.cidr.family === 'IPv6' ? [use('IPv6', path)] : []),
    ...block.except.map((one) => use('IPBlockExcept', one.path, one.text)),
    ...localUse(use('IPBlockOfPods', path), block, facts.podCidrs),
    ...localUse(use('IPBlockOfNodes', path), block, facts.nodeCidrs),
  ];
}

/** A CIDR, or the block of a single address. */
function blockOf(text: string): Cidr | undefined {
  return parseCidr(text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`);
}

function hasBothFamilies({ peers }: Rule): boolean {
  return new Set(peers.flatMap(({ ipBlock }) => ipBlock?.cidr.family ?? [])).size > 1;
}

/** The use, if the block may contain addresses of the cluster. */
function localUse(
  use: FeatureUse,
  { cidr, except }: IPBlock,
  local: readonly string[] | undefined,
): readonly FeatureUse[] {
  const isLocal = (local?.map(blockOf) ?? PRIVATE).some(
    (one) => one !== undefined && overlapsCidr(one, cidr) && !except.some((hole) => containsCidr(hole.cidr, one)),
  );
  if (!isLocal) {
    return [];
  }
  return [local === undefined ? { ...use, isPossible: true } : use];
}

/** The port entries of each peer of a direction, without duplicates: what limits of ports count. */
export function portsByPeer(policy: NetworkPolicy, direction: Direction): ReadonlyMap<string, ReadonlySet<string>> {
  const entries = new Map<string, Set<string>>();
  for (const { peers, ports } of policy.rules.filter((rule) => rule.direction === direction)) {
    const texts = ports.length === 0 ? ['all'] : ports.map(portText);
    for (const peer of peers.length === 0 ? [ANY_PEER] : peers.map(peerText)) {
      const known = entries.get(peer) ?? new Set();
      texts.forEach((text) => known.add(text));
      entries.set(peer, known);
    }
  }
  return entries;
}

const ANY_PEER = 'all peers';

function peerText({ podSelector, namespaceSelector, ipBlock }: Peer): string {
  if (ipBlock !== undefined) {
    return ipBlock.text;
  }
  const pods = podSelector === undefined || podSelector.isEmpty ? 'all pods' : `pods ${podSelector.toString()}`;
  if (namespaceSelector === undefined) {
    return pods;
  }
  return `${pods} of ${namespaceSelector.isEmpty ? 'all namespaces' : `namespaces ${namespaceSelector.toString()}`}`;
}

/** `TCP port 80`, `TCP ports 80 to 90`, `TCP port "web"`, `all TCP ports`. */
export function portText({ protocol, port, endPort }: PortEntry): string {
  if (port === undefined) {
    return `all ${protocol} ports`;
  }
  if (endPort !== undefined) {
    return `${protocol} ports ${port} to ${endPort}`;
  }
  return `${protocol} port ${typeof port === 'string' ? JSON.stringify(port) : port}`;
}
