// What the arguments of commands name: `pods`, `cap/one`, `po web db`, `deployments.apps,services`.
import type { ApiResource, Cluster } from '../../cluster/index.ts';
import { groupResourceOf, type KubernetesObject, type ObjectKey } from '../../resources/index.ts';
import { CliError, usageError } from '../errors.ts';
import { oneLine } from '../table.ts';
import type { Connected } from './cluster-flags.ts';

/** Objects of one type: those that are named, or all. */
export interface ResourceSelection {
  readonly type: ApiResource;
  /** Empty: all of them. */
  readonly names: readonly string[];
}

/**
 * What `TYPE[,TYPE…] [NAME…]` or `TYPE/NAME…` name.
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

/**
 * The type that a word means: plural, singular, kind or short name, with the group (`deployments.apps`) or version and group
 * (`deployments.v1.apps`) behind a dot where they are needed.
 * @throws CliError when there is none
 */
async function findType(cluster: Cluster, word: string): Promise<ApiResource> {
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
  // A name that is one type's own wins over short names of others.
  const found = matching.find((type) => type.resource === name || type.singular === name) ?? matching[0];
  if (found === undefined) {
    throw usageError(`the server has no resource type "${word}"`, 'kubectl api-resources lists what it has.');
  }
  return found;
}

/** The key of an object of a type, in the namespace where the type has one. */
export function keyIn(type: ApiResource, namespace: string, name: string): ObjectKey {
  return type.namespaced ? { namespace, name } : { name };
}

/**
 * The key of an object of a manifest. Its own namespace counts, if no other one is demanded.
 * @throws CliError when one is (`--namespace`)
 */
export function keyOfManifest(
  type: ApiResource,
  { kind, metadata }: KubernetesObject,
  { namespace, isNamespaceDemanded }: Pick<Connected, 'namespace' | 'isNamespaceDemanded'>,
): ObjectKey {
  const { name = '', namespace: own = namespace } = metadata;
  if (type.namespaced && isNamespaceDemanded && own !== namespace) {
    throw new CliError(`${kind} ${name} is in namespace ${own}, and --namespace says ${namespace}`, {
      hint: 'Leave out --namespace to use that of each manifest.',
    });
  }
  return keyIn(type, own, name);
}

/** `pod/web`, `clusteradmissionpolicy.policies.kubewarden.io/one`: how results name an object. */
export function objectName(type: Pick<ApiResource, 'group' | 'kind'>, name: string): string {
  const kind = type.kind.toLowerCase();
  // Names of roles may be any text.
  return oneLine(`${type.group === '' ? kind : `${kind}.${type.group}`}/${name}`);
}
