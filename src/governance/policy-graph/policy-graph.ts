// The Policies of a cluster or of files, and the graph of their dependencies.
import { type Cluster, isForbidden, listAll } from '../../cluster/index.ts';
import { DependencyGraph, graphPolicy, isGovernancePolicyKind } from '../dependencies/index.ts';
import { POLICY_REASONS } from '../policy/policy-reasons.ts';
import { rootOf } from '../targets/policy-copy.ts';
import {
  GOVERNANCE_GROUP,
  groupVersionOf,
  type KubernetesObject,
  keyText,
  type ObjectKey,
  POLICIES,
  POLICY_SETS,
  type Policy,
  READY,
  type ResourceType,
  valueAt,
} from '../../resources/index.ts';

/** Reasons of the condition `Ready` of Policies that apply nowhere. */
const UNPLACED_REASONS: ReadonlySet<string> = new Set([
  POLICY_REASONS.namespaceNotGoverned,
  POLICY_REASONS.notPlaced,
  POLICY_REASONS.nameTooLong,
]);

/** A Policy, whose spec is not validated if it comes from a file. */
export type PolicyManifest = KubernetesObject & Pick<Policy, 'status'>;

export interface PolicyGraph {
  readonly graph: DependencyGraph;
  /** The Policies as users wrote them, by `namespace/name`. */
  readonly roots: ReadonlyMap<string, PolicyManifest>;
  /** The PolicySets, by `namespace/name`. */
  readonly sets: ReadonlyMap<string, KubernetesObject>;
  /** The copies in the namespace of the cluster, by name. */
  readonly copies: ReadonlyMap<string, Policy>;
  /** Whether the user may not list all Policies, so that what is not here may exist. */
  readonly isPartial: boolean;
}

/**
 * Reads the Policies of a cluster: of all namespaces, or of one namespace for a user without the right to list all. Undefined when
 * the cluster has no kind Policy.
 * @throws ApiError, ClusterError
 */
export async function clusterPolicies(
  cluster: Cluster,
  clusterName: string,
  namespace: string,
): Promise<PolicyGraph | undefined> {
  if ((await cluster.discovery.find(`${POLICIES.group}/${POLICIES.version}`, POLICIES.kind)) === undefined) {
    return undefined;
  }
  const namespaces = [...new Set([namespace, clusterName])];
  const [policies, sets] = await Promise.all([
    readable(cluster, POLICIES, namespaces),
    readable(cluster, POLICY_SETS, namespaces),
  ]);
  const roots = policies.items.filter(({ metadata }) => metadata.namespace !== clusterName);
  const copies = policies.items.filter(({ metadata }) => metadata.namespace === clusterName);
  const { isPartial } = policies;
  return { ...graphOf(roots, sets.items, clusterName), copies: byName(copies), isPartial };
}

/** The Policies among manifests. @param namespace of manifests that name none */
export function filePolicies(
  manifests: readonly KubernetesObject[],
  clusterName: string,
  namespace: string,
): PolicyGraph {
  const own = manifests
    .filter(({ apiVersion }) => groupVersionOf(apiVersion).group === GOVERNANCE_GROUP)
    .map((object) => ({
      ...object,
      metadata: { ...object.metadata, namespace: object.metadata.namespace ?? namespace },
    }));
  const policies = own.filter(isGovernancePolicyKind);
  const sets = own.filter(({ kind }) => kind === POLICY_SETS.kind);
  return { ...graphOf(policies, sets, clusterName), copies: new Map(), isPartial: false };
}

/** The Policies of a namespace, with all that they depend on. */
export function withinNamespace(policies: PolicyGraph, namespace: string): PolicyGraph {
  const { graph } = policies;
  const reached = new Set(graph.policies.filter((policy) => policy.namespace === namespace));
  for (const { templates } of reached) {
    for (const requirement of templates.flatMap(({ requirements }) => requirements)) {
      const target = graph.targetOf(requirement);
      if (target !== undefined) {
        reached.add(target.policy);
      }
    }
  }
  return { ...policies, graph: new DependencyGraph([...reached], graph.clusterNamespace) };
}

/** What is wrong with the dependencies of a Policy, as far as it can be told from what was read. */
export function dependencyFindings(
  { graph, isPartial }: PolicyGraph,
  key: Required<ObjectKey>,
): ReturnType<DependencyGraph['findingsOf']> {
  return graph.findingsOf(key).filter(({ type }) => type !== 'not-found' || !isPartial);
}

/** The Policy that a copy was made from. */
export function rootOfCopy({ roots }: Pick<PolicyGraph, 'roots'>, copy: string): PolicyManifest | undefined {
  const key = rootOf(copy);
  return key && roots.get(keyText(key));
}

function graphOf(
  roots: readonly KubernetesObject[],
  sets: readonly KubernetesObject[],
  clusterName: string,
): Pick<PolicyGraph, 'graph' | 'roots' | 'sets'> {
  const named = new Map(roots.map((root) => [textOfKey(root), root]));
  const members = new Map(sets.map((set) => [textOfKey(set), membersOf(set)]));
  const parts = [...named.values()].map((root) =>
    graphPolicy(root, {
      clusterNamespace: clusterName,
      policiesOfSet: (key: ObjectKey) => members.get(keyText(key)),
      isPlaced,
    }),
  );
  return {
    roots: named,
    sets: new Map(sets.map((set) => [textOfKey(set), set])),
    graph: new DependencyGraph(parts, clusterName),
  };
}

/** Whether the controller applies a Policy; the settings that decide are its own. */
function isPlaced({ status }: PolicyManifest): boolean {
  const ready = status?.conditions?.find(({ type }) => type === READY);
  return ready === undefined || ready.status === 'True' || !UNPLACED_REASONS.has(ready.reason);
}

/** All objects of a kind; those of some namespaces when a user may not list all. @throws ApiError, ClusterError */
async function readable<T extends KubernetesObject>(
  cluster: Cluster,
  type: ResourceType<T>,
  namespaces: readonly string[],
): Promise<{ readonly items: readonly T[]; readonly isPartial: boolean }> {
  try {
    return { items: (await listAll(cluster, type)).items, isPartial: false };
  } catch (error) {
    if (!isForbidden(error)) {
      throw error;
    }
    const lists = await Promise.allSettled(namespaces.map((namespace) => listAll(cluster, type, { namespace })));
    const [read, failed] = [lists.filter(isFulfilled), lists.filter((list) => !isFulfilled(list))];
    const unexpected = failed.find(({ reason }) => !isForbidden(reason));
    if (unexpected !== undefined || read.length === 0) {
      throw unexpected?.reason ?? error;
    }
    return { items: read.flatMap(({ value }) => value.items), isPartial: true };
  }
}

function isFulfilled<T>(result: PromiseSettledResult<T>): result is PromiseFulfilledResult<T> {
  return result.status === 'fulfilled';
}

/** The members of a PolicySet, which may come from a file. */
function membersOf(set: KubernetesObject): readonly string[] | undefined {
  const policies = valueAt(set, 'spec', 'policies');
  return Array.isArray(policies) ? policies.filter((name) => typeof name === 'string') : undefined;
}

function byName(policies: readonly Policy[]): ReadonlyMap<string, Policy> {
  return new Map(policies.map((policy) => [policy.metadata.name ?? '', policy]));
}

function textOfKey({ metadata: { namespace = '', name = '' } }: KubernetesObject): string {
  return keyText({ namespace, name });
}
