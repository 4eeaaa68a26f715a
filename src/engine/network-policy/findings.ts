// What is worth knowing about a policy, whatever the provider.
import { listed, shortened } from '../../values/index.ts';
import { cidrWarnings } from '../../resources/kind-validation/index.ts';
import type { NetworkPolicy } from './network-policy.ts';
import type { PodFacts } from './pod-facts.ts';
import { MAX_PATHS } from './verdict.ts';

export type FindingType =
  /** No pod that was given is selected. */
  | 'SelectsNoPod'
  /** Some selected pods are in the network of their host, where NetworkPolicies have no effect. */
  | 'SelectsHostNetworkPods'
  /** A direction is isolated and nothing is allowed. */
  | 'AllowsNothing'
  /** Rules of a direction that `policyTypes` does not name. */
  | 'RulesWithoutEffect'
  /** What was applied had `endPort`, and the object has not. */
  | 'EndPortLost'
  /** CIDRs with bits beyond their prefix, or in an unusual notation. */
  | 'AmbiguousCidr'
  /** Another policy of the namespace isolates the same pods and allows the same. */
  | 'Redundant';

/** The findings that are mistakes, in words; the others are often intended. */
export const MISTAKES = {
  RulesWithoutEffect: 'rules of a direction that policyTypes does not name',
  EndPortLost: 'endPort that the API server dropped',
  AmbiguousCidr: 'CIDRs with bits beyond their prefix, or in an unusual notation',
} as const satisfies Partial<Record<FindingType, string>>;

export interface NetworkPolicyFinding {
  readonly type: FindingType;
  readonly message: string;
  readonly paths: readonly string[];
}

/** @param pods all pods of the cluster, or of the namespace; undefined when they are not known */
export function findingsOf(policy: NetworkPolicy, pods?: readonly PodFacts[]): readonly NetworkPolicyFinding[] {
  return [
    ...(pods === undefined ? [] : podFindings(policy, pods)),
    ...allowsNothing(policy),
    ...rulesWithoutEffect(policy),
    ...lostEndPorts(policy),
    ...ambiguousCidrs(policy),
  ];
}

/** The findings that are mistakes, whatever the pods of the cluster. */
export function mistakesOf(policy: NetworkPolicy): readonly NetworkPolicyFinding[] {
  return findingsOf(policy).filter(({ type }) => Object.hasOwn(MISTAKES, type));
}

function podFindings(
  { namespace, podSelector }: NetworkPolicy,
  pods: readonly PodFacts[],
): readonly NetworkPolicyFinding[] {
  const selected = pods.filter((pod) => pod.namespace === namespace && podSelector.matches(pod.labels));
  const paths = ['spec.podSelector'];
  if (selected.length === 0) {
    const labels = podSelector.isEmpty ? '' : ` with ${shortened(podSelector.toString(), MAX_SELECTOR)}`;
    return [{ type: 'SelectsNoPod', message: `selects no pod now: ${namespace} has none${labels}`, paths }];
  }
  const hosts = selected.filter(({ hostNetwork }) => hostNetwork === true).length;
  const message = `has no effect on ${hosts} of ${selected.length} pods: they are in the network of their host`;
  return hosts === 0 ? [] : [{ type: 'SelectsHostNetworkPods', message, paths }];
}

/** Characters of a selector in a message. */
const MAX_SELECTOR = 120;

function allowsNothing({ directions, rules }: NetworkPolicy): readonly NetworkPolicyFinding[] {
  const empty = [...directions].filter(([direction]) => !rules.some((rule) => rule.direction === direction));
  if (empty.length === 0) {
    return [];
  }
  const names = empty.map(([direction]) => direction.toLowerCase()).join(' and ');
  const message = `isolates ${names} and allows none: only other policies can allow some`;
  return [{ type: 'AllowsNothing', message, paths: empty.map(([, path]) => path) }];
}

function rulesWithoutEffect({ rulesWithoutEffect: paths }: NetworkPolicy): readonly NetworkPolicyFinding[] {
  const message = 'has rules without effect: policyTypes does not name their direction';
  return paths.length === 0 ? [] : [{ type: 'RulesWithoutEffect', message, paths: paths.slice(0, MAX_PATHS) }];
}

function lostEndPorts({ droppedEndPorts: count }: NetworkPolicy): readonly NetworkPolicyFinding[] {
  const message = `lost ${count} endPort: what was applied has it, the object has not, so that only the first port is allowed. The API server drops the field before version 1.25 unless its gate NetworkPolicyEndPort is on`;
  return count === 0 ? [] : [{ type: 'EndPortLost', message, paths: ['metadata.annotations'] }];
}

/** Warnings of API servers that a message has. */
const MAX_CIDR_WARNINGS = 3;

/** In the words of API servers, which warn of it since version 1.33. */
function ambiguousCidrs({ rules }: NetworkPolicy): readonly NetworkPolicyFinding[] {
  const blocks = rules.flatMap(({ peers }) => peers.flatMap(({ ipBlock }) => ipBlock ?? []));
  const warned = blocks
    .flatMap(({ path, text, except }) => [{ path: `${path}.cidr`, text }, ...except])
    .map(({ path, text }) => ({ path, warnings: cidrWarnings(text, path) }))
    .filter(({ warnings }) => warnings.length > 0);
  const texts = warned.flatMap(({ warnings }) => warnings);
  const message = `has CIDRs that may not mean what they say: ${listed(texts, MAX_CIDR_WARNINGS, '; ')}`;
  const paths = warned.slice(0, MAX_PATHS).map(({ path }) => path);
  return warned.length === 0 ? [] : [{ type: 'AmbiguousCidr', message, paths }];
}
