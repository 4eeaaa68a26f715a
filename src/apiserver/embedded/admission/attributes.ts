import { apiVersionOf, groupVersionOf } from '../../../resources/index.ts';
import type { KubernetesObject } from '../../../resources/index.ts';
import type { ResourceDefinition } from '../../resource-definition.ts';
import type { AdmissionRequest } from '../request/request.ts';

/** A GroupVersionKind, as in AdmissionReviews. */
export interface KindId {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** A GroupVersionResource, as in AdmissionReviews. */
export interface ResourceId {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
}

/** The attributes of a request that rules match, and that AdmissionReviews contain. */
export interface RequestAttributes {
  readonly request: AdmissionRequest;
  readonly kind: KindId;
  readonly resource: ResourceId;
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

export function attributesOf(request: AdmissionRequest): RequestAttributes {
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

export function kindOf({ group, version, kind }: ResourceDefinition): KindId {
  return { group, version, kind };
}

export function resourceOf({ group, version, resource }: ResourceDefinition): ResourceId {
  return { group, version, resource };
}

/** The kind of the object, because subresources may have another kind than the resource: `Scale`, `Eviction`. */
function kindOfObject(object: KubernetesObject | null, definition: ResourceDefinition): KindId {
  return object === null ? kindOf(definition) : { ...groupVersionOf(object.apiVersion), kind: object.kind };
}

/** The object with another apiVersion and kind, and the same fields. */
export function renamed(object: KubernetesObject, kind: KindId): KubernetesObject {
  const apiVersion = apiVersionOf(kind);
  return object.apiVersion === apiVersion && object.kind === kind.kind
    ? object
    : { ...object, apiVersion, kind: kind.kind };
}
