// A short text for the parameters that a policy reads, which differs when they differ.
import { hash } from 'node:crypto';
import type { WatchedChange, WatchedObject } from '../../evaluation/index.ts';
import { mayReadNamespace, specParameters } from '../../evaluation/object-feeds/index.ts';
import { isJsonObject, type JsonObject, own, parseJson, textOf, textsOf, objectIn } from '../../values/index.ts';
import { MAX_TRIED } from './existing-parameters.ts';

/** Namespaces that a fingerprint names at most, so that it fits its field; beyond, those of all namespaces count. */
const MAX_NAMED = 32;

/**
 * The fingerprint of the parameters of a policy, or of the members of a group; undefined where annotations that it needs are not
 * known. Equal for the same parameters whether they were listed or watched.
 * @param spec of the policy, not validated
 * @param namespace of the policy, if it has one: only its own parameters count
 * @param refused the namespaces whose parameters alone count, so that others change without an effect. Default: all. The
 *   fingerprint names them
 */
export function parametersFingerprint(
  spec: unknown,
  namespace: string | undefined,
  changes: readonly WatchedChange[],
  refused?: readonly string[],
): string | undefined {
  const named = refused !== undefined && refused.length <= MAX_NAMED ? refused.toSorted() : undefined;
  const entries = entriesOf(spec, namespace, changes, named);
  const digest = entries && hash('sha256', JSON.stringify(entries));
  return named === undefined || digest === undefined ? digest : `${digest} ${named.join(',')}`;
}

/** The namespaces whose parameters alone count in a fingerprint; undefined: all. */
export function namespacesOfFingerprint(fingerprint: string | undefined): readonly string[] | undefined {
  return fingerprint?.split(' ')[1]?.split(',');
}

function entriesOf(
  spec: unknown,
  namespace: string | undefined,
  changes: readonly WatchedChange[],
  named: readonly string[] | undefined,
): readonly string[] | undefined {
  const counts = (name = ''): boolean => named === undefined || named.includes(name);
  const entries: string[] = [];
  for (const parameters of specParameters(spec)) {
    const from = objectIn(parameters, 'from');
    const resource = own(from, 'resource');
    if (isJsonObject(resource)) {
      entries.push(...objectEntries(resource, namespace, changes, counts));
    }
    const keys = own(from, 'namespace');
    if (isJsonObject(keys) || mayReadNamespace(parameters)) {
      const ofNamespaces = namespaceEntries(parameters, keys, namespace, changes, counts);
      if (ofNamespaces === undefined) {
        return undefined;
      }
      entries.push(...ofNamespaces);
    }
  }
  return entries;
}

function objectEntries(
  resource: JsonObject,
  policyNamespace: string | undefined,
  changes: readonly WatchedChange[],
  counts: (namespace?: string) => boolean,
): readonly string[] {
  const [apiVersion, kind, name] = ['apiVersion', 'kind', 'name'].map((field) => textOf(own(resource, field)));
  const within = textOf(own(resource, 'namespace')) || policyNamespace;
  const objects = objectsOf(changes, apiVersion, kind).filter(
    ([key]) => key.name === name && (within === undefined || key.namespace === within),
  );
  // One object of a named namespace is for the requests of all.
  const read = inOrder(objects).filter(([key]) => within !== undefined || counts(key.namespace));
  return read.map(([key, text, failure]) =>
    JSON.stringify([key.namespace, name, text ?? (failure?.state === 'unreadable' ? failure.reason : '')]),
  );
}

/** Namespaces with parameters, or all if their labels may count. */
function namespaceEntries(
  parameters: JsonObject,
  keys: unknown,
  policyNamespace: string | undefined,
  changes: readonly WatchedChange[],
  counts: (namespace: string) => boolean,
): readonly string[] | undefined {
  const [annotations, labels] = ['annotations', 'labels'].map((field) =>
    isJsonObject(keys) ? textsOf(own(keys, field)) : [],
  );
  const needsLabels = mayReadNamespace(parameters);
  const entries: string[] = [];
  for (const [{ name }, text] of inOrder(objectsOf(changes, 'v1', 'Namespace'))) {
    const metadata = metadataOf(text);
    const has = objectIn(metadata, 'annotations');
    if (annotations?.some((key) => !Object.hasOwn(has, key)) === true) {
      return undefined;
    }
    const values = [valuesOf(has, annotations), valuesOf(objectIn(metadata, 'labels'), labels)];
    const isRead = needsLabels || values.some((one) => one.length > 0);
    if (isRead && counts(name) && (policyNamespace === undefined || policyNamespace === name)) {
      entries.push(JSON.stringify([name, values, needsLabels ? objectIn(metadata, 'labels') : '']));
    }
  }
  return entries;
}

function objectsOf(changes: readonly WatchedChange[], apiVersion = '', kind = ''): readonly WatchedObject[] {
  return changes
    .filter((change) => change.apiVersion === apiVersion && change.kind === kind)
    .flatMap(({ objects }) => objects)
    .filter(([, text, failure]) => text !== undefined || failure?.state === 'unreadable');
}

/** The objects that are tried, in the order in which API servers list them. */
function inOrder(objects: readonly WatchedObject[]): readonly WatchedObject[] {
  const placed = objects.map((one) => [`${one[0].namespace ?? ''}/${one[0].name}`, one] as const);
  return placed
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .slice(0, MAX_TRIED)
    .map(([, one]) => one);
}

function metadataOf(text = '{}'): JsonObject {
  const object = parseJson(text);
  return isJsonObject(object) ? objectIn(object, 'metadata') : {};
}

function valuesOf(object: JsonObject, keys: readonly string[] = []): readonly unknown[] {
  return keys.filter((key) => Object.hasOwn(object, key) && object[key] !== null).map((key) => [key, object[key]]);
}
