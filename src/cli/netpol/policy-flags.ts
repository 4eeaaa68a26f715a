// The NetworkPolicies of a command: of files, of files that changed in Git, or of a cluster.
import type { Command } from 'commander';
import { isForbidden, type KubernetesCluster, listAll, type ObjectList } from '../../cluster/index.ts';
import {
  type ClusterFacts,
  isNetworkPolicy,
  type NetworkPolicy,
  podFacts,
  type PodFacts,
  readNetworkPolicy,
  workloadFacts,
} from '../../engine/network-policy/index.ts';
import { knownKind, type KubernetesObject, type ResourceType } from '../../resources/index.ts';
import { asJson, errorText } from '../../values/index.ts';
import { type ManifestFile, readManifestFiles } from '../cluster/apply-files.ts';
import { addClusterFlags, type ClusterFlags, connect } from '../cluster/cluster-flags.ts';
import { CliError, usageError } from '../errors.ts';
import { oneLine } from '../table.ts';
import { changedFiles } from './changed-files.ts';
import type { PolicyFile } from './policy-places.ts';

export interface NetpolFlags extends ClusterFlags {
  readonly filename?: readonly string[];
  readonly recursive?: true;
  readonly diff?: string;
  readonly allNamespaces?: true;
}

export interface PolicyInput {
  readonly policies: readonly NetworkPolicy[];
  /** Files with these policies; none for those of a cluster. */
  readonly files: readonly PolicyFile[];
  /** The pods of the cluster; undefined when they are not known. */
  readonly pods?: readonly PodFacts[];
  /** What the files or the cluster say of pods and Services. */
  readonly facts: ClusterFacts;
}

const NETWORK_POLICIES = knownKind('networking.k8s.io/v1', 'NetworkPolicy');
const PODS = knownKind('v1', 'Pod');
const SERVICES = knownKind('v1', 'Service');

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
      .option('-A, --all-namespaces', 'the policies of all namespaces of the cluster'),
  );
}

/** @throws CliError, ApiError, ClusterError */
export async function readPolicies(flags: NetpolFlags): Promise<PolicyInput> {
  if (flags.diff !== undefined) {
    return fromFiles(await changedManifests(flags.diff, flags.filename ?? []), flags);
  }
  return flags.filename === undefined
    ? await fromCluster(flags)
    : fromFiles(await readManifestFiles(flags.filename, flags.recursive === true), flags);
}

function fromFiles(manifests: readonly ManifestFile[], { namespace }: NetpolFlags): PolicyInput {
  const files = manifests.map(({ path, objects }) => ({
    path,
    policies: objects.filter(isNetworkPolicy).map((object) => readNetworkPolicy(asJson(object), namespace)),
  }));
  const objects = manifests.flatMap((manifest) => manifest.objects);
  const facts = workloadFacts(objects, namespace);
  return { files, policies: files.flatMap(({ policies }) => policies), facts };
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

async function fromCluster(flags: NetpolFlags): Promise<PolicyInput> {
  using connected = await connect(flags);
  const scope = flags.allNamespaces === true ? {} : { namespace: connected.namespace };
  const { items } = await listNetworkPolicies(connected.cluster, scope);
  const policies = items.map((object) => readNetworkPolicy({ ...asJson(object), apiVersion: 'networking.k8s.io/v1' }));
  const pods = await listReadable(connected.cluster, PODS, scope);
  const services = await listReadable(connected.cluster, SERVICES, scope);
  const known = pods === undefined ? {} : { pods: pods.flatMap((pod) => podFacts(pod) ?? []) };
  return { policies, files: [], facts: workloadFacts([...(pods ?? []), ...(services ?? [])]), ...known };
}

/** Undefined where the user may not list them. Items of lists name no kind. */
async function listReadable(
  cluster: KubernetesCluster,
  type: ResourceType,
  scope: { readonly namespace?: string },
): Promise<readonly KubernetesObject[] | undefined> {
  try {
    const { items } = await listAll(cluster, type, scope);
    return items.map((item) => ({ ...item, kind: type.kind }));
  } catch (error) {
    if (isForbidden(error)) {
      return undefined;
    }
    throw error;
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
