import { apiVersionOf, groupVersionOf } from '../../../resources/index.ts';
import type { KubernetesObject } from '../../../resources/index.ts';
import type { ResourceDefinition } from '../../resource-definition.ts';
import type { AdmissionRequest } from '../request.ts';

/** A kind as AdmissionReviews name it. */
export interface KindId {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** A resource as AdmissionReviews name it. */
export interface ResourceId {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
}

/** What a request is about, as webhooks and their rules see it. */
export interface RequestAttributes {
  readonly request: AdmissionRequest;
  readonly kind: KindId;
  readonly resource: ResourceId;
  readonly subresource: string;
  /** Empty for what is in no namespace; a namespace is in itself. */
  readonly namespace: string;
  readonly name: string;
}

/** Kinds that no webhook is ever asked about: it could not be repaired otherwise. */
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

/** Subresources may have a kind of their own: `Scale`, `Eviction`. */
function kindOfObject(object: KubernetesObject | null, definition: ResourceDefinition): KindId {
  return object === null ? kindOf(definition) : { ...groupVersionOf(object.apiVersion), kind: object.kind };
}

/** An object as another version of its kind has it, where versions differ by their names only. */
export function renamed(object: KubernetesObject, kind: KindId): KubernetesObject {
  const apiVersion = apiVersionOf(kind);
  return object.apiVersion === apiVersion && object.kind === kind.kind
    ? object
    : { ...object, apiVersion, kind: kind.kind };
}
