import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';

/** A read of one object. */
export interface GetRequest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  /** Undefined for cluster-scoped kinds. */
  readonly namespace?: string;
  /** Whether a cached answer, some seconds old, is not acceptable. */
  readonly disableCache: boolean;
}

/** A read of all objects of a kind, in one namespace or in all. */
export interface ListRequest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/** Reads a cluster for context-aware policies. Runs in a thread that may wait, and does not know which policy reads. */
export interface KubernetesReader {
  /** Undefined when the object does not exist. */
  get(request: GetRequest, signal?: AbortSignal): Promise<JsonObject | undefined>;
  /** A List: `{items: […]}` with its kind and metadata. */
  list(request: ListRequest, signal?: AbortSignal): Promise<JsonObject>;
  /** The status of a SubjectAccessReview. `review` is the payload's `subject_access_review`. */
  canI(review: JsonObject, disableCache: boolean, signal?: AbortSignal): Promise<JsonObject>;
  /** The name of a kind in paths and in Rego's `data.kubernetes`, such as `services`. */
  pluralName(apiVersion: string, kind: string, signal?: AbortSignal): Promise<string>;
}

/** The error of every read without a cluster. */
export const NO_CLUSTER_MESSAGE =
  'no cluster is configured: this policy reads Kubernetes resources; start the server with --kubeconfig FILE or --in-cluster';

/** Answers a `kubernetes/…` capability. `operation` is the part after the namespace. */
export async function answerKubernetes(
  reader: KubernetesReader,
  operation: string,
  payload: JsonValue,
  signal?: AbortSignal,
): Promise<JsonValue> {
  const fields = payloadFields(payload);
  switch (operation) {
    case 'get_resource':
      return getResource(reader, fields, signal);
    case 'list_resources_by_namespace':
      return list(reader, fields, { namespace: textIn(fields, 'namespace') }, signal);
    case 'list_resources_all':
      return list(reader, fields, {}, signal);
    case 'can_i': {
      const review = fields.subject_access_review;
      if (!isJsonObject(review)) {
        throw new Error('subject_access_review: expected an object');
      }
      return reader.canI(review, fields.disable_cache === true, signal);
    }
    case 'get_resource_plural_name':
      return reader.pluralName(textIn(fields, 'api_version'), textIn(fields, 'kind'), signal);
    default:
      throw new Error(`unknown operation: kubernetes/${operation}`);
  }
}

async function getResource(reader: KubernetesReader, fields: JsonObject, signal?: AbortSignal): Promise<JsonValue> {
  const namespace = optionalText(fields, 'namespace');
  const request: GetRequest = {
    apiVersion: textIn(fields, 'api_version'),
    kind: textIn(fields, 'kind'),
    name: textIn(fields, 'name'),
    ...(namespace === undefined ? {} : { namespace }),
    disableCache: fields.disable_cache === true,
  };
  const found = await reader.get(request, signal);
  if (found === undefined) {
    // The message of Kubewarden, which policies may check in recorded sessions.
    const where = `inside of namespace '${namespace ?? 'None'}'`;
    throw new Error(`Cannot find ${request.apiVersion}/${request.kind} named '${request.name}' ${where}`);
  }
  return masked(found, fields.field_masks);
}

async function list(
  reader: KubernetesReader,
  fields: JsonObject,
  scope: { readonly namespace?: string },
  signal?: AbortSignal,
): Promise<JsonValue> {
  const labelSelector = optionalText(fields, 'label_selector');
  const fieldSelector = optionalText(fields, 'field_selector');
  const found = await reader.list(
    {
      apiVersion: textIn(fields, 'api_version'),
      kind: textIn(fields, 'kind'),
      ...scope,
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
    },
    signal,
  );
  const items = Array.isArray(found.items) ? found.items : [];
  return { ...found, items: items.map((item) => masked(item, fields.field_masks)) };
}

/** Children by key; a node without children keeps everything below it. */
type MaskNode = Map<string, MaskNode>;

/**
 * Keeps only the fields of the masks: dotted paths through objects and lists (`spec.containers.image`). Without masks,
 * everything is kept.
 */
export function masked(value: JsonValue, masks: JsonValue | undefined): JsonValue {
  if (masks === undefined || masks === null) {
    return value;
  }
  if (!Array.isArray(masks) || !masks.every((mask) => typeof mask === 'string')) {
    throw new Error('field_masks: expected a list of dotted paths');
  }
  const root: MaskNode = new Map();
  for (const mask of masks) {
    let node = root;
    for (const part of mask.split('.')) {
      const child: MaskNode = node.get(part) ?? new Map();
      node.set(part, child);
      node = child;
    }
  }
  return prune(value, root);
}

function prune(value: JsonValue, node: MaskNode): JsonValue {
  if (node.size === 0 || typeof value !== 'object' || value === null) {
    return value;
  }
  if (Array.isArray(value)) {
    return value.map((element) => prune(element, node));
  }
  const kept = Object.keys(value).flatMap((key) => {
    const child = node.get(key);
    return child === undefined ? [] : [[key, prune(value[key] ?? null, child)] as const];
  });
  return Object.fromEntries(kept);
}

/** The payload of a capability that expects an object. */
export function payloadFields(payload: JsonValue): JsonObject {
  if (!isJsonObject(payload)) {
    throw new Error('the payload: expected an object');
  }
  return payload;
}

function textIn(fields: JsonObject, key: string): string {
  const value = fields[key];
  if (typeof value !== 'string') {
    throw new Error(`${key}: expected text`);
  }
  return value;
}

function optionalText(fields: JsonObject, key: string): string | undefined {
  return fields[key] === undefined || fields[key] === null ? undefined : textIn(fields, key);
}
