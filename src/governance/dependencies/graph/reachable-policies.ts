import type { Requirement } from '../dependency.ts';
import type { GraphPolicy } from './graph-policy.ts';

/** Policies of a part of a graph, and their dependencies: it is built within some ten milliseconds. */
const MAX_POLICIES = 1000;
const MAX_DEPENDENCIES = 20_000;

/** The policies that a policy depends on, directly or not. */
export interface ReachablePolicies {
  /** The start included; nearest first. */
  readonly policies: readonly GraphPolicy[];
  /** Whether none were left out. */
  readonly isComplete: boolean;
}

/**
 * Follows dependencies from a policy. The work depends on what it finds, not on the policies of the cluster.
 * @param targetsOf policies that a dependency is on, or that contain its object; must return the same object for a policy
 */
export function reachablePolicies(
  start: GraphPolicy,
  targetsOf: (requirement: Requirement) => readonly GraphPolicy[],
): ReachablePolicies {
  const reached = new Set([start]);
  let dependencies = 0;
  for (const { templates } of reached) {
    for (const requirement of templates.flatMap(({ requirements }) => requirements)) {
      dependencies += 1;
      for (const target of targetsOf(requirement)) {
        reached.add(target);
      }
      if (dependencies > MAX_DEPENDENCIES || reached.size > MAX_POLICIES) {
        return { policies: [...reached], isComplete: false };
      }
    }
  }
  return { policies: [...reached], isComplete: true };
}
