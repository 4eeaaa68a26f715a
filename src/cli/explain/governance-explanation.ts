// Explains governance policies with the rights of the user.
import {
  explainGovernancePolicy,
  type Explanation,
  explainPolicySet,
  type GovernanceSubject,
  templateReadiness,
} from '../../explain/index.ts';
import { DependencyReader, explainPending, type PolicyGraph, rootOf } from '../../governance/index.ts';
import { type KubernetesObject, type ObjectKey, POLICIES, POLICY_SETS } from '../../resources/index.ts';
import type { ApiResource } from '../../cluster/index.ts';
import type { Connected } from '../cluster/cluster-flags.ts';
import { objectName } from '../cluster/resource-arguments.ts';
import { CliError } from '../errors.ts';
import { governedPolicies } from '../governance/governed-policies.ts';
import { lackingRights, rightTexts } from '../../installation/index.ts';
import { programName } from '../program-name.ts';
import { oneLine } from '../table.ts';

/** What is asked about governance. */
export interface GovernanceQuestion {
  readonly type: ApiResource;
  readonly name: string;
  readonly template: string | undefined;
  readonly clusterName: string;
}

/** @throws CliError when there is no such object; ApiError, ClusterError */
export async function governanceExplanation(
  question: GovernanceQuestion,
  { cluster, namespace }: Connected,
): Promise<Explanation> {
  const policies = await governedPolicies({ cluster, namespace }, question.clusterName);
  const asked = { program: programName() };
  if (question.type.kind === POLICY_SETS.kind) {
    const { name } = question;
    return explainPolicySet({ namespace, name }, policies, asked) ?? throwNoSet(namespace, name);
  }
  const subject = subjectOf(question, namespace, policies);
  const { key, template } = subject;
  const reader = new DependencyReader(cluster, policies);
  const pending = await reader.resolve((lookup) => explainPending(policies.graph, key, lookup, template));
  const copy = policies.copies.get(`${key.namespace}.${key.name}`);
  const lacking = copy === undefined ? [] : await lackingRights(cluster, copy);
  const templates = policies.graph.policy(key)?.templates ?? [];
  const explained = templates.filter((one) => template === undefined || one.name === template);
  const readiness = await templateReadiness(cluster, explained, question.clusterName);
  return explainGovernancePolicy(subject, policies, { pending, lacking: rightTexts(lacking), readiness }, asked);
}

/** The policy to explain. @throws CliError when there is none */
function subjectOf(
  { type, name, template, clusterName }: GovernanceQuestion,
  namespace: string,
  { graph, roots }: PolicyGraph,
): GovernanceSubject {
  if (type.kind !== POLICIES.kind) {
    const apiVersion = `${type.group}/${type.version}`;
    const owner = graph.targetOf({ apiVersion, kind: type.kind, name, namespace: clusterName, compliance: '' });
    if (owner === undefined) {
      throw new CliError(`no Policy has ${objectName(type, name)} as a template`);
    }
    return { key: owner.policy, template: name };
  }
  const root = namespace === clusterName ? rootOf(name) : undefined;
  const key = { namespace, name, ...root };
  const policy = graph.policy(key);
  if (policy === undefined) {
    throw notFound(
      key,
      [...roots.values()].filter(({ metadata }) => metadata.name === name),
    );
  }
  if (template !== undefined && !policy.templates.some((one) => one.name === template)) {
    const names = policy.templates.map((one) => oneLine(one.name)).join(', ');
    throw new CliError(`policy ${oneLine(`${key.namespace}/${key.name}`)} has no template ${oneLine(template)}`, {
      hint: `Its templates: ${names}`,
    });
  }
  return { key, template };
}

function throwNoSet(namespace: string, name: string): never {
  throw new CliError(`there is no policyset ${oneLine(`${namespace}/${name}`)}`, {
    hint: `${programName()} get policysets -A lists all.`,
  });
}

function notFound({ namespace, name }: Required<ObjectKey>, elsewhere: readonly KubernetesObject[]): CliError {
  const namespaces = elsewhere.map(({ metadata }) => oneLine(metadata.namespace ?? ''));
  const hint =
    namespaces.length === 0
      ? `${programName()} get policies -A lists all policies.`
      : `There is one in namespace ${namespaces.join(', ')}: name it with -n.`;
  return new CliError(`there is no policy ${oneLine(`${namespace}/${name}`)}`, { hint });
}
