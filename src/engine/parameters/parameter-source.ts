// Finds the parameters of a request among the objects that the engine looks up.
import { excessText } from '../../resources/index.ts';
import { type JsonObject, own, setOwn, objectIn } from '../../values/index.ts';
import { type LookupResult, type ObjectLookup, type ObjectReference, UnknownObject } from '../review/object-lookup.ts';
import type { NamespaceKeys, ParametersDefinition, ParametersResource } from './parameters-definition.ts';

const NO_NAMESPACE = 'there are no parameters: the request has no namespace';

/** The objects that the settings of a request depend on. */
export interface FoundParameters {
  /** The object of the parameters: the resource, or the namespace. */
  readonly object: JsonObject;
  /** Null when the expression does not use it, and for cluster-scoped requests. */
  readonly namespace: JsonObject | null;
  /** The parameters before their last change. */
  readonly previous?: FoundParameters;
}

type ParameterSearch =
  | ({ readonly state: 'found' } & FoundParameters)
  | { readonly state: 'absent' | 'unreadable'; readonly message: string };

/** Variables of the expression. */
interface ParameterValues {
  readonly params: JsonObject;
  readonly namespaceObject: JsonObject | null;
}

export interface ParameterSource {
  /**
   * @param namespace of the request; empty for cluster-scoped and raw requests
   * @throws UnknownObject
   */
  find(namespace: string, objects: ObjectLookup): ParameterSearch;
  values(found: FoundParameters, namespace: string): ParameterValues;
  /** Where the parameters are, for messages. */
  placeOf(namespace: string): string;
  /** Whether the parameters of requests of the namespace are in it. */
  isWithin(namespace: string): boolean;
}

/** @param usesNamespace whether the expression reads the namespace */
export function parameterSource({ from }: ParametersDefinition, usesNamespace: boolean): ParameterSource {
  return 'namespace' in from ? new NamespaceSource(from.namespace) : new ResourceSource(from.resource, usesNamespace);
}

class ResourceSource implements ParameterSource {
  readonly #resource: ParametersResource;
  readonly #usesNamespace: boolean;

  constructor(resource: ParametersResource, usesNamespace: boolean) {
    this.#resource = resource;
    this.#usesNamespace = usesNamespace;
  }

  find(requestNamespace: string, objects: ObjectLookup): ParameterSearch {
    const { apiVersion, kind, name, namespace = requestNamespace } = this.#resource;
    if (namespace === '') {
      return { state: 'absent', message: NO_NAMESPACE };
    }
    const found = lookUp(objects, { apiVersion, kind, name, namespace });
    if (found.state !== 'found') {
      return notFound(found, this.placeOf(requestNamespace));
    }
    if (!this.#usesNamespace || requestNamespace === '') {
      return foundWith(found, () => null);
    }
    const within = findNamespace(requestNamespace, [], objects);
    return within.state === 'found'
      ? foundWith(found, () => within.object)
      : // Not absent: `notFound` is about parameters.
        { state: 'unreadable', message: within.message };
  }

  values({ object, namespace }: FoundParameters, name: string): ParameterValues {
    const labels = namespace === null ? {} : objectIn(metadataOf(namespace), 'labels');
    return {
      params: object,
      namespaceObject: namespace === null ? null : { metadata: { name, labels, annotations: {} } },
    };
  }

  placeOf(requestNamespace: string): string {
    const { kind, name, namespace = requestNamespace } = this.#resource;
    return `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`;
  }

  isWithin(requestNamespace: string): boolean {
    const { namespace = requestNamespace } = this.#resource;
    return namespace !== '' && namespace === requestNamespace;
  }
}

class NamespaceSource implements ParameterSource {
  readonly #keys: NamespaceKeys;

  constructor(keys: NamespaceKeys) {
    this.#keys = keys;
  }

  find(namespace: string, objects: ObjectLookup): ParameterSearch {
    if (namespace === '') {
      return { state: 'absent', message: NO_NAMESPACE };
    }
    const found = findNamespace(namespace, this.#keys.annotations, objects);
    if (found.state !== 'found') {
      return found;
    }
    const long = this.#tooLong(found.object);
    if (long !== undefined) {
      const [key, length] = long;
      const message = `the parameters are not known: the annotation ${key} of ${this.placeOf(namespace)} is too long: ${excessText(length)}`;
      return { state: 'unreadable', message };
    }
    const { annotations, labels } = this.#listed(found.object);
    return Object.keys(annotations).length + Object.keys(labels).length === 0
      ? {
          state: 'absent',
          message: `there are no parameters: ${this.placeOf(namespace)} has none of ${this.#keysText()}`,
        }
      : foundWith(found, (object) => object);
  }

  values({ object }: FoundParameters, name: string): ParameterValues {
    const { annotations, labels } = this.#listed(object);
    const all = objectIn(metadataOf(object), 'labels');
    return {
      params: { annotations, labels },
      namespaceObject: { metadata: { name, labels: all, annotations } },
    };
  }

  placeOf(namespace: string): string {
    return `the namespace ${JSON.stringify(namespace)}`;
  }

  isWithin(namespace: string): boolean {
    return namespace !== '';
  }

  #listed(namespace: JsonObject): { readonly annotations: JsonObject; readonly labels: JsonObject } {
    const metadata = metadataOf(namespace);
    return {
      annotations: textsOf(objectIn(metadata, 'annotations'), this.#keys.annotations),
      labels: textsOf(objectIn(metadata, 'labels'), this.#keys.labels),
    };
  }

  /** An annotation whose value is not published for its length, which takes its place. */
  #tooLong(namespace: JsonObject): readonly [key: string, length: number] | undefined {
    const annotations = objectIn(metadataOf(namespace), 'annotations');
    for (const key of this.#keys.annotations) {
      const value = own(annotations, key);
      if (typeof value === 'number') {
        return [key, value];
      }
    }
    return undefined;
  }

  #keysText(): string {
    const { annotations, labels } = this.#keys;
    const parts = [
      ...(annotations.length === 0 ? [] : [`the annotations ${annotations.join(', ')}`]),
      ...(labels.length === 0 ? [] : [`the labels ${labels.join(', ')}`]),
    ];
    return parts.join(' and ');
  }
}

type NotFound = Exclude<ParameterSearch, { readonly state: 'found' }>;
type FoundObject = Extract<LookupResult, { readonly state: 'found' }>;
type Found = FoundObject | NotFound;

function foundWith(
  { object, previous }: FoundObject,
  namespaceOf: (object: JsonObject) => JsonObject | null,
): ParameterSearch {
  const before = previous === undefined ? {} : { previous: { object: previous, namespace: namespaceOf(previous) } };
  return { state: 'found', object, namespace: namespaceOf(object), ...before };
}

function findNamespace(name: string, annotations: readonly string[], objects: ObjectLookup): Found {
  const needed = annotations.length === 0 ? {} : { annotations };
  const found = lookUp(objects, { apiVersion: 'v1', kind: 'Namespace', name, ...needed });
  return found.state === 'found' ? found : notFound(found, `the namespace ${JSON.stringify(name)}`);
}

type KnownResult = Exclude<LookupResult, { readonly state: 'unknown' }>;

/** @throws UnknownObject */
function lookUp(objects: ObjectLookup, reference: ObjectReference): KnownResult {
  const found = objects.find(reference);
  if (found.state === 'unknown') {
    throw new UnknownObject(reference);
  }
  return found;
}

function notFound(result: Exclude<KnownResult, { readonly state: 'found' }>, place: string): NotFound {
  return result.state === 'absent'
    ? { state: 'absent', message: `there are no parameters: ${place} does not exist` }
    : { state: 'unreadable', message: `the parameters are not known: ${place} cannot be read: ${result.reason}` };
}

function metadataOf(object: JsonObject): JsonObject {
  return objectIn(object, 'metadata');
}

/** The entries with these keys whose values are text: null stands for an annotation that the object does not have. */
function textsOf(object: JsonObject, keys: readonly string[]): JsonObject {
  const texts: JsonObject = {};
  for (const key of keys) {
    const value = own(object, key);
    if (typeof value === 'string') {
      setOwn(texts, key, value);
    }
  }
  return texts;
}
