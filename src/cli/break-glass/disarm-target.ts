// What `portcullis break-glass` disarms: policies, or PolicyServers with all of their policies.
import { type Command, Option } from 'commander';
import { type ApiResource, type KubernetesCluster, listAll } from '../../cluster/index.ts';
import { POLICY_SERVERS, type KubernetesObject, type ObjectKey, type ResourceType } from '../../resources/index.ts';
import { addClusterFlags, type ClusterFlags } from '../cluster/cluster-flags.ts';
import { keyIn, objectName, selectResources } from '../cluster/resource-arguments.ts';
import { usageError } from '../errors.ts';
import { PRODUCT_NAMESPACE } from '../product-namespace.ts';
import { hasRollout } from '../rollout/rollout-target.ts';

export interface BreakGlassFlags extends ClusterFlags {
  readonly all?: true;
  readonly policyServer?: string;
  readonly productNamespace: string;
  readonly timeout: string;
}

/** A policy or a PolicyServer that is disarmed or armed again. */
export interface DisarmTarget {
  readonly type: ResourceType | ApiResource;
  readonly key: ObjectKey;
  /** `clusteradmissionpolicy.policies.kubewarden.io/one` */
  readonly name: string;
  /** As it was at the start of the command. */
  readonly object: KubernetesObject;
  /** Whether all policies of a PolicyServer are meant. */
  readonly isServer: boolean;
}

export function addTargetFlags(command: Command): Command {
  return addClusterFlags(command.argument('[policy...]', 'the policy: NAME, TYPE/NAME, or TYPE NAME'))
    .addOption(new Option('--all', 'all policies of all PolicyServers').conflicts('policyServer'))
    .option('--policy-server <name>', 'all policies of a PolicyServer')
    .option('--product-namespace <name>', 'namespace of PolicyRevisions', PRODUCT_NAMESPACE)
    .option('--timeout <duration>', 'how long to wait for a controller before webhooks are changed directly', '10s');
}

/** @throws CliError when it is not clear what is meant, ApiError */
export async function disarmTargets(
  cluster: KubernetesCluster,
  namespace: string,
  args: readonly string[],
  { all, policyServer }: BreakGlassFlags,
): Promise<readonly DisarmTarget[]> {
  const isOfServers = all === true || policyServer !== undefined;
  if (isOfServers === args.length > 0) {
    throw usageError(
      'expected either a policy, or --all or --policy-server',
      'portcullis break-glass disarm cap/NAME --reason TEXT',
    );
  }
  return isOfServers ? await servers(cluster, policyServer) : await policies(cluster, namespace, args);
}

async function servers(cluster: KubernetesCluster, name: string | undefined): Promise<readonly DisarmTarget[]> {
  const objects =
    name === undefined
      ? (await listAll(cluster, POLICY_SERVERS, {})).items
      : [await cluster.get(POLICY_SERVERS, { name })];
  return objects.map((object) => {
    const key = { name: object.metadata.name ?? '' };
    return { type: POLICY_SERVERS, key, name: objectName(POLICY_SERVERS, key.name), object, isServer: true };
  });
}

async function policies(
  cluster: KubernetesCluster,
  namespace: string,
  args: readonly string[],
): Promise<readonly DisarmTarget[]> {
  const selections = await selectResources(cluster, args, { namespace, isCandidate: hasRollout });
  return await Promise.all(
    selections.flatMap(({ type, names }) => {
      if (!hasRollout(type) || names.length === 0) {
        throw usageError('expected the names of policies', 'Name each as TYPE/NAME, such as cap/pinned-images.');
      }
      return names.map(async (name) => {
        const key = keyIn(type, namespace, name);
        return { type, key, name: objectName(type, name), object: await cluster.get(type, key), isServer: false };
      });
    }),
  );
}
