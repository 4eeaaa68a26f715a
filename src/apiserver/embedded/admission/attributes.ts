import { apiVersionOf, groupVersionOf } from '../../../resources/index.ts';
import type { GroupVersionKind, GroupVersionResource, KubernetesObject } from '../../../resources/index.ts';
import type { ResourceDefinition } from '../../resource-definition.ts';
import type { AdmissionAttributes } from '../request/request.ts';

/** The attributes of a request that rules match, and that AdmissionReviews contain. */
export interface RequestAttributes {
  readonly request: AdmissionAttributes;
  readonly kind: GroupVersionKind;
  readonly resource: GroupVersionResource;
  readonly subresource: string;
  /** Empty for cluster-scoped objects, except Namespaces: these are in the namespace of their name. */
  readonly namespace: string;
  readonly name: string;
}

/** Kinds for which no webhook is called, so that a broken webhook configuration can be repaired. */
const EXEMPT_KINDS: ReadonlySet<string> = new Set([
  'ValidatingWebhookConfiguration',
  'MutatingWebhookConfiguration',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
  'MutatingAdmissionPolicy',
  'MutatingAdmissionPolicyBinding',
]);

export function attributesOf(request: AdmissionAttributes): RequestAttributes {
  const { definition, subresource = '', object, oldObject } = request;
  const name = request.name || object?.metadata.name || '';
  return {
    request,
    kind: subresource === '' ? kindOf(definition) : kindOfObject(object ?? oldObject, definition),
    resource: resourceOf(definition),
    subresource,
    namespace: isNamespaces(definition) ? name : (request.namespace ?? ''),
    name,
  };
}

export function isExempt({ kind }: RequestAttributes): boolean {
  return kind.group === 'admissionregistration.k8s.io' && EXEMPT_KINDS.has(kind.kind);
}

export function isNamespaces({ group, resource }: { readonly group: string; readonly resource: string }): boolean {
  return group === '' && resource === 'namespaces';
}

export function kindOf({ group, version, kind }: ResourceDefinition): GroupVersionKind {
  return { group, version, kind };
}

export function resourceOf({ group, version, resource }: ResourceDefinition): GroupVersionResource {
  return { group, version, resource };
}

/** The kind of the object, because subresources may have another kind than the resource: `Scale`, `Eviction`. */
function kindOfObject(object: KubernetesObject | null, definition: ResourceDefinition): GroupVersionKind {
  return object === null ? kindOf(definition) : { ...groupVersionOf(object.apiVersion), kind: object.kind };
}

/** The object with another apiVersion and kind, and the same fields. */
export function renamed(object: KubernetesObject, kind: GroupVersionKind): KubernetesObject {
  const apiVersion = apiVersionOf(kind);
  return object.apiVersion === apiVersion && object.kind === kind.kind
    ? object
    : { ...object, apiVersion, kind: kind.kind };
}
