import type { LabelRequirement, Selector } from '../../resources/index.ts';
import { hasHostBits } from '../../resources/kind-validation/index.ts';
import { containsCidr, overlapsCidr, parseBlock } from './cidr.ts';
import type { Cidr } from './cidr.ts';
import { sharedTraits, TRAITS } from './feature.ts';
import type { Feature, Trait } from './feature.ts';
import type { WorkloadFacts } from './pod-facts.ts';
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
export interface ClusterFacts extends Partial<WorkloadFacts> {
  /** The CIDRs of all pods; undefined when they are not known. */
  readonly podCidrs?: readonly string[];
  /** Addresses that some pods have, where {@link podCidrs} is not known. */
  readonly podAddresses?: readonly string[];
  /** The addresses of all nodes, or their CIDRs; undefined when they are not known. */
  readonly nodeCidrs?: readonly string[];
  /** Number of sets of labels among the pods and namespaces that may be peers. */
  readonly identities?: number;
}

/** Addresses that pods and nodes usually have: RFC 1918, RFC 6598 and RFC 4193. */
const PRIVATE = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7'];

/** Every use of a feature, in the order of the policy. */
export function featureUses(policy: NetworkPolicy, facts: ClusterFacts = {}): readonly FeatureUse[] {
  const all = policy.rules.flatMap(blocksOf);
  const context: Context = {
    policy,
    facts,
    overlapping: new Set([...Map.groupBy(all, ({ direction }) => direction).values()].flatMap(overlappingOf)),
    repeated: repeatedOf(all.map(({ direction, block }) => blockKey(direction, block))),
    ambiguous: repeatedOf(new Set(policy.rules.flatMap(rangesOf)), startOf),
    sidecarPorts: sidecarPorts(policy, facts),
  };
  return [
    enforcementUse(policy),
    ...[...policy.directions].map(([direction, path]) => directionUse(policy, direction, path)),
    ...policy.rules.flatMap((rule) => ruleUses(rule, context)),
  ];
}

/** What the uses of a rule also depend on. */
interface Context {
  readonly policy: NetworkPolicy;
  readonly facts: ClusterFacts;
  /** The blocks with an exception that has addresses of another block of the direction. */
  readonly overlapping: ReadonlySet<IPBlock>;
  /** The blocks that a direction has more than once. */
  readonly repeated: ReadonlySet<string>;
  /** The starts that a direction has with different ends. */
  readonly ambiguous: ReadonlySet<string>;
  /** The names of ports of sidecars that the policy selects. */
  readonly sidecarPorts: ReadonlySet<string>;
}

interface DirectedBlock {
  readonly direction: Direction;
  readonly block: IPBlock;
}

function blocksOf({ direction, peers }: Rule): readonly DirectedBlock[] {
  return peers.flatMap(({ ipBlock }) => (ipBlock === undefined ? [] : [{ direction, block: ipBlock }]));
}

function blockKey(direction: Direction, { cidr }: IPBlock): string {
  return `${direction} ${cidr.address.toByteArray().join('.')}/${cidr.prefix}`;
}

/** `Ingress TCP 80-90` for each range of a rule. */
function rangesOf({ direction, ports }: Rule): readonly string[] {
  return ports.flatMap(({ protocol, port, endPort }) =>
    endPort === undefined ? [] : `${direction} ${protocol} ${port}-${endPort}`,
  );
}

function startOf(range: string): string {
  return range.slice(0, range.lastIndexOf('-'));
}

/** The keys that several texts have. */
function repeatedOf(texts: Iterable<string>, keyOf: (text: string) => string = (text) => text): ReadonlySet<string> {
  const groups = Map.groupBy(texts, keyOf);
  return new Set([...groups].flatMap(([key, group]) => (group.length > 1 ? key : [])));
}

function directionUse({ rules }: NetworkPolicy, direction: Direction, path: string): FeatureUse {
  const isEmpty = !rules.some((rule) => rule.direction === direction);
  return { feature: direction, path, traits: sharedTraits(isEmpty ? ['AllowsNothing'] : []) };
}

function enforcementUse({ podSelector, rules }: NetworkPolicy): FeatureUse {
  const peers = rules.flatMap((rule) => rule.peers.flatMap((peer) => peer.podSelector ?? []));
  const traits = [...traitsThat({ PodSelectorPeer: peers.length > 0 }), ...selectorTraits(podSelector, ...peers)];
  return { feature: 'Enforcement', path: 'spec', traits: sharedTraits(traits) };
}

function selectorTraits(...selectors: readonly (Selector | undefined)[]): readonly Trait[] {
  const requirements = selectors.flatMap((selector) => selector?.requirements ?? []);
  const hasSeveral = (operator: string): boolean =>
    requirements.some((one) => one.operator === operator && new Set(one.values).size > 1);
  return traitsThat({
    NegativeExpression: requirements.some(isNegative),
    InSeveralValues: hasSeveral('in'),
    NotInSeveralValues: hasSeveral('notin'),
    DoesNotExist: requirements.some(({ operator }) => operator === '!'),
  });
}

function isNegative({ operator }: LabelRequirement): boolean {
  return operator === 'notin' || operator === '!';
}

function traitsThat(holds: Partial<Record<Trait, boolean>>): readonly Trait[] {
  return TRAITS.filter((trait) => holds[trait] === true);
}

function ruleUses(rule: Rule, context: Context): readonly FeatureUse[] {
  const traits = ruleTraits(rule);
  const numbered = new Set(rule.ports.flatMap(({ port, protocol }) => (typeof port === 'number' ? protocol : [])));
  const ofBlocks = blockTraits(rule);
  const uses = [
    ...(rule.ports.length > 0 ? [{ feature: 'PortCount', path: `${rule.path}.ports`, traits } as const] : []),
    ...rule.ports.flatMap((port) => portUses(port, [...traits, ...portTraits(port, rule, numbered, context)])),
    ...rule.peers.flatMap((peer) =>
      peer.ipBlock === undefined ? peerUses(peer, rule, context) : blockUses(peer.ipBlock, rule, ofBlocks, context),
    ),
  ];
  return uses.map((use) => ({ ...use, traits: sharedTraits(use.traits), rule: rule.path }));
}

function ruleTraits({ direction, peers }: Rule): readonly Trait[] {
  const isEgress = direction === 'Egress';
  return [
    direction,
    ...traitsThat({
      EgressToAnyPeer: isEgress && peers.length === 0,
      EgressToIPBlock: isEgress && peers.some(({ ipBlock }) => ipBlock !== undefined),
    }),
  ];
}

/** @param numbered the protocols of entries with a number */
function portTraits(
  { port, endPort, protocol }: PortEntry,
  { direction }: Rule,
  numbered: ReadonlySet<string>,
  { sidecarPorts: names, ambiguous }: Context,
): readonly Trait[] {
  return traitsThat({
    WithNumber: port !== undefined,
    BesideNumberedPort: typeof port !== 'number' && numbered.has(protocol),
    SidecarPort: direction === 'Ingress' && typeof port === 'string' && names.has(port),
    SameStart: endPort !== undefined && ambiguous.has(`${direction} ${protocol} ${port}`),
  });
}

function portUses(entry: PortEntry, traits: readonly Trait[]): readonly FeatureUse[] {
  const { port, endPort, protocol } = entry;
  const use = (feature: Feature, field: string): FeatureUse => ({
    feature,
    path: field === '' ? entry.path : `${entry.path}.${field}`,
    traits,
    port: entry,
  });
  return [
    ...(port === undefined ? [use('PortWithoutNumber', '')] : []),
    ...(typeof port === 'string' ? [use('NamedPort', 'port')] : []),
    ...(endPort === undefined ? [] : [use('EndPort', 'endPort')]),
    ...(protocol === 'SCTP' ? [use('SCTP', 'protocol')] : []),
  ];
}

/** Of the pods that the policy selects, as far as they are known: their sidecars are the targets of its ingress. */
function sidecarPorts({ namespace, podSelector }: NetworkPolicy, { sidecars = [] }: ClusterFacts): ReadonlySet<string> {
  const selected = sidecars.filter((pod) => pod.namespace === namespace && podSelector.matches(pod.labels));
  return new Set(selected.flatMap((pod) => pod.sidecarPorts ?? []));
}

function peerUses(peer: Peer, rule: Rule, context: Context): readonly FeatureUse[] {
  const { podSelector, namespaceSelector, path } = peer;
  const behindService = hasServiceWithoutLabel(peer, rule, context)
    ? [{ feature: 'Egress', path, traits: ['ServiceWithoutLabel'] } as const]
    : [];
  if (namespaceSelector === undefined) {
    return behindService;
  }
  const { requirements } = namespaceSelector;
  const shared = [
    rule.direction,
    ...traitsThat({ NegativeNamespaceSelector: requirements.length > 0 && requirements.every(isNegative) }),
  ];
  const selects = [...shared, ...selectorTraits(namespaceSelector)];
  const both = [...shared, ...selectorTraits(namespaceSelector, podSelector)];
  return [
    ...behindService,
    { feature: 'NamespaceSelector', path: `${path}.namespaceSelector`, traits: selects },
    ...(podSelector === undefined ? [] : [{ feature: 'NamespaceAndPodSelector', path, traits: both } as const]),
  ];
}

/** Whether a pod that egress is allowed to is behind a Service whose selector the peer does not match. */
function hasServiceWithoutLabel(
  { podSelector, namespaceSelector }: Peer,
  { direction }: Rule,
  { policy, facts: { services = [] } }: Context,
): boolean {
  if (direction === 'Ingress' || podSelector === undefined) {
    return false;
  }
  return services.some(
    ({ namespace, selector, podLabels }) =>
      (namespaceSelector !== undefined || namespace === policy.namespace) &&
      !podSelector.matches(selector) &&
      podLabels.some((labels) => podSelector.matches(labels)),
  );
}

/** What all blocks of a rule have. */
function blockTraits({ direction, ports, peers }: Rule): readonly Trait[] {
  const blocks = peers.flatMap(({ ipBlock }) => ipBlock ?? []);
  return [
    direction,
    ...traitsThat({
      WithPorts: ports.length > 0,
      MixedFamilies: new Set(blocks.map(({ cidr }) => cidr.family)).size > 1,
      BesideBlocks: blocks.length > 1,
      BesideSelectors: blocks.length < peers.length,
    }),
  ];
}

function blockUses(
  block: IPBlock,
  { direction }: Rule,
  ofRule: readonly Trait[],
  { facts, overlapping, repeated }: Context,
): readonly FeatureUse[] {
  const own = traitsThat({
    HostBits: hasHostBits(block.cidr.address, block.cidr.prefix),
    OverlappingBlocks: overlapping.has(block),
    SameBlock: repeated.has(blockKey(direction, block)),
  });
  const traits = [...ofRule, ...own];
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
    ...localUse(use('IPBlockOfPods', path), block, facts.podCidrs, facts.podAddresses),
    ...localUse(use('IPBlockOfNodes', path), block, facts.nodeCidrs),
  ];
}

/**
 * Pairs of an exception and a block of its direction that are compared: 50 ms of a processor. In a policy with more, which no
 * person writes, exceptions are taken to overlap with other blocks.
 */
const MAX_PAIRS = 100_000;

/** @param all the blocks of a direction */
function overlappingOf(all: readonly DirectedBlock[]): readonly IPBlock[] {
  const blocks = all.map(({ block }) => block);
  const exceptions = blocks.reduce((sum, { except }) => sum + except.length, 0);
  const isTooMuch = exceptions * blocks.length > MAX_PAIRS;
  const isOverlapping = (block: IPBlock): boolean =>
    block.except.some(
      ({ cidr }) => isTooMuch || blocks.some((other) => other !== block && overlapsCidr(cidr, other.cidr)),
    );
  return blocks.filter(isOverlapping);
}

/** Lists of CIDRs and addresses as blocks. Each list is read once, because every ipBlock is compared with it. */
const parsed = new WeakMap<readonly string[], readonly Cidr[]>();

function parsedBlocks(texts: readonly string[]): readonly Cidr[] {
  const known = parsed.get(texts);
  if (known !== undefined) {
    return known;
  }
  const blocks = texts.flatMap((text) => parseBlock(text) ?? []);
  parsed.set(texts, blocks);
  return blocks;
}

/** The use, if the block contains addresses of the cluster, or may contain some. */
function localUse(
  use: FeatureUse,
  block: IPBlock,
  all: readonly string[] | undefined,
  some: readonly string[] = [],
): readonly FeatureUse[] {
  if (hasOneOf(block, all ?? some)) {
    return [use];
  }
  return all === undefined && hasOneOf(block, PRIVATE) ? [{ ...use, isPossible: true }] : [];
}

function hasOneOf({ cidr, except }: IPBlock, texts: readonly string[]): boolean {
  return parsedBlocks(texts).some(
    (one) => overlapsCidr(one, cidr) && !except.some((hole) => containsCidr(hole.cidr, one)),
  );
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
