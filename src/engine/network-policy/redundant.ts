import type { LabelRequirement, Selector } from '../../resources/index.ts';
import { containsCidr, overlapsCidr } from './cidr.ts';
import type { NetworkPolicyFinding } from './findings.ts';
import type { IPBlock, NetworkPolicy, Peer, PortEntry, Rule } from './network-policy.ts';

/** Comparisons of two policies for each policy, so that thousands in a namespace take a second. */
const MAX_COMPARISONS = 100;
/** Comparisons of rules, peers, ports, exceptions and requirements for each policy: less than a millisecond. */
const MAX_STEPS = 2_000;

/** The steps that are left for a policy. */
class Steps {
  #left = MAX_STEPS;

  /** Whether there were not too many steps. */
  get isLeft(): boolean {
    return this.#left >= 0;
  }

  /** False once there were too many steps, so that nothing more is found. */
  take(count = 1): boolean {
    this.#left -= count;
    return this.isLeft;
  }
}

/**
 * The policies of a cluster or of files, to find those that change nothing because another one of the namespace isolates at
 * least the same pods and allows at least the same. A policy is not compared with all others: some may be missed.
 */
export class NetworkPolicySet {
  /** By namespace and first requirement of the selector. */
  readonly #bySelector = new Map<string, NetworkPolicy[]>();

  constructor(policies: Iterable<NetworkPolicy> = []) {
    for (const policy of policies) {
      this.add(policy);
    }
  }

  add(policy: NetworkPolicy): void {
    const [first] = requirementKeys(policy.podSelector);
    const key = keyOf(policy, first);
    const known = this.#bySelector.get(key);
    if (known === undefined) {
      this.#bySelector.set(key, [policy]);
    } else {
      known.push(policy);
    }
  }

  /** Undefined when no other policy covers the policy, as far as that was looked at. */
  redundancy(policy: NetworkPolicy): NetworkPolicyFinding | undefined {
    let compared = 0;
    const steps = new Steps();
    for (const requirement of [undefined, ...requirementKeys(policy.podSelector)]) {
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

function keyOf({ namespace }: NetworkPolicy, requirement = ''): string {
  return `${namespace}/${requirement}`;
}

/** The requirements of selectors as texts. Each selector is compared many times. */
const keysOfSelectors = new WeakMap<Selector, ReadonlySet<string>>();

function requirementKeys(selector: Selector): ReadonlySet<string> {
  const keys = keysOfSelectors.get(selector) ?? new Set(selector.requirements.map(requirementKey));
  keysOfSelectors.set(selector, keys);
  return keys;
}

function requirementKey({ key, operator, values }: LabelRequirement): string {
  const name = operator === '=' || (operator === 'in' && values.length === 1) ? 'in' : operator;
  return JSON.stringify([key, name, values.toSorted()]);
}

/** Of two policies that cover each other, the one whose name is first is kept. */
function isRedundant(policy: NetworkPolicy, other: NetworkPolicy, steps: Steps): boolean {
  return (
    isCovered(policy, other, steps) && (policy.name > other.name || (!isCovered(other, policy, steps) && steps.isLeft))
  );
}

/** Whether `other` isolates the pods of `policy` in its directions, and allows what it allows. */
export function isCovered(policy: NetworkPolicy, other: NetworkPolicy, steps = new Steps()): boolean {
  const isWhollyRead = policy.unread.length + other.unread.length === 0;
  return (
    isWhollyRead &&
    policy.namespace === other.namespace &&
    selectsAll(other.podSelector, policy.podSelector, steps) &&
    [...policy.directions.keys()].every((direction) => other.directions.has(direction)) &&
    policy.rules.every((rule) => other.rules.some((one) => allowsAll(one, rule, steps)))
  );
}

/** Whether the rule `inner` is part of the rule `outer`. */
function allowsAll(outer: Rule, inner: Rule, steps: Steps): boolean {
  return (
    steps.take() &&
    outer.direction === inner.direction &&
    hasPorts(outer, inner, steps) &&
    hasPeers(outer, inner, steps)
  );
}

function hasPeers(outer: Rule, inner: Rule, steps: Steps): boolean {
  if (outer.peers.length === 0) {
    return true;
  }
  return (
    inner.peers.length > 0 &&
    inner.peers.every((peer) => outer.peers.some((one) => steps.take() && containsPeer(one, peer, steps)))
  );
}

function hasPorts(outer: Rule, inner: Rule, steps: Steps): boolean {
  if (outer.ports.length === 0) {
    return true;
  }
  return (
    inner.ports.length > 0 &&
    inner.ports.every((port) => outer.ports.some((one) => steps.take() && containsPort(one, port)))
  );
}

function containsPeer(outer: Peer, inner: Peer, steps: Steps): boolean {
  if (outer.ipBlock !== undefined || inner.ipBlock !== undefined) {
    return (
      outer.ipBlock !== undefined && inner.ipBlock !== undefined && containsBlock(outer.ipBlock, inner.ipBlock, steps)
    );
  }
  const isSameScope = (outer.namespaceSelector === undefined) === (inner.namespaceSelector === undefined);
  return (
    isSameScope &&
    selectsAll(outer.namespaceSelector, inner.namespaceSelector, steps) &&
    selectsAll(outer.podSelector, inner.podSelector, steps)
  );
}

/** Each exception of the outer block must be one of the inner block, or lie outside it. */
function containsBlock(outer: IPBlock, inner: IPBlock, steps: Steps): boolean {
  return (
    containsCidr(outer.cidr, inner.cidr) &&
    outer.except.every(
      (hole) =>
        steps.take() &&
        (!overlapsCidr(inner.cidr, hole.cidr) ||
          inner.except.some(({ cidr }) => steps.take() && containsCidr(cidr, hole.cidr))),
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
function selectsAll(outer: Selector | undefined, inner: Selector | undefined, steps: Steps): boolean {
  if (outer === undefined || outer.isEmpty) {
    return true;
  }
  const [wanted, given] = [requirementKeys(outer), inner === undefined ? new Set<string>() : requirementKeys(inner)];
  return wanted.size > 0 && steps.take(wanted.size) && wanted.isSubsetOf(given);
}
