// What all requests work with, and what they have in common.
import { ApiError } from '../../cluster/index.ts';
import { groupResourceOf } from '../../resources/index.ts';
import type { KubernetesObject, ResourceType } from '../../resources/index.ts';
import type { ResourceDefinition } from '../resource-definition.ts';
import { forbidden } from './authorization/forbidden.ts';
import type { KindBehaviours } from './kind-behaviour.ts';
import type { AccessAttributes, Admission, Authorizer, UserInfo } from './request.ts';
import type { ResourceRegistry, ServedResource } from './resource-registry.ts';
import type { ObjectStore } from './store/object-store.ts';

/** The inside of an embedded cluster. */
export interface Machine {
  readonly store: ObjectStore;
  readonly registry: ResourceRegistry;
  readonly authorizer: Authorizer;
  readonly admission: Admission;
  readonly behaviours: KindBehaviours;
  /** Throws ApiError when a role or binding gives rights that the user does not have. */
  readonly checkEscalation: (
    user: UserInfo,
    definition: ResourceDefinition,
    object: KubernetesObject,
    old: KubernetesObject | undefined,
  ) => void;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** On whose behalf requests are made. */
export interface Caller {
  readonly user: UserInfo;
  /** Owner of fields when a request names none. */
  readonly fieldManager: string;
  /** Controllers of the cluster itself: they are not asked what they may do. */
  readonly isInternal?: boolean;
}

/** What is asked for, besides the type. */
export interface Target {
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
}

/** @throws ApiError 404 when the type is not served. */
export function servedResource(machine: Machine, type: ResourceType): ServedResource {
  const served = machine.registry.find(type.group, type.version, type.resource);
  if (served === undefined) {
    throw notServed();
  }
  return served;
}

/** What an API server answers for paths that it does not have. */
export function notServed(): ApiError {
  return new ApiError(404, 'NotFound', 'the server could not find the requested resource', {});
}

export function methodNotSupported(type: ResourceType, verb: string): ApiError {
  const message = `${verb} is not supported on resources of kind "${groupResourceOf(type)}"`;
  return new ApiError(405, 'MethodNotAllowed', message, {
    ...(type.group === '' ? {} : { group: type.group }),
    kind: type.resource,
  });
}

/** @throws ApiError 403 unless the caller may do this. */
export function authorize(machine: Machine, caller: Caller, verb: string, type: ResourceType, target: Target): void {
  if (caller.isInternal === true) {
    return;
  }
  const { name, subresource } = target;
  // A request for one namespace is one in that namespace: its roles count.
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
  const { allowed, reason } = machine.authorizer.authorize(attributes);
  if (!allowed) {
    throw forbidden(attributes, reason);
  }
}
