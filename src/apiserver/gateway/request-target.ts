// The target of a URL: an object, a collection, or a non-resource path
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris).
import type { AccessAttributes } from '../embedded/request/request.ts';

/** A collection, an object, or a subresource. */
export interface ResourceTarget {
  readonly kind: 'resource';
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
}

/** `/version`, `/openapi/v3`, discovery and the like. */
export interface PathTarget {
  readonly kind: 'path';
  /** Decoded, without a slash at the end; `/` for the root. */
  readonly path: string;
}

export type RequestTarget = ResourceTarget | PathTarget;

/** Longest URL, still encoded. kubectl's longest have selectors of a few hundred bytes. Bytes. */
export const MAX_URL_BYTES = 8 * 1024;

/** Maximum number of path segments; URLs of the API have at most eight. */
const MAX_SEGMENTS = 16;

/** Subresources of Namespaces; any other third segment is a resource in the namespace. */
const NAMESPACE_SUBRESOURCES: ReadonlySet<string> = new Set(['status', 'finalize']);

/** The target of a URL's path. Undefined when the path is malformed. */
export function parseTarget(rawPath: string): RequestTarget | undefined {
  const decoded = decode(rawPath);
  if (decoded === undefined || !decoded.startsWith('/')) {
    return undefined;
  }
  const path = decoded.length > 1 && decoded.endsWith('/') ? decoded.slice(0, -1) : decoded;
  const segments = path.slice(1).split('/');
  if (segments.length > MAX_SEGMENTS) {
    return undefined;
  }
  const isCore = segments[0] === 'api';
  const rest = segments.slice(isCore ? 2 : 3);
  if ((!isCore && segments[0] !== 'apis') || rest.length === 0) {
    return { kind: 'path', path };
  }
  if (segments.some((segment) => segment === '' || segment === '.' || segment === '..')) {
    return undefined;
  }
  const [group = '', version = ''] = isCore ? ['', segments[1]] : [segments[1], segments[2]];
  return { kind: 'resource', group, version, ...resourceOf(rest) };
}

/** Parses `namespaces/x/pods/y/status`, and the like. */
function resourceOf(
  segments: readonly string[],
): Pick<ResourceTarget, 'resource' | 'namespace' | 'name' | 'subresource'> {
  const [first = '', namespace, third] = segments;
  const isInNamespace = first === 'namespaces' && third !== undefined && !NAMESPACE_SUBRESOURCES.has(third);
  const [resource = '', name, ...parts] = isInNamespace ? segments.slice(2) : segments;
  return {
    resource,
    namespace: isInNamespace ? namespace : undefined,
    name,
    subresource: parts.length === 0 ? undefined : parts.join('/'),
  };
}

function decode(path: string): string | undefined {
  try {
    // Control characters are allowed: names of roles may have them, and users must be able to delete these roles.
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

/** The verb that a resource request is authorized for. Undefined for methods without one. */
export function verbOf(method: string, target: ResourceTarget, isWatch: boolean): string | undefined {
  switch (method) {
    case 'GET':
    case 'HEAD':
      return target.name === undefined ? (isWatch ? 'watch' : 'list') : 'get';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return target.name === undefined ? 'deletecollection' : 'delete';
    default:
      return undefined;
  }
}

/** The authorization attributes of a target. */
export function attributesOf(
  user: AccessAttributes['user'],
  method: string,
  target: RequestTarget,
  isWatch: boolean,
): AccessAttributes {
  if (target.kind === 'path') {
    return { user, verb: method.toLowerCase(), path: target.path };
  }
  const { group, version, resource, name, subresource } = target;
  // A request for a Namespace is authorized in that namespace.
  const namespace = target.namespace ?? (group === '' && resource === 'namespaces' ? name : undefined);
  return {
    user,
    verb: verbOf(method, target, isWatch) ?? '',
    group,
    version,
    resource,
    ...(subresource === undefined ? {} : { subresource }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
  };
}
