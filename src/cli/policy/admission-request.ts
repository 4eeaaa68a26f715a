// Builds the admission request that an API server would send for an object.
import { isJsonObject, type JsonObject } from '../../engine/index.ts';
import { builtinKind } from '../../resources/index.ts';
import { CliError } from '../errors.ts';
import { DEFAULT_NAMESPACE } from '../manifest-objects.ts';

/** The user of a request. */
export interface User {
  readonly username: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: JsonObject;
}

export const OPERATIONS = ['CREATE', 'UPDATE', 'DELETE', 'CONNECT'] as const;
export type Operation = (typeof OPERATIONS)[number];
export type Scope = 'Namespaced' | 'Cluster';

/** Fields of an admission request other than its objects. */
export interface RequestDetails {
  readonly operation?: Operation;
  readonly user?: User;
  readonly namespace?: string;
  readonly dryRun?: boolean;
  readonly subresource?: string;
  /** `widgets`, or in kubectl's notation `deployments.v1.apps`. */
  readonly resource?: string;
  readonly scope?: Scope;
  readonly options?: JsonObject;
}

/** Constant, so that responses are the same in every run. */
const REQUEST_UID = '00000000-0000-4000-8000-000000000000';
/** The default user, as kubeadm names its administrator. */
export const DEFAULT_USER: User = {
  username: 'kubernetes-admin',
  groups: ['kubeadm:cluster-admins', 'system:authenticated'],
};
const DEFAULT_GROUPS = ['system:authenticated'];
const OPTIONS: Readonly<Record<Operation, string | undefined>> = {
  CREATE: 'CreateOptions',
  UPDATE: 'UpdateOptions',
  DELETE: 'DeleteOptions',
  CONNECT: undefined,
};

/** The objects of a request: at least one of them. */
export interface RequestObjects {
  readonly object?: JsonObject;
  readonly oldObject?: JsonObject;
}

interface Kind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** The resource and scope of a kind. */
interface Served {
  readonly plural: string;
  readonly scope: Scope;
  readonly group: string;
  readonly version: string;
}

/**
 * The AdmissionReview for objects. The operation defaults to CREATE for an object, UPDATE for an object and an old one, and
 * DELETE for an old one alone. The namespace of namespaced objects is that of the details, their own, or `default`.
 * @throws CliError when an object has no kind, or the resource of its kind is unknown
 */
export function admissionReview({ object, oldObject }: RequestObjects, details: RequestDetails): JsonObject {
  const subject = object ?? oldObject ?? {};
  const kind = kindOf(subject);
  const served = resourceOf(kind, details);
  const { plural, group, version } = served;
  const name = textOf(subject, 'name') ?? '';
  const namespace = namespaceOf(subject, served, details);
  const isPlaced = served.scope === 'Namespaced' && namespace !== undefined;
  const place = (value: JsonObject): JsonObject => (isPlaced ? inNamespace(value, namespace) : value);
  const operation =
    details.operation ?? (object === undefined ? 'DELETE' : oldObject === undefined ? 'CREATE' : 'UPDATE');
  const resource = { group, version, resource: plural };
  const { subresource } = details;
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: REQUEST_UID,
      kind: { ...kind },
      resource,
      ...(subresource === undefined ? {} : { subResource: subresource }),
      requestKind: { ...kind },
      requestResource: { ...resource },
      ...(subresource === undefined ? {} : { requestSubResource: subresource }),
      ...(name === '' ? {} : { name }),
      ...(namespace === undefined ? {} : { namespace }),
      operation,
      userInfo: userInfo(details.user ?? DEFAULT_USER),
      object: object === undefined ? null : place(object),
      oldObject: oldObject === undefined ? null : place(oldObject),
      dryRun: details.dryRun ?? false,
      options: details.options ?? defaultOptions(operation),
    },
  };
}

/** A copy of an object in a namespace. */
function inNamespace(object: JsonObject, namespace: string): JsonObject {
  const metadata = isJsonObject(object['metadata']) ? object['metadata'] : {};
  return { ...object, metadata: { ...metadata, namespace } };
}

function kindOf(object: JsonObject): Kind {
  const { apiVersion, kind } = object;
  if (typeof apiVersion !== 'string' || typeof kind !== 'string' || apiVersion === '' || kind === '') {
    throw new CliError('expected an object with apiVersion and kind', {
      hint: 'For values that are not Kubernetes objects, use raw.',
    });
  }
  const [version = '', group = ''] = apiVersion.split('/').toReversed();
  return { group, version, kind };
}

function resourceOf({ group, version, kind }: Kind, { resource, scope }: RequestDetails): Served {
  const known = builtinKind(group, kind);
  const ownScope: Scope = known?.namespaced === false ? 'Cluster' : 'Namespaced';
  if (resource !== undefined) {
    const [plural = '', ...rest] = resource.split('.');
    const [named, ...groups] = rest;
    const place = named === undefined ? { group, version } : { group: groups.join('.'), version: named };
    return { plural, scope: scope ?? ownScope, ...place };
  }
  if (known === undefined) {
    const apiVersion = group === '' ? version : `${group}/${version}`;
    throw new CliError(
      `${kind} of ${apiVersion} is not a builtin kind: expected "resource", the plural name of its resource, and "scope: Cluster" if it is cluster-scoped`,
    );
  }
  return { plural: known.resource, scope: scope ?? ownScope, group, version };
}

function namespaceOf(object: JsonObject, served: Served, details: RequestDetails): string | undefined {
  if (served.scope === 'Namespaced') {
    return details.namespace ?? textOf(object, 'namespace') ?? DEFAULT_NAMESPACE;
  }
  // API servers set request.namespace to the name of a Namespace.
  return served.group === '' && served.plural === 'namespaces' ? textOf(object, 'name') : undefined;
}

function textOf(object: JsonObject, field: 'name' | 'namespace'): string | undefined {
  const { metadata } = object;
  const value = isJsonObject(metadata) ? metadata[field] : undefined;
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function userInfo({ username, uid, groups, extra }: User): JsonObject {
  return {
    username,
    ...(uid === undefined ? {} : { uid }),
    groups: [...(groups ?? DEFAULT_GROUPS)],
    ...(extra === undefined ? {} : { extra }),
  };
}

function defaultOptions(operation: Operation): JsonObject | null {
  const kind = OPTIONS[operation];
  return kind === undefined ? null : { kind, apiVersion: 'meta.k8s.io/v1' };
}
