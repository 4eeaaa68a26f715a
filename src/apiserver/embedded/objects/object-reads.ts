import { ApiError, ObjectSelection } from '../../../cluster/index.ts';
import type { ListOptions, ObjectList, RequestOptions, SubresourceOptions } from '../../../cluster/index.ts';
import type { KubernetesObject, ObjectKey, ResourceType } from '../../../resources/index.ts';
import { notServed } from '../../not-served.ts';
import { decodeContinue, encodeContinue } from './continue-token.ts';
import { authorize, methodNotSupported, servedResource } from './cluster-context.ts';
import type { Caller, ClusterContext } from './cluster-context.ts';
import type { RegisteredResource } from '../kinds/resource-registry.ts';
import { scaleOf } from './scale.ts';
import { pathOf } from '../store/collection.ts';
import type { Collection } from '../store/collection.ts';

/** Reads one object. */
export function readObject(
  context: ClusterContext,
  caller: Caller,
  type: ResourceType,
  key: ObjectKey,
  options: RequestOptions & SubresourceOptions & { readonly resourceVersion?: string },
): KubernetesObject {
  const served = servedResource(context, type);
  const { subresource, resourceVersion } = options;
  authorize(context, caller, 'get', type, { ...key, subresource });
  requireStored(served, 'get');
  if (resourceVersion !== undefined && resourceVersion !== '') {
    requireReached(context, parseRevision(resourceVersion));
  }
  const stored = context.store.get(served.collection, key.namespace ?? '', key.name);
  if (stored === undefined) {
    throw ApiError.notFound(type, key.name);
  }
  return objectOfSubresource(served, served.inServedVersion(stored), subresource);
}

/** The object as a subresource shows it: a Scale, or the object itself. */
export function objectOfSubresource(
  served: RegisteredResource,
  object: KubernetesObject,
  subresource: string | undefined,
): KubernetesObject {
  const { hasStatus, scale } = served.definition;
  const isWhole =
    subresource === undefined ||
    (subresource === 'status' && hasStatus) ||
    (subresource === 'finalize' && served.collection === 'namespaces');
  if (isWhole) {
    return object;
  }
  if (subresource === 'scale' && scale !== undefined) {
    return scaleOf(object, scale);
  }
  throw notServed();
}

/** Reads a page of a list. */
export function listObjects(
  context: ClusterContext,
  caller: Caller,
  type: ResourceType,
  options: ListOptions,
): ObjectList {
  const served = servedResource(context, type);
  const selection = new ObjectSelection(served.definition, options);
  authorize(context, caller, 'list', type, { namespace: options.namespace, name: selection.name });
  requireStored(served, 'list');
  const collection = context.store.collection(served.collection);
  const { revision, start } = listPosition(context, options);
  const objects = objectsAt(collection, revision, selection.namespace, options.continue !== undefined);
  return pageOf(served, objects, selection, {
    revision: revision ?? context.store.revision,
    start,
    limit: options.limit,
  });
}

function pageOf(
  served: RegisteredResource,
  objects: Iterable<KubernetesObject>,
  selection: ObjectSelection,
  { revision, start, limit = 0 }: { revision: number; start: string; limit: number | undefined },
): ObjectList {
  const items: KubernetesObject[] = [];
  let remaining = 0;
  let next: string | undefined;
  for (const stored of objects) {
    const path = pathOf(stored);
    if (path < start) {
      continue;
    }
    if (!selection.matches(stored)) {
      continue;
    }
    if (limit > 0 && items.length === limit) {
      remaining += 1;
      if (!selection.isEmpty) {
        break;
      }
      continue;
    }
    items.push(served.inServedVersion(stored));
    // The smallest text that sorts after this path.
    next = `${path}\u0000`;
  }
  const isPartial = remaining > 0 && next !== undefined;
  return {
    metadata: {
      resourceVersion: String(revision),
      ...(isPartial && next !== undefined ? { continue: encodeContinue({ revision, start: next }) } : {}),
      // As in API servers, the rest is not counted if there is a selector.
      ...(isPartial && selection.isEmpty ? { remainingItemCount: remaining } : {}),
    },
    items,
  };
}

/** The revision of a list and its first path. The revision is undefined for the newest. */
function listPosition(context: ClusterContext, options: ListOptions): { revision: number | undefined; start: string } {
  const { resourceVersion = '', resourceVersionMatch } = options;
  if (options.continue !== undefined && options.continue !== '') {
    if (resourceVersion !== '' && resourceVersion !== '0') {
      throw ApiError.badRequest('specifying resource version is not allowed when using continue');
    }
    const { revision, start } = decodeContinue(options.continue);
    requireReached(context, revision);
    return { revision: revision < 0 ? undefined : revision, start };
  }
  if (resourceVersion === '' || resourceVersion === '0') {
    return { revision: undefined, start: '' };
  }
  const revision = parseRevision(resourceVersion);
  requireReached(context, revision);
  const isExact = resourceVersionMatch === 'Exact' || (resourceVersionMatch === undefined && (options.limit ?? 0) > 0);
  return { revision: isExact ? revision : undefined, start: '' };
}

function objectsAt(
  collection: Collection,
  revision: number | undefined,
  namespace: string | undefined,
  isContinued: boolean,
): Iterable<KubernetesObject> {
  if (revision === undefined) {
    return collection.list(namespace);
  }
  const objects = collection.listAt(revision, namespace);
  if (objects === undefined) {
    throw ApiError.expired(
      isContinued
        ? 'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.'
        : 'The resourceVersion for the provided list is too old.',
    );
  }
  return objects;
}

/** @throws ApiError 400 for a malformed version. */
export function parseRevision(text: string): number {
  if (!/^\d{1,15}$/u.test(text)) {
    throw ApiError.badRequest(
      `invalid resource version: resourceVersion: Invalid value: "${text}": strconv.ParseUint: parsing "${text}": invalid syntax`,
    );
  }
  return Number(text);
}

/** @throws ApiError 504 for a revision that the cluster has not reached. */
export function requireReached(context: ClusterContext, revision: number): void {
  const current = context.store.revision;
  if (revision > current) {
    throw new ApiError(504, 'Timeout', `Timeout: Too large resource version: ${revision}, current: ${current}`, {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds: 1,
    });
  }
}

/** @throws ApiError 405 for kinds that can only be created, such as reviews. */
export function requireStored({ definition }: RegisteredResource, verb: string): void {
  if (definition.verbs !== undefined && !definition.verbs.includes(verb)) {
    throw methodNotSupported(definition, verb);
  }
}
