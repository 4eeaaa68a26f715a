// The context of requests, and the steps that all requests have in common.
import { ApiError } from '../../../cluster/index.ts';
import { groupResourceOf } from '../../../resources/index.ts';
import type { KubernetesObject, ResourceType } from '../../../resources/index.ts';
import { notServed } from '../../not-served.ts';
import type { ResourceDefinition } from '../../resource-definition.ts';
import { forbidden } from '../authorization/forbidden.ts';
import type { KindBehaviours } from '../kinds/kind-behaviour.ts';
import type { AccessAttributes, AdmissionChain, Authorizer, UserInfo } from '../request/request.ts';
import type { ResourceRegistry, RegisteredResource } from '../kinds/resource-registry.ts';
import type { CollectionStore } from '../store/collection-store.ts';

/** The parts of an embedded cluster that requests use. */
export interface ClusterContext {
  readonly store: CollectionStore;
  readonly registry: ResourceRegistry;
  readonly authorizer: Authorizer;
  readonly admission: AdmissionChain;
  readonly behaviours: KindBehaviours;
  /** Throws ApiError when a written role or binding grants rights that the user does not have. */
  readonly checkEscalation: (
    user: UserInfo,
    definition: ResourceDefinition,
    object: KubernetesObject,
    old: KubernetesObject | undefined,
  ) => void;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** The client of a request. */
export interface Caller {
  readonly user: UserInfo;
  /** The field manager of requests that name none. */
  readonly fieldManager: string;
  /** Whether the client is one of the cluster's own controllers, which need no authorization. Default: false. */
  readonly isInternal?: boolean;
}

/** The target of a request, besides its type. */
export interface RequestedObject {
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
}

/** @throws ApiError 404 when the type is not served. */
export function servedResource(context: ClusterContext, type: ResourceType): RegisteredResource {
  const served = context.registry.find(type.group, type.version, type.resource);
  if (served === undefined) {
    throw notServed();
  }
  return served;
}

export function methodNotSupported(type: ResourceType, verb: string): ApiError {
  const message = `${verb} is not supported on resources of kind "${groupResourceOf(type)}"`;
  return new ApiError(405, 'MethodNotAllowed', message, {
    ...(type.group === '' ? {} : { group: type.group }),
    kind: type.resource,
  });
}

/** @throws ApiError 403 when the caller does not have the right. */
export function authorize(
  context: ClusterContext,
  caller: Caller,
  verb: string,
  type: ResourceType,
  target: RequestedObject,
): void {
  if (caller.isInternal === true) {
    return;
  }
  const { name, subresource } = target;
  // A request for a Namespace is authorized in that namespace.
  const isNamespace = type.group === '' && type.resource === 'namespaces';
  const namespace = target.namespace ?? (isNamespace ? name : undefined);
  const attributes: AccessAttributes = {
    user: caller.user,
    verb,
    group: type.group,
    version: type.version,
    resource: type.resource,
    ...(subresource === undefined ? {} : { subresource }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
  };
  const { allowed, reason } = context.authorizer.authorize(attributes);
  if (!allowed) {
    throw forbidden(attributes, reason);
  }
}
