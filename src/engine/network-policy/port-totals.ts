// How many port entries a policy has for each peer: what limits of ports count.
import { portText } from './feature-uses.ts';
import type { Direction, NetworkPolicy, Peer, Rule } from './network-policy.ts';

/** The different port entries for one peer of a direction. */
export interface PortTotal {
  /** The field that names the direction. */
  readonly path: string;
  readonly peer: string;
  readonly entries: number;
}

/**
 * Port entries of peers in several rules that are counted one by one: some milliseconds. In a policy with more, which no person writes,
 * the others have at least the entries of their largest rule. On average these are more than any limit then.
 */
const MAX_COUNTED = 5_000_000;

export function portTotals({ directions, rules }: NetworkPolicy): readonly PortTotal[] {
  return [...directions].flatMap(([direction, path]) =>
    totalsOf(rules, direction).map(([peer, entries]) => ({ path, peer, entries })),
  );
}

function totalsOf(rules: readonly Rule[], direction: Direction): readonly (readonly [string, number])[] {
  const numbers = new EntryNumbers();
  const byPeer = new Map<string, (readonly number[])[]>();
  for (const rule of rules.filter((one) => one.direction === direction)) {
    const entries = numbers.of(rule);
    for (const peer of new Set(rule.peers.length === 0 ? [ANY_PEER] : rule.peers.map(peerText))) {
      const known = byPeer.get(peer);
      if (known === undefined) {
        byPeer.set(peer, [entries]);
      } else {
        known.push(entries);
      }
    }
  }
  return [...byPeer].map(([peer, lists]) => [peer, numbers.different(lists)]);
}

/** Port entries as numbers: the rules of a peer are compared without a set for each peer. */
class EntryNumbers {
  readonly #numbers = new Map<string, number>();
  /** By number: the last comparison that met it. */
  readonly #met: number[] = [];
  #comparisons = 0;
  #left = MAX_COUNTED;

  /** The different entries of a rule. */
  of({ ports }: Rule): readonly number[] {
    const texts = new Set(ports.length === 0 ? ['all'] : ports.map(portText));
    return [...texts].map((text) => {
      const number = this.#numbers.get(text) ?? this.#numbers.size;
      this.#numbers.set(text, number);
      return number;
    });
  }

  /** How many different entries the lists have; at least as many as the longest. */
  different(lists: readonly (readonly number[])[]): number {
    const all = lists.reduce((sum, { length }) => sum + length, 0);
    if (lists.length === 1 || all > this.#left) {
      return lists.reduce((most, { length }) => Math.max(most, length), 0);
    }
    this.#left -= all;
    this.#comparisons += 1;
    return lists.reduce((sum, list) => sum + this.#meet(list), 0);
  }

  /** The number of those that this comparison has not met. */
  #meet(list: readonly number[]): number {
    let fresh = 0;
    for (const number of list) {
      if (this.#met[number] !== this.#comparisons) {
        this.#met[number] = this.#comparisons;
        fresh += 1;
      }
    }
    return fresh;
  }
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
