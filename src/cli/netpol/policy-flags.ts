// The NetworkPolicies of a command: of files, of files that changed in Git, or of a cluster.
import type { Command } from 'commander';
import {
  isForbidden,
  type KubernetesCluster,
  listAll,
  type ObjectList,
  unlessForbidden,
  unlessGone,
} from '../../cluster/index.ts';
import {
  type Catalogue,
  type ClusterFacts,
  type DetectedProviders,
  isNetworkPolicy,
  type NetworkPolicy,
  parseBlock,
  podFacts,
  type PodFacts,
  readClusterFacts,
  readDetectedProviders,
  readNetworkPolicy,
  workloadFacts,
} from '../../engine/network-policy/index.ts';
import {
  knownKind,
  type KubernetesObject,
  NETWORK_POLICY_PROVIDERS,
  type ResourceType,
} from '../../resources/index.ts';
import { asJson, errorText } from '../../values/index.ts';
import { type ManifestFile, readManifestFiles } from '../cluster/apply-files.ts';
import { addClusterFlags, type ClusterFlags, connect } from '../cluster/cluster-flags.ts';
import { CliError, usageError } from '../errors.ts';
import { STANDARD_INPUT } from '../document.ts';
import { fieldPathOf } from '../field-path.ts';
import type { PlacedManifest } from '../policy/placed-manifests.ts';
import type { ProblemPlace } from '../problems/problem.ts';
import { oneLine } from '../table.ts';
import { changedFiles } from './changed-files.ts';
import { isMisnamedPolicy, type PolicyRefusal, refusalsOf } from './policy-refusals.ts';

export interface NetpolFlags extends ClusterFlags {
  readonly filename?: readonly string[];
  readonly recursive?: true;
  readonly diff?: string;
  readonly allNamespaces?: true;
  readonly podCidr?: readonly string[];
  readonly nodeCidr?: readonly string[];
}

/** A policy as it was read. */
export interface InputPolicy {
  readonly policy: NetworkPolicy;
  /** Why API servers refuse it. Empty for those of a cluster, which has accepted them. */
  readonly refusals: readonly PolicyRefusal[];
  /** Finds the place of a field such as `spec.egress[0].ports`, or of the nearest field around it. Absent: it is in no file. */
  readonly placeOf?: (path: string) => ProblemPlace;
}

export interface PolicyInput {
  readonly policies: readonly InputPolicy[];
  /** The pods of the cluster; undefined when they are not known. */
  readonly pods?: readonly PodFacts[];
  /** What the files or the cluster say of pods, Services and addresses. */
  readonly facts: ClusterFacts;
  /** Whether the policies are those of a cluster. */
  readonly isCluster: boolean;
  /** The providers of the cluster, none for files; the catalogue, with what administrators of the cluster declare. */
  readonly providers: DetectedProviders;
}

const NETWORK_POLICIES = knownKind('networking.k8s.io/v1', 'NetworkPolicy');
const PODS = knownKind('v1', 'Pod');
const SERVICES = knownKind('v1', 'Service');
const NODES = knownKind('v1', 'Node');

/** Adds the flags that {@link readPolicies} reads. */
export function addNetpolFlags(command: Command): Command {
  return addClusterFlags(
    command
      .option(
        '-f, --filename <file...>',
        'read policies from files, folders, or - for standard input; needs no cluster',
      )
      .option('-R, --recursive', 'include subfolders')
      .option('--diff <base>', 'read the files that differ from a revision of Git, of the folders of -f if given')
      .option('-A, --all-namespaces', 'the policies of all namespaces of the cluster')
      .option('--pod-cidr <cidr...>', 'the CIDRs of all pods (default: what a cluster shows; for files not known)')
      .option('--node-cidr <cidr...>', 'the CIDRs or addresses of all nodes (default: those of the cluster)'),
  );
}

/** @throws CliError, ApiError, ClusterError */
export async function readPolicies(flags: NetpolFlags, catalogue: Catalogue): Promise<PolicyInput> {
  const given = givenFacts(flags);
  const input = await readInput(flags, catalogue);
  return { ...input, facts: { ...input.facts, ...given } };
}

/** What flags say of the addresses of the cluster. @throws CliError for what is none */
function givenFacts({ podCidr, nodeCidr }: NetpolFlags): ClusterFacts {
  const wrong = [...(podCidr ?? []), ...(nodeCidr ?? [])].find((text) => parseBlock(text) === undefined);
  if (wrong !== undefined) {
    throw usageError(`expected a CIDR, got ${JSON.stringify(wrong)}`, 'As in: --pod-cidr 10.244.0.0/16 fd00:244::/56');
  }
  return {
    ...(podCidr === undefined ? {} : { podCidrs: podCidr }),
    ...(nodeCidr === undefined ? {} : { nodeCidrs: nodeCidr }),
  };
}

async function readInput(flags: NetpolFlags, catalogue: Catalogue): Promise<PolicyInput> {
  if (flags.diff !== undefined) {
    return fromFiles(await changedManifests(flags.diff, flags.filename ?? []), flags, catalogue);
  }
  return flags.filename === undefined
    ? await fromCluster(flags, catalogue)
    : fromFiles(await readManifestFiles(flags.filename, flags.recursive === true), flags, catalogue);
}

/** @throws CliError when the files were named and have none: a check of nothing must not pass for a check */
function fromFiles(
  manifests: readonly ManifestFile[],
  { namespace = 'default', diff, filename = [] }: NetpolFlags,
  catalogue: Catalogue,
): PolicyInput {
  const policies = manifests.flatMap(({ path, objects, placed }) =>
    objects.flatMap((object, index) =>
      isNetworkPolicy(object) || isMisnamedPolicy(object)
        ? [readPolicy(object, namespace, path === STANDARD_INPUT ? undefined : placed[index])]
        : [],
    ),
  );
  if (policies.length === 0 && diff === undefined) {
    const names = filename.map((path) => (path === STANDARD_INPUT ? 'standard input' : path)).join(', ');
    throw new CliError(`${names}: no NetworkPolicies`, {
      hint: 'Expected manifests with at least one. -R includes subfolders.',
    });
  }
  const facts = workloadFacts(
    manifests.flatMap((manifest) => manifest.objects),
    namespace,
  );
  return { policies, facts, providers: { instances: [], catalogue }, isCluster: false };
}

function readPolicy(object: KubernetesObject, namespace: string, placed: PlacedManifest | undefined): InputPolicy {
  return {
    policy: readNetworkPolicy(asJson(object), namespace),
    refusals: refusalsOf(object, namespace),
    ...(placed === undefined
      ? {}
      : {
          placeOf: (path) => {
            const { file, line } = placed.placeOf(fieldPathOf(path));
            return { file, line };
          },
        }),
  };
}

/** The manifests among the files that Git says have changed; deleted files are not read. */
async function changedManifests(base: string, paths: readonly string[]): Promise<readonly ManifestFile[]> {
  if (paths.includes('-')) {
    throw usageError('expected files or folders beside --diff, got standard input');
  }
  const read: ManifestFile[] = [];
  const { files, notes } = await changedFiles(base, paths);
  for (const file of files) {
    try {
      read.push(...(await readManifestFiles([file], false)));
    } catch (error) {
      // Not every YAML file of a repository is a manifest.
      notes.push(errorText(error));
    }
  }
  notes.forEach((note) => process.stderr.write(`note: not checked: ${oneLine(note)}\n`));
  return read;
}

async function fromCluster(flags: NetpolFlags, catalogue: Catalogue): Promise<PolicyInput> {
  using connected = await connect(flags);
  const { cluster } = connected;
  const scope = flags.allNamespaces === true ? {} : { namespace: connected.namespace };
  const { items } = await listNetworkPolicies(cluster, scope);
  const [pods, services, nodes] = await Promise.all([
    unlessForbidden(listAll(cluster, PODS, scope)),
    unlessForbidden(listAll(cluster, SERVICES, scope)),
    unlessForbidden(listAll(cluster, NODES)),
  ]);
  const providers = await detectedProviders(cluster, catalogue, nodes?.items);
  return {
    policies: items.map((object) => ({
      policy: readNetworkPolicy({ ...asJson(object), apiVersion: 'networking.k8s.io/v1' }),
      refusals: [],
    })),
    facts: {
      ...workloadFacts([...withKind(pods, PODS), ...withKind(services, SERVICES)]),
      ...readClusterFacts(nodes?.items, pods?.items ?? []),
    },
    ...(pods === undefined ? {} : { pods: withKind(pods, PODS).flatMap((pod) => podFacts(pod) ?? []) }),
    providers,
    isCluster: true,
  };
}

/** Items of lists name no kind. */
function withKind(list: ObjectList | undefined, { kind }: ResourceType): readonly KubernetesObject[] {
  return (list?.items ?? []).map((item) => ({ ...item, kind }));
}

/**
 * What the controller has detected, and administrators declare; without a controller, what is detected now.
 * @param nodes undefined: the user may not list them, so that nothing is detected
 */
async function detectedProviders(
  cluster: KubernetesCluster,
  catalogue: Catalogue,
  nodes: readonly KubernetesObject[] | undefined,
): Promise<DetectedProviders> {
  const objects = await unlessForbidden(unlessGone(listAll(cluster, NETWORK_POLICY_PROVIDERS)));
  const declared = objects?.items ?? [];
  const { readClusterProviders } = await import('../../network-policy/index.ts');
  const found = nodes && (await readClusterProviders(cluster, catalogue, nodes, declared));
  printUnguarded(found?.unguardedNodes ?? 0);
  return objects !== undefined && declared.length > 0
    ? readDetectedProviders(asJson(objects), catalogue)
    : { instances: found?.providers.map(({ instance }) => instance) ?? [], catalogue };
}

/** Verdicts are about the nodes that have an agent. */
function printUnguarded(count: number): void {
  if (count > 0) {
    const nodes = count === 1 ? '1 node has' : `${count} nodes have`;
    process.stderr.write(`note: ${nodes} no agent of a network provider: NetworkPolicies are not enforced there\n`);
  }
}

/** @throws CliError that names what shows the same, when the user may not list NetworkPolicies */
async function listNetworkPolicies(
  cluster: KubernetesCluster,
  scope: { readonly namespace?: string },
): Promise<ObjectList> {
  try {
    return await listAll(cluster, NETWORK_POLICIES, scope);
  } catch (error) {
    if (!isForbidden(error)) {
      throw error;
    }
    const where = scope.namespace === undefined ? '-A' : `-n ${scope.namespace}`;
    const hint = `Their statuses say what the providers of the cluster do with them: portcullis get networkpolicystatuses ${where}`;
    throw new CliError(errorText(error), { hint, cause: error });
  }
}
