// Objects in files that are parameters of a policy, in the place of a cluster.
import type { JsonObject, LookupResult, ObjectReference } from '../../engine/index.ts';
import type { FindResult, WatchedChange } from '../../evaluation/index.ts';
import { excessText, type KubernetesObject, namespaceText, parametersText } from '../../resources/index.ts';
import { own, parseJson, textOf, objectIn } from '../../values/index.ts';

type Found = Exclude<LookupResult, { readonly state: 'unknown' }>;

export class ParameterObjects {
  /** Undefined: no object is known, not even to be absent. */
  readonly #objects: readonly JsonObject[] | undefined;
  /** API versions and kinds of found objects. */
  readonly #published = new Map<string, readonly [apiVersion: string, kind: string]>();
  readonly #unknown = new Set<string>();

  constructor(objects: readonly JsonObject[] | undefined) {
    this.#objects = objects;
  }

  /** Kinds of which objects were found. */
  get published(): Iterable<readonly [apiVersion: string, kind: string]> {
    return this.#published.values();
  }

  find(reference: ObjectReference): Found {
    const { apiVersion, kind, namespace = '', name } = reference;
    if (this.#objects === undefined) {
      this.#unknown.add(`${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`);
      return { state: 'unreadable', reason: 'there is no cluster' };
    }
    const object = this.#objects.find((one) => isObject(one, reference));
    if (object === undefined) {
      return { state: 'absent' };
    }
    this.#published.set(`${apiVersion} ${kind}`, [apiVersion, kind]);
    return foundObject(object, reference);
  }

  /** Publishes an object to workers, for the option `find` of an evaluation host. */
  publish(reference: ObjectReference, publishWatched: (change: WatchedChange) => void): FindResult {
    const found = this.find(reference);
    if (found.state !== 'found') {
      return found;
    }
    const { apiVersion, kind, namespace, name } = reference;
    const key = { name, ...(namespace === undefined ? {} : { namespace }) };
    publishWatched({ apiVersion, kind, isAll: false, objects: [[key, JSON.stringify(found.object)]] });
    return { state: 'published' };
  }

  /** The objects that were looked up in vain since the last call. */
  takeUnknown(): readonly string[] {
    const unknown = [...this.#unknown];
    this.#unknown.clear();
    return unknown;
  }
}

function isObject(object: JsonObject, { apiVersion, kind, namespace = '', name }: ObjectReference): boolean {
  const metadata = objectIn(object, 'metadata');
  return (
    own(object, 'apiVersion') === apiVersion &&
    own(object, 'kind') === kind &&
    textOf(own(metadata, 'name')) === name &&
    textOf(own(metadata, 'namespace')) === namespace
  );
}

/** The object as policies get it from a cluster. */
function foundObject(object: JsonObject, { apiVersion, kind, annotations = [] }: ObjectReference): Found {
  const whole = object as unknown as KubernetesObject;
  if (apiVersion === 'v1' && kind === 'Namespace') {
    const { metadata } = whole;
    const text = namespaceText(metadata, annotations);
    return { state: 'found', object: parseJson(text) as JsonObject };
  }
  const { text, length } = parametersText(whole);
  return text === undefined
    ? { state: 'unreadable', reason: `the object is too large: ${excessText(length)}` }
    : { state: 'found', object: parseJson(text) as JsonObject };
}
