// `portcullis explain`: why an object is not as it should be, and what to do.
import { Argument, Command, Option } from 'commander';
import { explainerOf, type Explanation } from '../../explain/index.ts';
import { GOVERNANCE_GROUP } from '../../resources/index.ts';
import type { ApiResource } from '../../cluster/index.ts';
import { addClusterFlags, type ClusterFlags, connect, type Connected } from '../cluster/cluster-flags.ts';
import { keyIn, objectName, selectResources, typeNamed } from '../cluster/resource-arguments.ts';
import { usageError } from '../errors.ts';
import { clusterNameOption } from '../governance/cluster-name-flag.ts';
import { dataText } from '../output.ts';
import { PRODUCT_NAMESPACE } from '../product-namespace.ts';
import { programName } from '../program-name.ts';
import { oneLine } from '../table.ts';
import { explanationText } from './explanation-text.ts';
import { governanceExplanation } from './governance-explanation.ts';

interface ExplainFlags extends ClusterFlags {
  readonly template?: string;
  readonly clusterName: string;
  readonly productNamespace: string;
  readonly output: 'text' | 'json' | 'yaml';
}

export function explainCommand(): Command {
  return addClusterFlags(
    new Command('explain')
      .description('say why an object is pending, not compliant or not as it is declared, and what to do')
      .addArgument(
        new Argument(
          '<object...>',
          'TYPE/NAME: a policy of any kind (cap, ap, capg, apg, policy), a policyset, a template of a policy, a policyexception, a policyserver or a networkpolicy',
        ),
      )
      .option('--template <name>', 'explain one template of the governance policy')
      .option('--product-namespace <name>', 'namespace of PolicyRevisions', PRODUCT_NAMESPACE)
      .addOption(clusterNameOption())
      .addOption(
        new Option('-o, --output <format>', 'output format').choices(['text', 'json', 'yaml']).default('text'),
      ),
  )
    .addHelpText(
      'after',
      `
Examples:
  portcullis explain cap/pinned-images
  portcullis explain ap/require-labels -n shop
  portcullis explain pex/legacy-importer -n shop
  portcullis explain policyserver/default
  portcullis explain netpol/allow-metrics -n shop
  portcullis explain policy/kafka -n policies
  portcullis explain policy/kafka -n policies --template kafka-topics
  portcullis explain configurationpolicy/kafka-topics
  portcullis explain policyset/baseline -n policies`,
    )
    .action(explain);
}

async function explain(args: readonly string[], flags: ExplainFlags): Promise<void> {
  using connected = await connect(flags);
  const { type, name } = await oneObject(args, connected);
  const explanation = await explanationOf(type, name, flags, connected);
  process.stdout.write(
    flags.output === 'text' ? explanationText(explanation) : dataText(explanation, flags.output, { pretty: true }),
  );
}

/** @throws CliError when the arguments do not name one object */
async function oneObject(
  args: readonly string[],
  { cluster }: Connected,
): Promise<{ readonly type: ApiResource; readonly name: string }> {
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
    throw usageError('expected one object', 'Name it as TYPE/NAME, such as cap/pinned-images or policy/kafka.');
  }
  return { type: selection.type, name };
}

async function explanationOf(
  type: ApiResource,
  name: string,
  { template, clusterName, productNamespace }: ExplainFlags,
  connected: Connected,
): Promise<Explanation> {
  if (type.group === GOVERNANCE_GROUP) {
    return await governanceExplanation({ type, name, template, clusterName }, connected);
  }
  const explainer = explainerOf(type);
  if (explainer === undefined || template !== undefined) {
    throw usageError(
      `${objectName(type, name)} ${explainer === undefined ? 'is of no kind that is explained' : 'has no templates'}`,
      'Name a policy, a policyset, a policyexception, a policyserver or a networkpolicy, as in cap/pinned-images or policy/kafka.',
    );
  }
  const { cluster, namespace } = connected;
  const object = await cluster.get(type, keyIn(type, namespace, name));
  return await explainer(cluster, object, { productNamespace, program: programName() });
}
