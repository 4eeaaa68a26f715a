import type { GroupVersionKind, GroupVersionResource } from '../../resources/index.ts';
import { textOf } from '../../values/index.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';

/** The fields of a request that policies read. Missing texts are empty. */
export interface CelRequest {
  /** In the version that the API server converted the object to for the policy. */
  readonly kind: GroupVersionKind;
  readonly resource: GroupVersionResource;
  readonly subResource: string;
  /** As in the client's request. */
  readonly requestKind: GroupVersionKind;
  readonly requestResource: GroupVersionResource;
  readonly name: string;
  readonly namespace: string;
  readonly operation: string;
  readonly object: JsonObject | undefined;
  readonly oldObject: JsonObject | undefined;
  /** The whole request, unchanged. */
  readonly json: JsonObject;
}

/** Reads the request of an AdmissionReview, with numbers of CEL. Missing fields are empty. */
export function admissionRequest(json: JsonObject): CelRequest {
  const kind = kindOf(json.kind);
  const resource = resourceOf(json.resource);
  return {
    kind,
    resource,
    subResource: textOf(json.subResource),
    requestKind: isJsonObject(json.requestKind) ? kindOf(json.requestKind) : kind,
    requestResource: isJsonObject(json.requestResource) ? resourceOf(json.requestResource) : resource,
    name: textOf(json.name),
    namespace: textOf(json.namespace),
    operation: textOf(json.operation),
    object: isJsonObject(json.object) ? json.object : undefined,
    oldObject: isJsonObject(json.oldObject) ? json.oldObject : undefined,
    json,
  };
}

/** The name of a request's object for messages; a name to be generated is not known yet. */
export function objectName({ name, object }: CelRequest): string {
  const metadata = isJsonObject(object?.metadata) ? object.metadata : {};
  return name || textOf(metadata.name) || textOf(metadata.generateName) || 'Unknown';
}

/** Whether the request is for a Namespace, which counts as cluster-scoped even if `namespace` is set. */
export function isForNamespace({ requestKind }: CelRequest): boolean {
  return requestKind.kind === 'Namespace' && requestKind.version === 'v1' && requestKind.group === '';
}

function kindOf(value: JsonValue | undefined): GroupVersionKind {
  const { group, version, kind } = isJsonObject(value) ? value : {};
  return { group: textOf(group), version: textOf(version), kind: textOf(kind) };
}

function resourceOf(value: JsonValue | undefined): GroupVersionResource {
  const { group, version, resource } = isJsonObject(value) ? value : {};
  return { group: textOf(group), version: textOf(version), resource: textOf(resource) };
}
