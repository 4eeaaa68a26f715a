// How policies, templates and other objects are named for users.
import type { Requirement } from '../dependency.ts';
import type { DependencyGraph } from './dependency-graph.ts';
import { type GraphPolicy, type GraphTemplate, policyText } from './graph-policy.ts';

/** `policy default/kafka`, or `ConfigurationPolicy topics of policy default/kafka`. */
export function partText(policy: GraphPolicy, template?: GraphTemplate): string {
  const owner = `policy ${policyText(policy)}`;
  return template === undefined ? owner : `${template.kind} ${template.name} of ${owner}`;
}

/** The object of a dependency: policies by the name that their user gave them. */
export function requirementText(graph: DependencyGraph, requirement: Requirement): string {
  const target = graph.targetOf(requirement);
  if (target !== undefined) {
    return partText(target.policy, target.template);
  }
  const { kind, namespace, name } = requirement;
  return `${kind} ${namespace === '' || namespace === graph.clusterNamespace ? name : `${namespace}/${name}`}`;
}
