// Keys of verdicts: equal keys, equal verdicts.
import { createHash, type Hash } from 'node:crypto';
import { definitionHash } from '../engine/definition/index.ts';
import { canonicalJson, type JsonObject, type JsonValue, type PolicyDefinition } from '../engine/index.ts';
import { matchReads, moduleReads } from '../engine/reads/index.ts';
import { type GroupVersionResource, isJsonObject, type PolicyMatch, workloadOf } from '../resources/index.ts';
import { objectIn, own, textOf } from '../values/index.ts';

/** A policy as it was loaded. */
export interface LoadedForAudit {
  readonly definition: PolicyDefinition;
  readonly match: PolicyMatch;
  /** Of its modules, by reference. */
  readonly digests: Readonly<Record<string, string>>;
}

/** What the evaluation of an object reads beside the policy. */
export interface VerdictInputs {
  /** As {@link createdObject} gives it. */
  readonly object: JsonObject;
  readonly resource: GroupVersionResource;
  /** The object of its namespace. Absent: it has none. */
  readonly namespace?: JsonObject;
  /** The parameters of the policy for its namespace; null without any. */
  readonly parameters?: JsonValue;
  /** The exceptions from the policy in the namespace of the object: see exceptionsKey. */
  readonly exceptions?: string;
  /** Objects that the policy looked up, in any order. */
  readonly lookedUp?: readonly LookedUpObject[];
}

/** The version of an object that was looked up. */
export interface LookedUpObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  /** Empty: it does not exist. */
  readonly resourceVersion: string;
}

type Path = readonly string[];

/** Of a digest: no two of 10^15 verdicts have the same key by chance, and an auditor keeps one for each object and policy. */
const KEY_BYTES = 20;

/** The escape of characters that are no part of identifiers, as in `__dash__`. */
const ESCAPED = '__';

/** Makes the keys of the verdicts of one policy. */
export class VerdictKeys {
  readonly #policy: string;
  /** Undefined: all of the object. */
  readonly #objectPaths: readonly Path[] | undefined;
  readonly #namespacePaths: readonly Path[];
  readonly #checksPodTemplates: boolean;

  constructor({ definition, match, digests }: LoadedForAudit) {
    this.#policy = digestOf(canonicalJson([definitionHash(definition), match, digests]));
    const modules = moduleReads(definition);
    const reads = modules.map((module) => module.reads);
    const known = [...matchReads(match), ...reads.flatMap((one) => one ?? [])].map(({ path }) => path);
    const isOpen = modules.some((module) => module.reads === undefined || module.readsMore === true);
    const whole = isOpen || mayChange(definition);
    this.#objectPaths = whole ? undefined : pathsBelow('object', known);
    this.#namespacePaths = pathsBelow('namespaceObject', known);
    this.#checksPodTemplates = definition.podTemplates !== undefined;
    const readsRequest = known.some(
      ([variable, field]) => variable === 'request' && (field === undefined || field === 'name'),
    );
    if (this.#objectPaths !== undefined && readsRequest) {
      this.#objectPaths = [...this.#objectPaths, ['metadata', 'name']];
    }
  }

  /** The key where objects that differ may have the same; undefined where the policy reads all of the object. */
  sharedKey(inputs: VerdictInputs): string | undefined {
    return this.isShared(inputs.resource) ? this.of(inputs) : undefined;
  }

  /** Whether objects of a kind that differ may have the same key. */
  isShared(resource: GroupVersionResource): boolean {
    return this.#objectPaths?.every((path) => path.length > 0) === true && !this.#readsTemplate(resource);
  }

  /** The digest of all that a verdict depends on. */
  of({ object, resource, namespace, parameters = null, exceptions = '', lookedUp = [] }: VerdictInputs): string {
    const hash = createHash('sha256').update(this.#policy);
    const metadata = objectIn(object, 'metadata');
    add(hash, [resource.group, resource.version, resource.resource, textOf(own(metadata, 'namespace'))]);
    for (const path of this.#readsTemplate(resource) ? [[]] : (this.#objectPaths ?? [[]])) {
      hash.update(digestAt(object, path));
    }
    for (const path of this.#namespacePaths) {
      hash.update(digestAt(namespace ?? {}, path));
    }
    if (resource.group === '' && resource.resource === 'namespaces') {
      // Selectors of namespaces look at its own labels, of which one is its name.
      add(hash, fieldAt(object, ['metadata', 'labels']));
    }
    add(hash, parameters);
    if (exceptions !== '') {
      // They select objects by fields that the policy may not read.
      add(hash, [exceptions, object]);
    }
    add(hash, lookedUp.map(lookedUpText).toSorted());
    return hash.digest().toString('base64url', 0, KEY_BYTES);
  }

  /** Whether the pod of a template is judged in the place of the object. */
  #readsTemplate(resource: GroupVersionResource): boolean {
    return this.#checksPodTemplates && workloadOf(resource) !== undefined;
  }
}

/** A patch is the difference to the whole object. */
function mayChange(definition: PolicyDefinition): boolean {
  return definition.kind === 'policy' && definition.allowedToMutate;
}

/** The shortest paths below a variable; those of longer ones are in them. */
function pathsBelow(variable: string, reads: readonly Path[]): readonly Path[] {
  const paths = reads.filter(([first]) => first === variable).map((path) => unescaped(path.slice(1)));
  const texts = new Map(paths.map((path) => [JSON.stringify(path), path]));
  const isWithin = (path: Path): boolean => path.some((_, length) => texts.has(JSON.stringify(path.slice(0, length))));
  return [...texts.values()]
    .filter((path) => !isWithin(path))
    .toSorted((one, other) => (one.join('\n') < other.join('\n') ? -1 : 1));
}

/** An escaped field has another name in the object, so that all beside it counts. */
function unescaped(path: Path): Path {
  const at = path.findIndex((field) => field.includes(ESCAPED));
  return at === -1 ? path : path.slice(0, at);
}

/** Digests of fields, for as long as their objects exist: policies read the same ones. */
const known = new WeakMap<JsonObject, Map<string, string>>();

function digestAt(object: JsonObject, path: Path): string {
  const digests = known.get(object) ?? new Map<string, string>();
  known.set(object, digests);
  const name = path.join('\n');
  let digest = digests.get(name);
  if (digest === undefined) {
    digest = digestOf(canonicalJson(fieldAt(object, path)));
    digests.set(name, digest);
  }
  return digest;
}

/** The value of a field; where there is none, how far the path leads, and to a value of which type. */
function fieldAt(object: JsonObject, path: Path): JsonValue {
  let value: JsonValue = object;
  for (const [depth, field] of path.entries()) {
    if (!isJsonObject(value) || !Object.hasOwn(value, field)) {
      return [depth, Array.isArray(value) ? 'list' : value === null ? 'null' : typeof value];
    }
    value = value[field] ?? null;
  }
  return [value];
}

function lookedUpText({ apiVersion, kind, namespace = '', name, resourceVersion }: LookedUpObject): string {
  return [apiVersion, kind, namespace, name, resourceVersion].join(' ');
}

/** Texts of different values never follow each other as those of others would: none contains a line break. */
function add(hash: Hash, value: JsonValue): void {
  hash.update('\n').update(canonicalJson(value));
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
