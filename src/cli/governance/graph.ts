// `portcullis governance graph`: what governance policies depend on, as a tree, or for Graphviz and Mermaid.
import { Command, Option } from 'commander';
import {
  dependencyFindings,
  type DependencyLookup,
  DependencyReader,
  filePolicies,
  graphAsDot,
  graphAsMermaid,
  graphAsText,
  type PolicyGraph,
  withinNamespace,
} from '../../governance/index.ts';
import { readObjects } from '../cluster/apply-files.ts';
import { addConnectionFlags, type ClusterFlags, connect } from '../cluster/cluster-flags.ts';
import { oneLine } from '../table.ts';
import { clusterNameOption } from './cluster-name-flag.ts';
import { governedPolicies } from './governed-policies.ts';

const RENDERERS = { text: graphAsText, dot: graphAsDot, mermaid: graphAsMermaid } as const;

interface GraphFlags extends ClusterFlags {
  readonly filename?: readonly string[];
  readonly recursive?: true;
  readonly clusterName: string;
  readonly output: keyof typeof RENDERERS;
}

export function graphCommand(): Command {
  return addConnectionFlags(
    new Command('graph')
      .description('show what governance policies depend on, and the state of each')
      .option(
        '-f, --filename <file...>',
        'read policies from files, folders, or - for standard input; needs no cluster',
      )
      .option('-R, --recursive', 'include subfolders')
      .option(
        '-n, --namespace <name>',
        'show the policies of this namespace, and what they depend on; with -f, the namespace of policies that name none (default: all namespaces; with -f, default)',
      )
      .addOption(new Option('-o, --output <format>', 'output format').choices(Object.keys(RENDERERS)).default('text'))
      .addOption(clusterNameOption()),
  )
    .addHelpText(
      'after',
      `
Examples:
  portcullis governance graph
  portcullis governance graph -n policies
  portcullis governance graph -o dot | dot -Tsvg > policies.svg
  portcullis governance graph -f policies/ -o mermaid`,
    )
    .action(graph);
}

async function graph(flags: GraphFlags): Promise<void> {
  const render = RENDERERS[flags.output];
  if (flags.filename !== undefined) {
    const manifests = await readObjects(flags.filename, flags.recursive === true);
    print(filePolicies(manifests, flags.clusterName, flags.namespace ?? 'default'), ({ graph: one }) => render(one));
    return;
  }
  using connected = await connect(flags);
  const all = await governedPolicies(connected, flags.clusterName);
  const policies = connected.isNamespaceDemanded ? withinNamespace(all, connected.namespace) : all;
  const reader = new DependencyReader(connected.cluster, policies);
  const text = await reader.resolve((lookup: DependencyLookup) => render(policies.graph, lookup));
  print(policies, () => text);
}

/** Prints the graph, and on standard error what is wrong with it. */
function print(policies: PolicyGraph, render: (policies: PolicyGraph) => string): void {
  process.stdout.write(render(policies));
  if (policies.graph.policies.length === 0) {
    process.stderr.write('no policies found\n');
  }
  for (const { namespace, name } of policies.graph.policies) {
    for (const { message } of dependencyFindings(policies, { namespace, name })) {
      process.stderr.write(`warning: policy ${oneLine(`${namespace}/${name}: ${message}`)}\n`);
    }
  }
}
