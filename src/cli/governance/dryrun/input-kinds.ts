// The kinds of a cluster that is given as manifests.
import type { ApiResource, Discovery } from '../../../cluster/index.ts';
import {
  apiVersionOf,
  guessedKind,
  kubernetesKind,
  type KubernetesObject,
  productKind,
  type ResourceType,
} from '../../../resources/index.ts';
import { asJson } from '../../../values/index.ts';
import { definedKinds } from '../../custom-kinds.ts';

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
    const known = new Map(
      [...objects.flatMap((object) => definedKinds(asJson(object)).map(discovered)), ...mappings].map((kind) => [
        idOfType(kind),
        kind,
      ]),
    );
    const guesses = new Map(
      objects
        .filter(({ apiVersion, kind }) => !known.has(idOf(apiVersion, kind)) && builtin(apiVersion, kind) === undefined)
        .map((object) => [idOf(object.apiVersion, object.kind), discovered(guessedKind(asJson(object)))]),
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
  const type = productKind(apiVersion, kind) ?? kubernetesKind(apiVersion, kind);
  return type && discovered(type);
}

/** With what discovery says of a kind beside its type. */
function discovered(type: ResourceType): ApiResource {
  return { ...type, singular: type.kind.toLowerCase(), ...NO_NAMES };
}

const NO_NAMES = { shortNames: [], categories: [], verbs: [], subresources: [] } as const;

function idOfType(type: ResourceType): string {
  return idOf(apiVersionOf(type), type.kind);
}

function idOf(apiVersion: string, kind: string): string {
  return `${apiVersion} ${kind}`;
}
