// What a user can do about the root causes of a pending policy.
import {
  type DependencyGraph,
  isGovernancePolicyKind,
  type Requirement,
  requirementText,
  type UnmetDependency,
} from '../governance/index.ts';
import { GOVERNANCE_GROUP, kubernetesKind } from '../resources/index.ts';

/** One sentence for each root cause. */
export function governanceSteps(
  graph: DependencyGraph,
  rootCauses: readonly UnmetDependency[],
  program: string,
): readonly string[] {
  return [...new Set(rootCauses.map((cause) => nextStep(graph, cause, program)))];
}

function nextStep(graph: DependencyGraph, cause: UnmetDependency, program: string): string {
  const { apiVersion, kind, reason, compliance } = cause;
  const object = requirementText(graph, cause);
  switch (reason) {
    case 'NoSuchKind':
      return `Install the CRD of ${kind} (${apiVersion}), or remove the dependency on ${object}.`;
    case 'NotFound':
      return `Create ${object}, or correct the name of the dependency.`;
    case 'NotPlaced':
      return `Enable ${object} on this cluster, or remove the dependency on it.`;
    case 'NoStatus':
      return `Nothing has evaluated ${object} yet. If that lasts, check its controller: ${look(graph, cause, program)}`;
    case 'Stale':
      return `Wait until ${object} is evaluated again. If that lasts, check its controller: ${look(graph, cause, program)}`;
    case 'Forbidden':
      return `You may not read ${object}: ask for the right to read it, or somebody who has it.`;
    case 'GetFailed':
      return `Try again: ${object} could not be read.`;
    case 'Mismatch':
      return `Make ${object} ${compliance}. What it lacks: ${look(graph, cause, program)}`;
    case 'Cycle':
      return `Remove one of the dependencies that form the cycle through ${object}.`;
    default:
      return reason satisfies never;
  }
}

/** The command that shows an object, or explains a policy. */
function look(graph: DependencyGraph, cause: UnmetDependency, program: string): string {
  const policy = isGovernancePolicyKind(cause) ? graph.targetOf(cause)?.policy : undefined;
  return policy === undefined
    ? describeText(cause, program)
    : `${program} explain policy/${policy.name} -n ${policy.namespace}`;
}

/** The command that shows an object. Kinds that other kinds may share their name with are written in full. */
export function describeText(
  { apiVersion, kind, namespace, name }: Omit<Requirement, 'compliance'>,
  program: string,
): string {
  const [version = '', group = ''] = apiVersion.split('/').toReversed();
  const isShort = group === '' || kubernetesKind(apiVersion, kind) !== undefined || group === GOVERNANCE_GROUP;
  const type = [kind.toLowerCase(), ...(isShort ? [] : [version, group])].join('.');
  return `${program} describe ${type}/${name}${namespace === '' ? '' : ` -n ${namespace}`}`;
}
