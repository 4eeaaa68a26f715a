// `portcullis explain`: why a governance policy is pending or not compliant, and what to do.
import { Argument, Command, Option } from 'commander';
import { explainPending, rootOf } from '../../governance/index.ts';
import {
  GOVERNANCE_GROUP,
  type KubernetesObject,
  type ObjectKey,
  POLICIES,
  POLICY_SETS,
} from '../../resources/index.ts';
import { addClusterFlags, type ClusterFlags, connect, type Connected } from '../cluster/cluster-flags.ts';
import { objectName, selectResources, typeNamed } from '../cluster/resource-arguments.ts';
import { CliError, usageError } from '../errors.ts';
import { dataText } from '../output.ts';
import { programName } from '../program-name.ts';
import { oneLine } from '../table.ts';
import { clusterNameOption } from './cluster-name-flag.ts';
import { DependencyReader } from './dependency-reader.ts';
import { type Answer, answerOf, answerText, type Subject } from './policy-answer.ts';
import { clusterPolicies, type PolicyGraph } from './policy-graph.ts';
import { policySetAnswer } from './policy-set-answer.ts';
import { lackingRights } from './rights/account-rights.ts';

interface ExplainFlags extends ClusterFlags {
  readonly template?: string;
  readonly clusterName: string;
  readonly output: 'text' | 'json' | 'yaml';
}

export function explainCommand(): Command {
  return addClusterFlags(
    new Command('explain')
      .description('say why a governance policy is pending or not compliant, and what to do')
      .addArgument(
        new Argument('<policy...>', 'policy/NAME, policyset/NAME, or a template of a policy: configurationpolicy/NAME'),
      )
      .option('--template <name>', 'explain one template of the policy')
      .addOption(clusterNameOption())
      .addOption(
        new Option('-o, --output <format>', 'output format').choices(['text', 'json', 'yaml']).default('text'),
      ),
  )
    .addHelpText(
      'after',
      `
Examples:
  portcullis explain policy/kafka -n policies
  portcullis explain policy/kafka -n policies --template kafka-topics
  portcullis explain configurationpolicy/kafka-topics
  portcullis explain policyset/baseline -n policies`,
    )
    .action(explain);
}

async function explain(args: readonly string[], flags: ExplainFlags): Promise<void> {
  using connected = await connect(flags);
  const policies = await clusterPolicies(connected.cluster, flags.clusterName, connected.namespace);
  const subject = await subjectOf(args, flags, connected, policies);
  if ('because' in subject) {
    print(subject, flags);
    return;
  }
  const reader = new DependencyReader(connected.cluster, policies);
  const explanation = await reader.resolve((lookup) =>
    explainPending(policies.graph, subject.key, lookup, subject.template),
  );
  const copy = policies.copies.get(`${subject.key.namespace}.${subject.key.name}`);
  const lacking = copy === undefined ? [] : await lackingRights(connected.cluster, copy);
  const answer = answerOf(subject, policies, explanation, lacking);
  print(answer, flags);
}

function print(answer: Answer, { output }: ExplainFlags): void {
  process.stdout.write(output === 'text' ? answerText(answer) : dataText(answer, output, { pretty: true }));
}

/** The policy to explain, or the answer about a PolicySet. @throws CliError when there is none */
async function subjectOf(
  args: readonly string[],
  { template, clusterName }: ExplainFlags,
  { cluster, namespace }: Connected,
  policies: PolicyGraph,
): Promise<Subject | Answer> {
  const { graph, roots } = policies;
  const [word = ''] = args;
  if (args.length === 1 && !word.includes('/') && (await typeNamed(cluster, word)) === undefined) {
    throw usageError(
      `expected TYPE/NAME, got ${oneLine(word)}`,
      `Name a Policy with its type: policy/${oneLine(word)}`,
    );
  }
  const [selection, ...more] = await selectResources(cluster, args);
  const [name, ...others] = selection?.names ?? [];
  if (selection === undefined || name === undefined || more.length + others.length > 0) {
    throw usageError('expected one policy', 'Name it as TYPE/NAME, such as policy/kafka.');
  }
  const { type } = selection;
  if (type.group !== GOVERNANCE_GROUP) {
    throw usageError(`${objectName(type, name)} is no governance policy`, 'Name one as in policy/kafka.');
  }
  if (type.kind === POLICY_SETS.kind) {
    return policySetAnswer({ namespace, name }, policies) ?? throwNoSet(namespace, name);
  }
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
