// Requirements that are checked before the first change.
import { ApiError, type Cluster, type KubernetesCluster, unlessGone } from '../../cluster/index.ts';
import { isJsonObject, keyOf, type KubernetesObject } from '../../resources/index.ts';
import { CliError } from '../errors.ts';
import {
  CLUSTER_BINDINGS,
  CONTROLLER,
  isTooOld,
  kubewardenControllers,
  MIN_KUBERNETES,
  minorVersion,
  missingRights,
  type Right,
  rightsTo,
  rightText,
} from '../../installation/index.ts';
import { typeOf } from './type-of.ts';

/** @throws CliError when the API server is too old */
export async function checkVersion(cluster: KubernetesCluster): Promise<void> {
  const answer = await cluster.version();
  const version = minorVersion(answer);
  if (version !== undefined && isTooOld(version)) {
    throw new CliError(
      `the API server is Kubernetes ${answer.gitVersion}: expected ${MIN_KUBERNETES.join('.')} or newer, for match conditions of webhooks`,
      { hint: 'Nothing was changed. Upgrade the cluster first.' },
    );
  }
}

/** @throws CliError that names each right that is missing */
export async function checkRights(cluster: KubernetesCluster, rights: Iterable<Right>, what: string): Promise<void> {
  const missing = await missingRights(cluster, rights);
  if (missing.length > 0) {
    throw new CliError(`missing rights to ${what}:\n${listText(missing)}`, {
      hint: 'Nothing was changed. Ask an administrator of the cluster (ClusterRole cluster-admin).',
    });
  }
}

/** The missing verbs, one line for each kind. */
function listText(rights: readonly Right[]): string {
  const byKind = Map.groupBy(rights, (right) => rightText({ ...right, verb: '' }));
  return [...byKind].map(([kind, some]) => `  ${some.map(({ verb }) => verb).join(', ')}${kind}`).join('\n');
}

/** The rights to apply objects. */
export async function rightsToApply(
  cluster: KubernetesCluster,
  objects: readonly KubernetesObject[],
): Promise<readonly Right[]> {
  const rights = await Promise.all(
    objects.map(async (object) =>
      rightsTo(['get', 'create', 'patch'], await typeOf(cluster, object), keyOf(object).namespace),
    ),
  );
  return rights.flat();
}

/**
 * Returns whether Kubewarden's controller runs.
 * @throws CliError when it does and `isBeside` is not set
 */
export async function checkKubewarden(cluster: KubernetesCluster, isBeside: boolean): Promise<boolean> {
  const [found] = await kubewardenControllers(cluster);
  if (found === undefined) {
    return false;
  }
  const { namespace = '', name = '' } = found.metadata;
  if (!isBeside) {
    throw new CliError(
      `Kubewarden's controller runs: deployment ${name} in namespace ${namespace}. It and Portcullis use the same kinds`,
      {
        hint:
          `Nothing was changed. Either\n` +
          `  in place:     stop it (kubectl -n ${namespace} scale deployment ${name} --replicas=0) and install again: its policy servers still answer until yours are ready; or\n` +
          `  side by side: add --beside-kubewarden: it keeps its PolicyServers and their policies, and Portcullis manages PolicyServers that you create for it.\n` +
          `docs/migration.md describes both, step by step.`,
      },
    );
  }
  return true;
}

/**
 * A cluster has one Portcullis, because its ClusterRoles and webhook configurations have fixed names. An installation in another
 * namespace would take the rights of the existing controller, which could not maintain its webhooks any more.
 * @throws CliError when the existing controller is in another namespace
 */
export async function checkNamespace(cluster: Pick<Cluster, 'get'>, namespace: string): Promise<void> {
  const binding = await bindingOf(cluster);
  const subjects: readonly unknown[] = Array.isArray(binding?.['subjects']) ? binding['subjects'] : [];
  const other = subjects.filter(isJsonObject).find((subject) => subject['name'] === CONTROLLER)?.['namespace'];
  if (typeof other === 'string' && other !== namespace) {
    throw new CliError(`Portcullis is installed in namespace ${other}, not in ${namespace}: a cluster can have one`, {
      hint: `Nothing was changed. Use --namespace ${other}, or move it: run \`portcullis uninstall --namespace ${other}\` first.`,
    });
  }
}

/** The binding of the controller; undefined when there is none, or reading it is forbidden. */
async function bindingOf(cluster: Pick<Cluster, 'get'>): Promise<KubernetesObject | undefined> {
  try {
    return await unlessGone(cluster.get(CLUSTER_BINDINGS, { name: CONTROLLER }));
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) {
      return undefined;
    }
    throw error;
  }
}
