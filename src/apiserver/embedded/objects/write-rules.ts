// Rules for writes by kind and subresource (k8s.io/apiserver, pkg/registry/rest, and the strategies in k8s.io/kubernetes).
import { ApiError } from '../../../cluster/index.ts';
import type { JsonObject, KubernetesObject, MutableObject, ObjectKey } from '../../../resources/index.ts';
import { isSameJson } from '../../../resources/structured-merge/index.ts';
import type { ResourceDefinition } from '../../resource-definition.ts';
import { notServed } from '../../not-served.ts';
import type { RegisteredResource } from '../kinds/resource-registry.ts';
import { thaw } from '../store/thaw.ts';
import { setOwn } from '../../../values/index.ts';

/** Resources whose objects a PUT may create (`AllowCreateOnUpdate`). */
export const CREATED_BY_UPDATE: ReadonlySet<string> = new Set([
  'clusterrolebindings.rbac.authorization.k8s.io',
  'clusterroles.rbac.authorization.k8s.io',
  'endpoints',
  'events',
  'leases.coordination.k8s.io',
  'limitranges',
  'rolebindings.rbac.authorization.k8s.io',
  'roles.rbac.authorization.k8s.io',
  'services',
]);

/** Builtin resources whose PUT needs a resourceVersion (no `AllowUnconditionalUpdate`). */
export const VERSION_REQUIRED: ReadonlySet<string> = new Set([
  'customresourcedefinitions.apiextensions.k8s.io',
  'leases.coordination.k8s.io',
  'mutatingwebhookconfigurations.admissionregistration.k8s.io',
  'poddisruptionbudgets.policy',
  'validatingadmissionpolicies.admissionregistration.k8s.io',
  'validatingadmissionpolicybindings.admissionregistration.k8s.io',
  'validatingwebhookconfigurations.admissionregistration.k8s.io',
]);

/** Adds an empty status to a new object of a builtin kind, for which defaults may add fields. */
export function initializeStatus({ hasStatus, kind, origin }: ResourceDefinition, object: MutableObject): void {
  if (hasStatus && origin === 'builtin' && kind !== 'CustomResourceDefinition') {
    object['status'] ??= {};
  }
}

/** Removes defaults that API servers set after admission: the initial status, and the finalizer of a Namespace. */
export function hideInitialState(
  { definition: { hasStatus, origin, kind }, collection }: RegisteredResource,
  object: MutableObject,
  before: { readonly status?: unknown; readonly spec: { readonly finalizers?: unknown } },
): void {
  if (collection === 'namespaces') {
    if (before.spec.finalizers === undefined) {
      delete (object['spec'] as { finalizers?: unknown }).finalizers;
    }
  } else if (hasStatus && origin === 'builtin' && kind !== 'CustomResourceDefinition') {
    object['status'] = before.status;
  }
}

/** Removes the status of a new object. Only clients that create Nodes may set it. */
export function resetStatus({ hasStatus, kind, origin }: ResourceDefinition, object: MutableObject): void {
  if (hasStatus && (origin === 'custom' || kind !== 'Node')) {
    delete object['status'];
  }
}

export function requireSubresource(
  { definition: { hasStatus, scale }, collection }: RegisteredResource,
  name: string | undefined,
): void {
  const exists =
    name === undefined ||
    (name === 'status' && hasStatus) ||
    (name === 'scale' && scale !== undefined) ||
    (name === 'finalize' && collection === 'namespaces');
  if (!exists) {
    throw notServed();
  }
}

export function requireName(key: ObjectKey, namespace: string | undefined, next: MutableObject): void {
  const { name = '', namespace: objectNamespace } = next.metadata as { name?: string; namespace?: string };
  if (name !== key.name) {
    throw ApiError.badRequest(`the name of the object (${name}) does not match the name on the URL (${key.name})`);
  }
  if (namespace !== undefined && (objectNamespace ?? namespace) !== namespace) {
    throw ApiError.badRequest(
      `the namespace of the object (${objectNamespace}) does not match the namespace on the request (${namespace})`,
    );
  }
}

/** Restores fields that the request must not change: of metadata, and of the main resource or its status. */
export function restoreReadOnlyFields(
  served: RegisteredResource,
  live: KubernetesObject,
  next: MutableObject,
  subresource: string | undefined,
): void {
  const { hasStatus, origin } = served.definition;
  const isStatus = subresource === 'status' || subresource === 'finalize';
  if (isStatus) {
    const part = subresource === 'finalize' ? 'spec' : 'status';
    for (const field of Object.keys(next)) {
      if (field !== part && field !== 'metadata') {
        delete next[field];
      }
    }
    for (const [field, value] of Object.entries(live)) {
      if (field !== part && field !== 'metadata') {
        setOwn(next, field, thaw(value));
      }
    }
    if (origin === 'custom') {
      const managedFields = next.metadata['managedFields'] ?? live.metadata.managedFields;
      next.metadata = { ...thaw(live.metadata), ...(managedFields === undefined ? {} : { managedFields }) };
    }
  } else if (hasStatus) {
    delete next['status'];
    if (live['status'] !== undefined) {
      next['status'] = thaw(live['status']);
    }
  }
  const { metadata } = next;
  const kept = [
    'uid',
    'creationTimestamp',
    'deletionTimestamp',
    'deletionGracePeriodSeconds',
    'generation',
    'resourceVersion',
    'namespace',
    'selfLink',
  ];
  for (const field of kept) {
    const value = (live.metadata as Readonly<Record<string, unknown>>)[field];
    if (value === undefined) {
      delete metadata[field];
    } else {
      metadata[field] = value;
    }
  }
}

export function countsGenerations({ definition: { origin, countsGenerations } }: RegisteredResource): boolean {
  return countsGenerations ?? origin === 'custom';
}

export function countGeneration(served: RegisteredResource, live: KubernetesObject, next: MutableObject): void {
  if (!countsGenerations(served)) {
    return;
  }
  const ignored = served.definition.hasStatus ? ['metadata', 'status'] : ['metadata'];
  if (!isSameJson(without(live, ignored), without(next, ignored))) {
    next.metadata['generation'] = (live.metadata.generation ?? 0) + 1;
  }
}

function without(object: object, fields: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([field]) => !fields.includes(field)));
}

/** Whether an update removed the last finalizer of a terminating object. */
export function isDeletable(object: KubernetesObject, live: KubernetesObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = live.metadata;
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds > 0) {
    return false;
  }
  return (object.metadata.finalizers ?? []).length === 0 && !hasNamespaceFinalizer(object);
}

/** Whether a Namespace has finalizers in its spec. */
function hasNamespaceFinalizer({ apiVersion, kind, spec }: KubernetesObject): boolean {
  if (apiVersion !== 'v1' || kind !== 'Namespace') {
    return false;
  }
  const { finalizers } = (spec ?? {}) as { finalizers?: readonly string[] };
  return (finalizers ?? []).length > 0;
}
