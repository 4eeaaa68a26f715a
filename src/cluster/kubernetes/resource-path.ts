import type { ObjectKey, ResourceType } from '../../resources/index.ts';
import { ClusterError } from '../errors.ts';

/**
 * The path of a resource, or of one of its objects.
 * @throws ClusterError `request-invalid` for text that is invalid in a path.
 */
export function resourcePath(
  type: ResourceType,
  where: { readonly namespace?: string | undefined; readonly name?: string | undefined } = {},
  subresource?: string,
): string {
  const root = type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;
  // Paths of cluster-scoped objects have no namespace, whatever the caller passed.
  const namespace =
    type.namespaced && where.namespace !== undefined ? `/namespaces/${segment('namespace', where.namespace)}` : '';
  const name = where.name === undefined ? '' : `/${segment('name', where.name)}`;
  const below = subresource === undefined ? '' : `/${subresource.split('/').map(encodeURIComponent).join('/')}`;
  return `${root}${namespace}/${type.resource}${name}${below}`;
}

/** The path of one object. Namespaced types need a namespace. */
export function objectPath(type: ResourceType, key: Partial<ObjectKey>, subresource?: string): string {
  requireNamespace(type, key.namespace);
  return resourcePath(type, { namespace: key.namespace, name: key.name ?? '' }, subresource);
}

/** The path at which objects are created. */
export function collectionPath(type: ResourceType, namespace: string | undefined): string {
  requireNamespace(type, namespace);
  return resourcePath(type, { namespace });
}

function requireNamespace(type: ResourceType, namespace: string | undefined): void {
  if (type.namespaced && namespace === undefined) {
    throw new ClusterError(
      'request-invalid',
      `${type.resource} are in namespaces: expected the namespace of the object, got none`,
    );
  }
}

/** A path segment. Rejects text that servers would not read as one name. */
function segment(what: string, text: string): string {
  if (text === '' || text === '.' || text === '..') {
    throw new ClusterError('request-invalid', `expected the ${what} of an object, got ${JSON.stringify(text)}`);
  }
  return encodeURIComponent(text);
}

/** `?a=1&b=2`, without undefined values; empty when none is left. */
export function queryText(parameters: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined) {
      query.append(name, String(value));
    }
  }
  return query.size === 0 ? '' : `?${query.toString()}`;
}
