// Arguments that name objects: `pods`, `cap/one`, `po web db`, `deployments.apps,services`.
import { ApiError, type ApiResource, type Cluster } from '../../cluster/index.ts';
import { nearestKey } from '../../values/index.ts';
import {
  apiVersionOf,
  groupResourceOf,
  type KubernetesObject,
  type ObjectKey,
  POLICIES_GROUP,
} from '../../resources/index.ts';
import { CliError, usageError } from '../errors.ts';
import { oneLine } from '../table.ts';
import type { Connected } from './cluster-flags.ts';

/** Length of a word of the user in a message. Characters. */
const MAX_SHOWN_WORD = 80;

/** Named objects of one type, or all of them. */
export interface ResourceSelection {
  readonly type: ApiResource;
  /** Empty: all objects. */
  readonly names: readonly string[];
  /** Whether the type was found by a category, such as `all`. */
  readonly isOfCategory?: true;
}

/** Lets a command take the name of an object without its type. */
export interface BareNames {
  readonly namespace: string;
  /** The types of which one may have an object of this name. */
  readonly isCandidate?: (type: ApiResource) => boolean;
}

/** The category of our kinds. */
export const OWN_CATEGORY = 'portcullis';

/**
 * Parses `TYPE[,TYPE…] [NAME…]` and `TYPE/NAME…`. A type may be a category, such as `all`.
 * @param bareNames if given, also parses a single NAME, of an object of our kinds
 * @throws CliError when the cluster has no such type, or the arguments mix both forms
 */
export async function selectResources(
  cluster: Cluster,
  args: readonly string[],
  bareNames?: BareNames,
): Promise<readonly ResourceSelection[]> {
  const [first = '', ...names] = args;
  if (first === '') {
    throw usageError(
      'expected a type of objects, such as pods or cap',
      'portcullis get --help shows how to name them.',
    );
  }
  if (!args.some((argument) => argument.includes('/'))) {
    const named =
      bareNames === undefined || args.length > 1 ? undefined : await bareSelection(cluster, first, bareNames);
    if (named !== undefined) {
      return [named];
    }
    const found = await Promise.all(
      first.split(',').map((word) => findTypes(cluster, word, args.length === 1 && bareNames !== undefined)),
    );
    const selected = found.flat();
    if (selected.length > 1 && names.length > 0) {
      throw usageError('several types and names: expected names of one type', 'Write TYPE/NAME for each object.');
    }
    return selected.map((selection) => ({ ...selection, names }));
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

/** The type, or the types of a category. @throws CliError when the cluster has neither */
async function findTypes(
  cluster: Cluster,
  word: string,
  mayBeName: boolean,
): Promise<readonly Omit<ResourceSelection, 'names'>[]> {
  const found = await typeNamed(cluster, word);
  if (found !== undefined) {
    return [{ type: found }];
  }
  const types = await typesOfCategory(cluster, word);
  if (types.length === 0) {
    throw await unknownType(cluster, word, mayBeName);
  }
  return types.map((type) => ({ type, isOfCategory: true }));
}

/** @throws CliError when the cluster has no such type */
async function findType(cluster: Cluster, word: string): Promise<ApiResource> {
  const found = await typeNamed(cluster, word);
  if (found === undefined) {
    throw await unknownType(cluster, word);
  }
  return found;
}

async function unknownType(cluster: Cluster, word: string, mayBeName = false): Promise<CliError> {
  const types = await cluster.discovery.resources();
  const [name = ''] = word.split('.');
  const near = nearestKey(
    name,
    types.flatMap(({ resource, singular, shortNames }) =>
      [resource, singular, ...shortNames].filter((one) => one !== ''),
    ),
  );
  return usageError(
    `the server has no resource type "${oneLine(word, MAX_SHOWN_WORD)}"${mayBeName ? ', and no policy of this name' : ''}`,
    near === undefined ? 'portcullis get all, and kubectl api-resources, show types.' : `Did you mean ${near}?`,
  );
}

/** The error for a manifest of a kind that the cluster does not serve. */
export async function unknownKind(cluster: Cluster, { apiVersion, kind }: KubernetesObject): Promise<CliError> {
  const types = await cluster.discovery.resources();
  const message = `the server has no kind ${kind} in ${apiVersion}`;
  const elsewhere = types.find((type) => type.kind === kind);
  if (elsewhere !== undefined) {
    return new CliError(`${message}: it has ${kind} in ${apiVersionOf(elsewhere)}`);
  }
  const near = nearestKey(
    kind,
    types.map((type) => type.kind),
  );
  return new CliError(
    `${message}: ${near === undefined ? 'install its CustomResourceDefinition first' : `did you mean ${near}?`}`,
  );
}

/** The types of a category that can be listed, each in its preferred version. */
async function typesOfCategory(cluster: Cluster, category: string): Promise<readonly ApiResource[]> {
  const types = await cluster.discovery.resources();
  const listed = types.filter(({ categories, verbs }) => categories.includes(category) && verbs.includes('list'));
  const preferred = new Map<string, ApiResource>();
  for (const type of listed) {
    if (!preferred.has(groupResourceOf(type))) {
      preferred.set(groupResourceOf(type), type);
    }
  }
  return [...preferred.values()];
}

/**
 * The object of our kinds that has the name, unless the word is a type or a category.
 * @throws CliError when several objects have it
 */
async function bareSelection(
  cluster: Cluster,
  word: string,
  { namespace, isCandidate = () => true }: BareNames,
): Promise<ResourceSelection | undefined> {
  const types = await cluster.discovery.resources();
  if (
    word.includes(',') ||
    (await typeNamed(cluster, word)) !== undefined ||
    types.some(({ categories }) => categories.includes(word))
  ) {
    return undefined;
  }
  const candidates = (await typesOfCategory(cluster, OWN_CATEGORY)).filter(isCandidate);
  const found = await Promise.all(
    candidates.map(async (type) => ((await exists(cluster, type, keyIn(type, namespace, word))) ? [type] : [])),
  );
  const [type, ...more] = found.flat();
  if (type !== undefined && more.length > 0) {
    const named = [type, ...more].map((one) => `${one.shortNames[0] ?? one.resource}/${word}`);
    throw usageError(`several objects have the name ${word}: ${named.join(', ')}`, 'Write TYPE/NAME.');
  }
  return type === undefined ? undefined : { type, names: [word] };
}

/** Whether the user can read the object. */
async function exists(cluster: Cluster, type: ApiResource, key: ObjectKey): Promise<boolean> {
  try {
    await cluster.get(type, key);
    return true;
  } catch (error) {
    if (error instanceof ApiError) {
      return false;
    }
    throw error;
  }
}

/** Short names of Kubewarden that the cluster does not have, because kubectl would take them from other products. */
const FORMER_SHORT_NAMES: ReadonlyMap<string, string> = new Map([
  ['ap', `admissionpolicies.${POLICIES_GROUP}`],
  ['ps', `policyservers.${POLICIES_GROUP}`],
]);

/**
 * Finds a type by its plural, singular, kind or short name, optionally with a group (`deployments.apps`), or a version and
 * group (`deployments.v1.apps`).
 */
export async function typeNamed(cluster: Cluster, word: string): Promise<ApiResource | undefined> {
  const lower = word.toLowerCase();
  const [name = '', ...rest] = (FORMER_SHORT_NAMES.get(lower) ?? lower).split('.');
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
