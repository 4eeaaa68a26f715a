// Which NetworkPolicies change nothing, because another one of the namespace allows the same.
import { type NetworkPolicyFinding, NetworkPolicySet, readNetworkPolicy } from '../engine/network-policy/index.ts';
import { compareStrings } from '../go/index.ts';
import { isJsonObject, keyOf, type KubernetesObject, type ObjectKey } from '../resources/index.ts';
import type { ObjectCache } from '../runtime/index.ts';

type Findings = ReadonlyMap<string, NetworkPolicyFinding>;

/** The findings by namespace. Only they are kept: policies are parsed when their namespace is compared. */
export class RedundantPolicies {
  readonly #policies: ReturnType<ObjectCache['index']>;
  readonly #byNamespace = new Map<string, Findings>();

  constructor(policies: Pick<ObjectCache, 'index'>) {
    this.#policies = policies.index(namespacesOf);
  }

  /** The finding about a policy, as of the last comparison of its namespace. */
  find({ namespace = '', name }: ObjectKey): NetworkPolicyFinding | undefined {
    const known = this.#byNamespace.get(namespace) ?? this.#compare(namespace);
    return known.get(name);
  }

  /** Compares the policies of a namespace. Returns those whose finding has changed. */
  update(namespace: string): readonly ObjectKey[] {
    const before = this.#byNamespace.get(namespace);
    const after = this.#compare(namespace);
    return [...new Set([...(before?.keys() ?? []), ...after.keys()])]
      .filter((name) => before?.get(name)?.message !== after.get(name)?.message)
      .map((name) => ({ namespace, name }));
  }

  #compare(namespace: string): Findings {
    const objects = this.#policies.get(namespace).toSorted(byName);
    const policies = objects.map((object) => readNetworkPolicy(isJsonObject(object) ? object : {}));
    const set = new NetworkPolicySet(policies);
    const found = policies.flatMap((policy) => {
      const finding = set.redundancy(policy);
      return finding === undefined ? [] : [[policy.name, finding] as const];
    });
    const findings = new Map(found);
    if (objects.length === 0) {
      this.#byNamespace.delete(namespace);
    } else {
      this.#byNamespace.set(namespace, findings);
    }
    return findings;
  }
}

function namespacesOf(object: KubernetesObject): readonly string[] {
  return [keyOf(object).namespace ?? ''];
}

/** A policy is not compared with all others: the order decides with which. */
function byName(one: KubernetesObject, other: KubernetesObject): number {
  return compareStrings(keyOf(one).name, keyOf(other).name);
}
