// Which NetworkPolicies change nothing, because another one of the namespace allows the same.
import {
  type NetworkPolicy,
  type NetworkPolicyFinding,
  NetworkPolicySet,
  readNetworkPolicy,
} from '../engine/network-policy/index.ts';
import { compareStrings } from '../go/index.ts';
import { isJsonObject, keyOf, type KubernetesObject, type ObjectKey } from '../resources/index.ts';
import type { ObjectCache } from '../runtime/index.ts';
import { TimeSlice } from '../threads/index.ts';

type Findings = ReadonlyMap<string, NetworkPolicyFinding>;

/**
 * The findings by namespace. Only they are kept: policies are parsed when their namespace is compared. A namespace may have
 * thousands of policies, so that it is compared in slices.
 */
export class RedundantPolicies {
  readonly #policies: ReturnType<ObjectCache['index']>;
  /** The newest comparison of each namespace, which may be under way. */
  readonly #comparisons = new Map<string, Promise<Findings>>();

  constructor(policies: Pick<ObjectCache, 'index'>) {
    this.#policies = policies.index(namespacesOf);
  }

  /** The finding about a policy, as of the last comparison of its namespace. */
  async find({ namespace = '', name }: ObjectKey): Promise<NetworkPolicyFinding | undefined> {
    const known = await (this.#comparisons.get(namespace) ?? this.#compare(namespace));
    return known.get(name);
  }

  /** Forgets all comparisons, after a time in which no changes were seen. */
  clear(): void {
    this.#comparisons.clear();
  }

  /** Compares the policies of a namespace. Returns those whose finding has changed. */
  async update(namespace: string): Promise<readonly ObjectKey[]> {
    const before = await this.#comparisons.get(namespace);
    const after = await this.#compare(namespace);
    return [...new Set([...(before?.keys() ?? []), ...after.keys()])]
      .filter((name) => before?.get(name)?.message !== after.get(name)?.message)
      .map((name) => ({ namespace, name }));
  }

  #compare(namespace: string): Promise<Findings> {
    const objects = this.#policies.get(namespace).toSorted(byName);
    const comparison = findingsOf(objects);
    if (objects.length === 0) {
      this.#comparisons.delete(namespace);
    } else {
      this.#comparisons.set(namespace, comparison);
    }
    return comparison;
  }
}

async function findingsOf(objects: readonly KubernetesObject[]): Promise<Findings> {
  const slice = new TimeSlice();
  const set = new NetworkPolicySet();
  const policies: NetworkPolicy[] = [];
  for (const object of objects) {
    await slice.yield();
    const policy = readNetworkPolicy(isJsonObject(object) ? object : {});
    policies.push(policy);
    set.add(policy);
  }
  const findings = new Map<string, NetworkPolicyFinding>();
  for (const policy of policies) {
    await slice.yield();
    const finding = set.redundancy(policy);
    if (finding !== undefined) {
      findings.set(policy.name, finding);
    }
  }
  return findings;
}

function namespacesOf(object: KubernetesObject): readonly string[] {
  return [keyOf(object).namespace ?? ''];
}

/** A policy is not compared with all others: the order decides with which. */
function byName(one: KubernetesObject, other: KubernetesObject): number {
  return compareStrings(keyOf(one).name, keyOf(other).name);
}
