// Objects in files that are parameters of a policy, in the place of a cluster.
import type { JsonObject, LookupResult, ObjectReference } from '../../engine/index.ts';
import { isJsonObject, own, setOwn, textOf } from '../../values/index.ts';

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
    return { state: 'found', object: withAnnotations(object, reference.annotations ?? []) };
  }

  /** The objects that were looked up in vain since the last call. */
  takeUnknown(): readonly string[] {
    const unknown = [...this.#unknown];
    this.#unknown.clear();
    return unknown;
  }
}

function isObject(object: JsonObject, { apiVersion, kind, namespace = '', name }: ObjectReference): boolean {
  const metadata = objectAt(object, 'metadata');
  return (
    own(object, 'apiVersion') === apiVersion &&
    own(object, 'kind') === kind &&
    textOf(own(metadata, 'name')) === name &&
    textOf(own(metadata, 'namespace')) === namespace
  );
}

/** The object with null for annotations that it does not have: a lookup needs all that it names. */
function withAnnotations(object: JsonObject, keys: readonly string[]): JsonObject {
  if (keys.length === 0) {
    return object;
  }
  const metadata = objectAt(object, 'metadata');
  const annotations = { ...objectAt(metadata, 'annotations') };
  for (const key of keys) {
    setOwn(annotations, key, own(annotations, key) ?? null);
  }
  return { ...object, metadata: { ...metadata, annotations } };
}

function objectAt(object: JsonObject, field: string): JsonObject {
  const value = own(object, field);
  return isJsonObject(value) ? value : {};
}
