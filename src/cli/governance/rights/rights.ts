// `portcullis governance rights`: the ClusterRole that governance policies need.
import { Command } from 'commander';
import { type Cluster, listAll } from '../../../cluster/index.ts';
import { neededRights, RIGHTS_ROLE } from '../../../governance/index.ts';
import {
  GOVERNANCE_GROUP,
  GOVERNANCE_LABELS,
  groupVersionOf,
  type KubernetesObject,
  POLICIES,
} from '../../../resources/index.ts';
import { asJson } from '../../../values/index.ts';
import { readObjects } from '../../cluster/apply-files.ts';
import { addConnectionFlags, type ClusterFlags, connect } from '../../cluster/cluster-flags.ts';
import { CliError } from '../../errors.ts';
import { type DataFormat, dataText, manifestsOption } from '../../output.ts';
import { oneLine } from '../../table.ts';
import { readMappings } from '../dryrun/api-mappings.ts';
import { InputKinds } from '../dryrun/input-kinds.ts';
import { clusterRole } from './cluster-role.ts';
import { type KindFinder, kindText, resolveRights } from '../../../installation/index.ts';

interface RightsFlags extends ClusterFlags {
  readonly filename?: readonly string[];
  readonly recursive?: true;
  readonly name: string;
  readonly mappingsFile?: string;
  readonly output: DataFormat;
}

export function rightsCommand(): Command {
  return addConnectionFlags(
    new Command('rights')
      .description('print the ClusterRole that governance policies need')
      .option(
        '-f, --filename <file...>',
        'read policies from files, folders, or - for standard input, with the CustomResourceDefinitions of kinds that they name',
      )
      .option('-R, --recursive', 'include subfolders')
      .option('-n, --namespace <name>', 'only the policies of this namespace; with -f, those that name none, too')
      .option('--name <name>', 'name of the ClusterRole', RIGHTS_ROLE)
      .option('--mappings-file <file>', 'kinds of a cluster, see `dryrun generate`')
      .addOption(manifestsOption()),
  )
    .addHelpText(
      'after',
      `
Without -f, the policies are those of the cluster. With -f, no cluster is needed; one that --kubeconfig or --context names
resolves kinds that are neither built in nor defined in the files.

Examples:
  portcullis governance rights -f policies/
  portcullis governance rights -n policies | kubectl apply -f -
  portcullis install --governance-role ${RIGHTS_ROLE}`,
    )
    .action(rights);
}

async function rights(flags: RightsFlags): Promise<void> {
  using source = await sourceOf(flags);
  const policies = source.objects.filter(({ metadata: { namespace } }) =>
    [undefined, namespace ?? flags.namespace].includes(flags.namespace),
  );
  if (policies.length === 0) {
    throw new CliError(
      flags.filename === undefined ? 'there are no policies' : `no policy in ${flags.filename.join(', ')}`,
    );
  }
  const needs = policies.map((policy) => ({ policy, ...neededRights(asJson(policy)) }));
  const resolved = await resolveRights(
    needs.flatMap((one) => one.rights),
    source.kinds,
  );
  process.stdout.write(dataText(clusterRole(flags.name, resolved.rights), flags.output, { pretty: true }));
  for (const { policy, notes } of needs) {
    for (const note of notes) {
      warn(`${policy.kind} ${policy.metadata.name ?? ''}: ${note}`);
    }
  }
  for (const type of resolved.guessed) {
    const name = `${type.resource}${type.group === '' ? '' : `.${type.group}`}`;
    warn(`${kindText(type)} is not known, and taken for ${name}: add its CustomResourceDefinition, or --mappings-file`);
  }
}

function warn(text: string): void {
  process.stderr.write(`warning: ${oneLine(text)}\n`);
}

interface Source extends Disposable {
  readonly objects: readonly KubernetesObject[];
  readonly kinds: KindFinder;
}

async function sourceOf(flags: RightsFlags): Promise<Source> {
  if (flags.filename === undefined) {
    const connected = await connect(flags);
    return {
      objects: await rootPolicies(connected.cluster),
      kinds: connected.cluster.discovery,
      [Symbol.dispose]: () => connected[Symbol.dispose](),
    };
  }
  const manifests = await readObjects(flags.filename, flags.recursive === true);
  const mappings = flags.mappingsFile === undefined ? [] : await readMappings(flags.mappingsFile);
  const definitions = manifests.filter(({ kind }) => kind === 'CustomResourceDefinition');
  const given = new InputKinds(definitions, mappings);
  const isClusterNamed = flags.kubeconfig !== undefined || flags.context !== undefined;
  const connected = isClusterNamed ? await connect(flags) : undefined;
  return {
    objects: manifests.filter(({ apiVersion }) => groupVersionOf(apiVersion).group === GOVERNANCE_GROUP),
    kinds: {
      find: async (apiVersion, kind) =>
        given.kind(apiVersion, kind) ?? (await connected?.cluster.discovery.find(apiVersion, kind)),
    },
    [Symbol.dispose]: () => connected?.[Symbol.dispose](),
  };
}

/** The Policies of a cluster as users wrote them. */
async function rootPolicies(cluster: Cluster): Promise<readonly KubernetesObject[]> {
  const { items } = await listAll(cluster, POLICIES);
  return items.filter(({ metadata }) => metadata.labels?.[GOVERNANCE_LABELS.rootPolicy] === undefined);
}
