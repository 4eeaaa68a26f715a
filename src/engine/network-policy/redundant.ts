import type { LabelRequirement, Selector } from '../../resources/index.ts';
import { containsCidr } from './cidr.ts';
import type { NetworkPolicyFinding } from './findings.ts';
import type { Direction, IPBlock, NetworkPolicy, Peer, PortEntry, Rule } from './network-policy.ts';

/** Comparisons of two policies for each policy, so that thousands in a namespace take a second. */
const MAX_COMPARISONS = 100;
/** Comparisons of peers and ports for each policy. */
const MAX_STEPS = 2_000;

/** What is left of {@link MAX_STEPS}. */
interface Budget {
  left: number;
}

/**
 * The policies of a cluster or of files, to find those that change nothing because another one of the namespace isolates at
 * least the same pods and allows at least the same. A policy is not compared with all others: some may be missed.
 */
export class NetworkPolicySet {
  /** By namespace and first requirement of the selector. */
  readonly #bySelector = new Map<string, NetworkPolicy[]>();

  constructor(policies: readonly NetworkPolicy[]) {
    for (const policy of policies) {
      const key = keyOf(policy, policy.podSelector.requirements[0]);
      const known = this.#bySelector.get(key);
      if (known === undefined) {
        this.#bySelector.set(key, [policy]);
      } else {
        known.push(policy);
      }
    }
  }

  /** Undefined when no other policy covers the policy, as far as that was looked at. */
  redundancy(policy: NetworkPolicy): NetworkPolicyFinding | undefined {
    let compared = 0;
    const steps = { left: MAX_STEPS };
    for (const requirement of [undefined, ...policy.podSelector.requirements]) {
      for (const other of this.#bySelector.get(keyOf(policy, requirement)) ?? []) {
        if (compared >= MAX_COMPARISONS) {
          return undefined;
        }
        compared += 1;
        if (other !== policy && other.name !== policy.name && isRedundant(policy, other, steps)) {
          const message = `changes nothing: ${other.name} isolates the same pods and allows at least the same`;
          return { type: 'Redundant', message, paths: ['spec'] };
        }
      }
    }
    return undefined;
  }
}

function keyOf({ namespace }: NetworkPolicy, requirement: LabelRequirement | undefined): string {
  return `${namespace}/${requirement === undefined ? '' : requirementKey(requirement)}`;
}

function requirementKey({ key, operator, values }: LabelRequirement): string {
  const name = operator === '=' || (operator === 'in' && values.length === 1) ? 'in' : operator;
  return JSON.stringify([key, name, values.toSorted()]);
}

/** Of two policies that cover each other, the one whose name is first is kept. */
function isRedundant(policy: NetworkPolicy, other: NetworkPolicy, steps: Budget): boolean {
  return isCovered(policy, other, steps) && (policy.name > other.name || !isCovered(other, policy, steps));
}

/** Whether `other` isolates the pods of `policy` in its directions, and allows what it allows. */
export function isCovered(policy: NetworkPolicy, other: NetworkPolicy, steps: Budget = { left: MAX_STEPS }): boolean {
  const isWhollyRead = policy.unread.length + other.unread.length === 0;
  return (
    isWhollyRead &&
    policy.namespace === other.namespace &&
    selectsAll(other.podSelector, policy.podSelector) &&
    [...policy.directions.keys()].every((direction) => other.directions.has(direction)) &&
    [...policy.directions.keys()].every((direction) =>
      allowsAll(rulesOf(other, direction), rulesOf(policy, direction), steps),
    )
  );
}

function rulesOf({ rules }: NetworkPolicy, direction: Direction): readonly Rule[] {
  return rules.filter((rule) => rule.direction === direction);
}

/** Whether every rule of `inner` is part of a rule of `outer`. */
function allowsAll(outer: readonly Rule[], inner: readonly Rule[], steps: Budget): boolean {
  return inner.every((rule) => outer.some((other) => hasPorts(other, rule, steps) && hasPeers(other, rule, steps)));
}

function hasPeers(outer: Rule, inner: Rule, steps: Budget): boolean {
  if (outer.peers.length === 0) {
    return true;
  }
  return (
    inner.peers.length > 0 &&
    inner.peers.every((peer) => outer.peers.some((one) => step(steps) && containsPeer(one, peer)))
  );
}

function hasPorts(outer: Rule, inner: Rule, steps: Budget): boolean {
  if (outer.ports.length === 0) {
    return true;
  }
  return (
    inner.ports.length > 0 &&
    inner.ports.every((port) => outer.ports.some((one) => step(steps) && containsPort(one, port)))
  );
}

/** False once there were too many steps, so that nothing more is found. */
function step(steps: Budget): boolean {
  steps.left -= 1;
  return steps.left >= 0;
}

function containsPeer(outer: Peer, inner: Peer): boolean {
  if (outer.ipBlock !== undefined || inner.ipBlock !== undefined) {
    return outer.ipBlock !== undefined && inner.ipBlock !== undefined && containsBlock(outer.ipBlock, inner.ipBlock);
  }
  const isSameScope = (outer.namespaceSelector === undefined) === (inner.namespaceSelector === undefined);
  return (
    isSameScope &&
    selectsAll(outer.namespaceSelector, inner.namespaceSelector) &&
    selectsAll(outer.podSelector, inner.podSelector)
  );
}

/** Each exception of the outer block must be one of the inner block, or lie outside it. */
function containsBlock(outer: IPBlock, inner: IPBlock): boolean {
  return (
    containsCidr(outer.cidr, inner.cidr) &&
    outer.except.every(
      (hole) =>
        (!containsCidr(inner.cidr, hole.cidr) && !containsCidr(hole.cidr, inner.cidr)) ||
        inner.except.some(({ cidr }) => containsCidr(cidr, hole.cidr)),
    )
  );
}

function containsPort(outer: PortEntry, inner: PortEntry): boolean {
  if (outer.protocol !== inner.protocol) {
    return false;
  }
  if (outer.port === undefined || typeof outer.port === 'string' || typeof inner.port !== 'number') {
    return outer.port === undefined || outer.port === inner.port;
  }
  return outer.port <= inner.port && (outer.endPort ?? outer.port) >= (inner.endPort ?? inner.port);
}

/** Whether `outer` selects all that `inner` selects: it has no requirement that `inner` lacks. Absent: everything. */
function selectsAll(outer: Selector | undefined, inner: Selector | undefined): boolean {
  if (outer === undefined || outer.isEmpty) {
    return true;
  }
  const required = new Set((inner?.requirements ?? []).map(requirementKey));
  return outer.requirements.length > 0 && outer.requirements.every((one) => required.has(requirementKey(one)));
}
