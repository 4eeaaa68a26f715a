// The kinds of a cluster that is given as manifests.
import type { ApiResource, Discovery } from '../../../cluster/index.ts';
import {
  ALL_KINDS,
  apiVersionOf,
  groupVersionOf,
  isJsonObject,
  type JsonValue,
  kubernetesKind,
  type KubernetesObject,
  own,
  type ResourceType,
  textOf,
  valueAt,
} from '../../../resources/index.ts';

export class InputKinds implements Discovery {
  /** By API version and kind. */
  readonly #kinds: ReadonlyMap<string, ApiResource>;
  /** Kinds whose plural and scope are guessed. */
  readonly guessed: readonly ApiResource[];

  /**
   * @param objects among them CustomResourceDefinitions
   * @param mappings take precedence
   */
  constructor(objects: readonly KubernetesObject[], mappings: readonly ApiResource[]) {
    const known = new Map([...objects.flatMap(definedKinds), ...mappings].map((kind) => [idOfType(kind), kind]));
    const guesses = new Map(
      objects
        .filter(({ apiVersion, kind }) => !known.has(idOf(apiVersion, kind)) && builtin(apiVersion, kind) === undefined)
        .map((object) => [idOf(object.apiVersion, object.kind), guessedKind(object)]),
    );
    this.guessed = [...guesses.values()];
    this.#kinds = new Map([...guesses, ...known]);
  }

  async find(apiVersion: string, kind: string): Promise<ApiResource | undefined> {
    return await Promise.resolve(this.kind(apiVersion, kind));
  }

  kind(apiVersion: string, kind: string): ApiResource | undefined {
    return this.#kinds.get(idOf(apiVersion, kind)) ?? builtin(apiVersion, kind);
  }

  /** Those of the manifests: builtin kinds are only found by name. */
  async resources(): Promise<readonly ApiResource[]> {
    return await Promise.resolve([...this.#kinds.values()]);
  }
}

function builtin(apiVersion: string, kind: string): ApiResource | undefined {
  const own = ALL_KINDS.find((one) => one.kind === kind && apiVersionOf(one) === apiVersion);
  const type = own ?? kubernetesKind(apiVersion, kind);
  return type && { ...type, singular: kind.toLowerCase(), ...NO_NAMES };
}

/** The kinds of a CustomResourceDefinition; none of another object. */
function definedKinds(object: KubernetesObject): readonly ApiResource[] {
  const { spec } = object as { readonly spec?: JsonValue };
  const names = valueAt(spec, 'names');
  const versions = valueAt(spec, 'versions');
  if (object.kind !== 'CustomResourceDefinition' || !isJsonObject(spec) || !isJsonObject(names)) {
    return [];
  }
  const kind = textOf(own(names, 'kind'));
  return (Array.isArray(versions) ? versions.filter(isJsonObject) : []).map((version) => ({
    group: textOf(own(spec, 'group')),
    version: textOf(own(version, 'name')),
    kind,
    resource: textOf(own(names, 'plural')),
    namespaced: own(spec, 'scope') === 'Namespaced',
    singular: kind.toLowerCase(),
    ...NO_NAMES,
  }));
}

/** The kind of an object by the rules for English plurals that Kubernetes guesses by as well. */
function guessedKind({ apiVersion, kind, metadata }: KubernetesObject): ApiResource {
  const singular = kind.toLowerCase();
  const plural = singular.endsWith('y')
    ? `${singular.slice(0, -1)}ies`
    : `${singular}${singular.endsWith('s') ? 'es' : 's'}`;
  const { group, version } = groupVersionOf(apiVersion);
  const namespaced = metadata.namespace !== undefined;
  return { group, version, kind, resource: plural, namespaced, singular, ...NO_NAMES };
}

const NO_NAMES = { shortNames: [], categories: [], verbs: [], subresources: [] } as const;

function idOfType(type: ResourceType): string {
  return idOf(apiVersionOf(type), type.kind);
}

function idOf(apiVersion: string, kind: string): string {
  return `${apiVersion} ${kind}`;
}
