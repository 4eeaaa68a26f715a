// Arguments that name objects: `pods`, `cap/one`, `po web db`, `deployments.apps,services`.
import type { ApiResource, Cluster } from '../../cluster/index.ts';
import { groupResourceOf, type KubernetesObject, type ObjectKey } from '../../resources/index.ts';
import { CliError, usageError } from '../errors.ts';
import { oneLine } from '../table.ts';
import type { Connected } from './cluster-flags.ts';

/** Named objects of one type, or all of them. */
export interface ResourceSelection {
  readonly type: ApiResource;
  /** Empty: all objects. */
  readonly names: readonly string[];
}

/**
 * Parses `TYPE[,TYPE…] [NAME…]` and `TYPE/NAME…`.
 * @throws CliError when the cluster has no such type, or the arguments mix both forms
 */
export async function selectResources(
  cluster: Cluster,
  args: readonly string[],
): Promise<readonly ResourceSelection[]> {
  const [first = '', ...names] = args;
  if (first === '') {
    throw usageError(
      'expected a type of objects, such as pods or cap',
      'portcullis get --help shows how to name them.',
    );
  }
  if (!args.some((argument) => argument.includes('/'))) {
    const types = await Promise.all(first.split(',').map((word) => findType(cluster, word)));
    if (types.length > 1 && names.length > 0) {
      throw usageError('several types and names: expected names of one type', 'Write TYPE/NAME for each object.');
    }
    return types.map((type) => ({ type, names }));
  }
  const selections = new Map<string, { type: ApiResource; names: string[] }>();
  for (const argument of args) {
    const [word = '', name = '', ...more] = argument.split('/');
    if (word === '' || name === '' || more.length > 0) {
      throw usageError(`${argument}: expected TYPE/NAME, as in the other arguments`);
    }
    const type = await findType(cluster, word);
    const selection = selections.get(groupResourceOf(type)) ?? { type, names: [] };
    selection.names.push(name);
    selections.set(groupResourceOf(type), selection);
  }
  return [...selections.values()];
}

/** @throws CliError when the cluster has no such type */
async function findType(cluster: Cluster, word: string): Promise<ApiResource> {
  const found = await typeNamed(cluster, word);
  if (found === undefined) {
    throw usageError(`the server has no resource type "${word}"`, 'kubectl api-resources lists its types.');
  }
  return found;
}

/**
 * Finds a type by its plural, singular, kind or short name, optionally with a group (`deployments.apps`), or a version and
 * group (`deployments.v1.apps`).
 */
export async function typeNamed(cluster: Cluster, word: string): Promise<ApiResource | undefined> {
  const [name = '', ...rest] = word.toLowerCase().split('.');
  const group = rest.join('.');
  const [version = '', ...versioned] = rest;
  const types = await cluster.discovery.resources();
  const isNamed = (type: ApiResource): boolean =>
    type.resource === name ||
    type.singular === name ||
    type.kind.toLowerCase() === name ||
    type.shortNames.includes(name);
  const isOfGroup = (type: ApiResource): boolean =>
    rest.length === 0 || type.group === group || (type.version === version && type.group === versioned.join('.'));
  const matching = types.filter((type) => isNamed(type) && isOfGroup(type));
  // Plural, singular and kind take precedence over short names of other types.
  return matching.find((type) => type.resource === name || type.singular === name) ?? matching[0];
}

/** The key of an object; the namespace is ignored for cluster-scoped types. */
export function keyIn(type: ApiResource, namespace: string, name: string): ObjectKey {
  return type.namespaced ? { namespace, name } : { name };
}

/**
 * The key of an object of a manifest, in its own namespace or the default one.
 * @throws CliError when `--namespace` names another namespace
 */
export function keyOfManifest(
  type: ApiResource,
  { kind, metadata }: KubernetesObject,
  { namespace, isNamespaceDemanded }: Pick<Connected, 'namespace' | 'isNamespaceDemanded'>,
): ObjectKey {
  const { name = '', namespace: own = namespace } = metadata;
  if (type.namespaced && isNamespaceDemanded && own !== namespace) {
    throw new CliError(`${kind} ${name} is in namespace ${own}, but --namespace is ${namespace}`, {
      hint: 'Leave out --namespace to use that of each manifest.',
    });
  }
  return keyIn(type, own, name);
}

/** The name of an object in output: `pod/web`, `clusteradmissionpolicy.policies.kubewarden.io/one`. */
export function objectName(type: Pick<ApiResource, 'group' | 'kind'>, name: string): string {
  const kind = type.kind.toLowerCase();
  // Names of RBAC objects may have any characters.
  return oneLine(`${type.group === '' ? kind : `${kind}.${type.group}`}/${name}`);
}
