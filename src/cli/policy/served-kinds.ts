// Resource names, scopes and defaults of kinds without a cluster.
import {
  ALL_KINDS,
  apiVersionOf,
  builtinKind,
  groupVersionOf,
  guessedKind,
  type ResourceType,
} from '../../resources/index.ts';
import { type JsonObject, own, textOf } from '../../values/index.ts';
import { definedKinds } from '../custom-kinds.ts';
import type { RequestDetails } from './admission-request.ts';
import { type DefaultedObject, ObjectDefaults } from './object-defaults.ts';

/** What a request says of the kind of its object. */
export interface ServedKind {
  readonly details: Pick<RequestDetails, 'resource' | 'scope'>;
  /** For the user: the kind is not known, and was guessed. */
  readonly note?: string;
}

export class ServedKinds {
  /** By API version and kind. */
  readonly #defined: ReadonlyMap<string, ResourceType>;
  readonly #defaults: ObjectDefaults;

  /** @param objects among which are CustomResourceDefinitions */
  constructor(objects: readonly JsonObject[]) {
    this.#defaults = new ObjectDefaults(objects);
    const defined = objects.flatMap(definedKinds);
    this.#defined = new Map([...ALL_KINDS, ...defined].map((type) => [idOf(apiVersionOf(type), type.kind), type]));
  }

  /** The object as API servers pass it to policies. */
  defaulted(object: JsonObject): DefaultedObject {
    return this.#defaults.defaulted(object);
  }

  /** What the request for an object has to say beside the object. */
  kindOf(object: JsonObject): ServedKind {
    const apiVersion = textOf(own(object, 'apiVersion'));
    const kind = textOf(own(object, 'kind'));
    if (builtinKind(groupVersionOf(apiVersion).group, kind) !== undefined) {
      return { details: {} };
    }
    const defined = this.#defined.get(idOf(apiVersion, kind));
    const { resource, namespaced } = defined ?? guessedKind(object);
    const scope = defined === undefined || namespaced ? 'Namespaced' : 'Cluster';
    return {
      details: { resource, scope },
      ...(defined === undefined
        ? { note: `${kind} of ${apiVersion} is not known: assuming ${resource} of namespaces` }
        : {}),
    };
  }
}

function idOf(apiVersion: string, kind: string): string {
  return `${apiVersion} ${kind}`;
}
