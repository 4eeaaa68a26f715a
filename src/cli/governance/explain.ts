// `portcullis explain`: why a governance policy is pending or not compliant, and what to do.
import { Argument, Command, Option } from 'commander';
import { explainPending, rootOf } from '../../governance/index.ts';
import { GOVERNANCE_GROUP, type KubernetesObject, type ObjectKey, POLICIES } from '../../resources/index.ts';
import { addClusterFlags, type ClusterFlags, connect, type Connected } from '../cluster/cluster-flags.ts';
import { objectName, selectResources, typeNamed } from '../cluster/resource-arguments.ts';
import { CliError, usageError } from '../errors.ts';
import { dataText } from '../output.ts';
import { programName } from '../program-name.ts';
import { oneLine } from '../table.ts';
import { clusterNameOption } from './cluster-name-flag.ts';
import { DependencyReader } from './dependency-reader.ts';
import { answerOf, answerText, type Subject } from './policy-answer.ts';
import { clusterPolicies, type PolicyGraph } from './policy-graph.ts';

interface ExplainFlags extends ClusterFlags {
  readonly template?: string;
  readonly clusterName: string;
  readonly output: 'text' | 'json' | 'yaml';
}

export function explainCommand(): Command {
  return addClusterFlags(
    new Command('explain')
      .description('say why a governance policy is pending or not compliant, and what to do')
      .addArgument(new Argument('<policy...>', 'policy/NAME, or a template of a policy: configurationpolicy/NAME'))
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
  portcullis explain configurationpolicy/kafka-topics`,
    )
    .action(explain);
}

async function explain(args: readonly string[], flags: ExplainFlags): Promise<void> {
  using connected = await connect(flags);
  const policies = await clusterPolicies(connected.cluster, flags.clusterName, connected.namespace);
  const subject = await subjectOf(args, flags, connected, policies);
  const reader = new DependencyReader(connected.cluster, policies);
  const explanation = await reader.resolve((lookup) =>
    explainPending(policies.graph, subject.key, lookup, subject.template),
  );
  const answer = answerOf(subject, policies, explanation);
  process.stdout.write(flags.output === 'text' ? answerText(answer) : dataText(answer, flags.output, { pretty: true }));
}

/** @throws CliError when there is no such policy */
async function subjectOf(
  args: readonly string[],
  { template, clusterName }: ExplainFlags,
  { cluster, namespace }: Connected,
  { graph, roots }: PolicyGraph,
): Promise<Subject> {
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

function notFound({ namespace, name }: Required<ObjectKey>, elsewhere: readonly KubernetesObject[]): CliError {
  const namespaces = elsewhere.map(({ metadata }) => oneLine(metadata.namespace ?? ''));
  const hint =
    namespaces.length === 0
      ? `${programName()} get policies -A lists all policies.`
      : `There is one in namespace ${namespaces.join(', ')}: name it with -n.`;
  return new CliError(`there is no policy ${oneLine(`${namespace}/${name}`)}`, { hint });
}
