// Resource requests: translates HTTP to the methods of the Cluster port, and back.
import type { IncomingMessage } from 'node:http';
import { quote } from '../../go/index.ts';
import { ApiError } from '../../cluster/index.ts';
import type { Cluster, Patch, WatchEvent, WriteOptions } from '../../cluster/index.ts';
import { apiVersionOf, groupVersionOf, isJsonObject } from '../../resources/index.ts';
import type { JsonObject, JsonValue, KubernetesObject, ObjectKey } from '../../resources/index.ts';
import type { ClusterState } from '../embedded/request/request.ts';
import { notServed } from '../not-served.ts';
import type { ResourceDefinition } from '../resource-definition.ts';
import type { GatewayAnswer } from './answer.ts';
import { duplicateFields } from './duplicate-fields.ts';
import { BodySyntaxError, decode, decodeObject, mediaType, objectFormat, readBody } from './request-body.ts';
import { deleteOptions, listOptions, selectorsOf, watchOptions, writeOptions } from './request-options.ts';
import type { ParsedWriteOptions } from './request-options.ts';
import type { ResourceTarget } from './request-target.ts';
import { subresourcesOf, verbsOf } from '../subresources.ts';
import { formattedList, formattedObject } from './table.ts';
import type { ResponseForm } from './table.ts';

/** A request for a served resource. */
export interface ResourceRequest {
  readonly request: IncomingMessage;
  readonly target: ResourceTarget;
  readonly query: URLSearchParams;
  readonly definition: ResourceDefinition;
  /** The cluster as the user of the request. */
  readonly cluster: Cluster;
  /** The state before the request, on which some responses depend. */
  readonly state: ClusterState;
  readonly form: ResponseForm;
  readonly signal: AbortSignal;
  readonly onWarning: (text: string) => void;
  /** Milliseconds since 1970. */
  readonly now: number;
}

export function methodNotAllowed(): ApiError {
  const message = 'the server does not allow this method on the requested resource';
  return new ApiError(405, 'MethodNotAllowed', message, {});
}

/**
 * Checks that the resource has the subresource and supports the verb.
 * @throws ApiError 404 or 405.
 */
export function checkServed(target: ResourceTarget, definition: ResourceDefinition, verb: string | undefined): void {
  const { namespace, name, subresource } = target;
  const isNamespace = definition.resource === 'namespaces' && definition.group === '';
  if (namespace !== undefined && !definition.namespaced && !isNamespace) {
    throw notServed();
  }
  if (definition.namespaced && namespace === undefined && (name !== undefined || verb === 'create')) {
    throw name === undefined ? methodNotAllowed() : notServed();
  }
  const found = subresource === undefined ? undefined : subresourcesOf(definition).find((s) => s.name === subresource);
  if (subresource !== undefined && found === undefined) {
    throw notServed();
  }
  const verbs = found?.verbs ?? verbsOf(definition);
  const isPostToItem = verb === 'create' && name !== undefined && subresource === undefined;
  const isItemVerbOfCollection = name === undefined && (verb === 'update' || verb === 'patch');
  if (verb === undefined || !verbs.includes(verb) || isPostToItem || isItemVerbOfCollection) {
    throw methodNotAllowed();
  }
}

/** Responds to all requests except watches. */
export async function answerResource(call: ResourceRequest, verb: string): Promise<GatewayAnswer> {
  switch (verb) {
    case 'get':
      return await get(call);
    case 'list':
      return await list(call);
    case 'create':
      return await create(call);
    case 'update':
      return await update(call);
    case 'patch':
      return await patch(call);
    case 'delete':
      return await remove(call);
    case 'deletecollection':
      return await removeCollection(call);
    default:
      throw methodNotAllowed();
  }
}

/** Starts a watch. */
export function watchResource({
  cluster,
  definition,
  target,
  query,
  signal,
}: ResourceRequest): AsyncIterable<WatchEvent> {
  return cluster.watch(definition, { ...inNamespace(target), ...watchOptions(query), signal });
}

async function get(call: ResourceRequest): Promise<GatewayAnswer> {
  const { cluster, definition, target, query, signal } = call;
  const resourceVersion = query.get('resourceVersion') ?? '';
  const object = await cluster.get(definition, keyOfTarget(target), {
    signal,
    ...ofSubresource(target),
    ...(resourceVersion === '' ? {} : { resourceVersion }),
  });
  return answerObject(call, 200, object);
}

async function list(call: ResourceRequest): Promise<GatewayAnswer> {
  const { cluster, definition, target, query, signal, form, now } = call;
  const found = await cluster.list(definition, { ...inNamespace(target), ...listOptions(query), signal });
  return { status: 200, body: formattedList(form, definition, found, now) };
}

async function create(call: ResourceRequest): Promise<GatewayAnswer> {
  const { cluster, definition, target } = call;
  const options = writeOptions(call.query, 'CreateOptions', call.request.headers['user-agent']);
  const object = await objectOfBody(call, options.fieldValidation);
  if (target.name !== undefined && object.metadata.name !== target.name) {
    throw nameMismatch(String(object.metadata.name), target.name);
  }
  const created = await cluster.create(definition, object, {
    ...clusterOptions(call, options),
    ...ofSubresource(target),
  });
  return answerObject(call, 201, created);
}

async function update(call: ResourceRequest): Promise<GatewayAnswer> {
  const { cluster, definition, target } = call;
  const options = writeOptions(call.query, 'UpdateOptions', call.request.headers['user-agent']);
  const object = await objectOfBody(call, options.fieldValidation);
  const name = target.name ?? '';
  const { metadata } = object;
  if (metadata.name !== undefined && metadata.name !== '' && metadata.name !== name) {
    throw nameMismatch(metadata.name, name);
  }
  const named = { ...object, metadata: { ...metadata, name } };
  const updated = await cluster.update(definition, named, {
    ...clusterOptions(call, options),
    ...ofSubresource(target),
  });
  return answerObject(call, 200, updated);
}

function nameMismatch(inObject: string, inUrl: string): ApiError {
  return ApiError.badRequest(`the name of the object (${inObject}) does not match the name on the URL (${inUrl})`);
}

const PATCH_TYPES: ReadonlyMap<string, Patch['type']> = new Map([
  ['application/json-patch+json', 'json'],
  ['application/merge-patch+json', 'merge'],
  ['application/strategic-merge-patch+json', 'strategic'],
  ['application/apply-patch+yaml', 'apply'],
]);

async function patch(call: ResourceRequest): Promise<GatewayAnswer> {
  const { cluster, definition, target, request, query, state } = call;
  const type = PATCH_TYPES.get(mediaType(request.headers['content-type']));
  const isStrategicCustom = type === 'strategic' && definition.origin === 'custom';
  if (type === undefined || isStrategicCustom) {
    const accepted = [...PATCH_TYPES.keys()].filter(
      (name) => definition.origin === 'builtin' || !name.includes('strategic'),
    );
    throw new ApiError(
      415,
      'UnsupportedMediaType',
      `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
    );
  }
  const options = writeOptions(query, 'PatchOptions', request.headers['user-agent'], type);
  const decoded = decodePatch(type, await readBody(request), options.force);
  if (decoded.type === 'apply') {
    checkAppliedName(decoded.body, target);
  }
  const key = keyOfTarget(target);
  const existed = state.get(definition, key.namespace, key.name) !== undefined;
  const patched = await cluster.patch(definition, key, decoded, {
    ...clusterOptions(call, options),
    ...ofSubresource(target),
  });
  return answerObject(call, existed ? 200 : 201, patched);
}

function decodePatch(type: Patch['type'], body: Buffer, force: boolean | undefined): Patch {
  let value: JsonValue;
  try {
    value = decode(body, type === 'apply' ? 'yaml' : 'json');
  } catch (error) {
    if (!(error instanceof BodySyntaxError)) {
      throw error;
    }
    const what = type === 'apply' ? 'error decoding YAML: error converting YAML to JSON' : 'error decoding patch';
    throw ApiError.badRequest(`${what}: ${error.message}`);
  }
  if (type === 'json') {
    if (!Array.isArray(value)) {
      throw unmarshalError('error decoding patch: json', value, '[]handlers.jsonPatchOp');
    }
    return { type, body: value };
  }
  if (!isJsonObject(value)) {
    const start =
      type === 'apply'
        ? 'error decoding YAML: error unmarshaling JSON: while decoding JSON: json'
        : 'error decoding patch: json';
    throw unmarshalError(start, value, 'map[string]interface {}');
  }
  return type === 'apply' ? { type, body: value, ...(force === undefined ? {} : { force }) } : { type, body: value };
}

function unmarshalError(start: string, value: JsonValue, goType: string): ApiError {
  const types: Record<string, string> = { boolean: 'bool', object: Array.isArray(value) ? 'array' : 'object' };
  return ApiError.badRequest(
    `${start}: cannot unmarshal ${types[typeof value] ?? typeof value} into Go value of type ${goType}`,
  );
}

function checkAppliedName(body: JsonObject, { name = '' }: ResourceTarget): void {
  const metadata = isJsonObject(body['metadata']) ? body['metadata'] : {};
  const applied = metadata['name'];
  if (typeof applied === 'string' && applied !== '' && applied !== name) {
    throw nameMismatch(applied, name);
  }
}

async function remove(call: ResourceRequest): Promise<GatewayAnswer> {
  const { cluster, definition, target, signal, state, onWarning } = call;
  const options = deleteOptions(call.query, await optionsOfBody(call));
  const key = keyOfTarget(target);
  const before = state.get(definition, key.namespace, key.name);
  const remaining = await cluster.delete(definition, key, { ...options, signal, onWarning });
  if (remaining !== undefined) {
    return answerObject(call, 200, remaining);
  }
  const { group, resource } = definition;
  const uid = before?.metadata.uid;
  const details = {
    name: key.name,
    ...(group === '' ? {} : { group }),
    kind: resource,
    ...(uid === undefined ? {} : { uid }),
  };
  return { status: 200, body: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details } };
}

async function removeCollection(call: ResourceRequest): Promise<GatewayAnswer> {
  const { cluster, definition, target, query, signal, onWarning } = call;
  const options = deleteOptions(query, await optionsOfBody(call));
  await cluster.deleteCollection(definition, {
    ...options,
    ...inNamespace(target),
    ...selectorsOf(query),
    signal,
    onWarning,
  });
  return { status: 200, body: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' } };
}

async function optionsOfBody({ request }: ResourceRequest): Promise<JsonObject | undefined> {
  const body = await readBody(request);
  return body.length === 0
    ? undefined
    : decodeObject(body, objectFormat(request.headers['content-type']), 'DeleteOptions');
}

/** Reads the object in the body. Its kind and namespace must be those of the URL. */
async function objectOfBody(
  { request, definition, target, onWarning }: ResourceRequest,
  fieldValidation: WriteOptions['fieldValidation'],
): Promise<KubernetesObject> {
  const expected = expectedType(definition, target.subresource);
  const format = objectFormat(request.headers['content-type']);
  const body = await readBody(request);
  const object = decodeObject(body, format, expected.kind);
  if (format === 'json' && fieldValidation !== 'Ignore') {
    const duplicates = duplicateFields(body.toString('utf8')).map((path) => `duplicate field ${quote(path)}`);
    if (fieldValidation === 'Strict' && duplicates.length > 0) {
      const { version } = groupVersionOf(expected.apiVersion);
      throw ApiError.badRequest(
        `${expected.kind} in version "${version}" cannot be handled as a ${expected.kind}: strict decoding error: ${duplicates.join(', ')}`,
      );
    }
    duplicates.forEach(onWarning);
  }
  const { apiVersion = expected.apiVersion, kind = expected.kind } = object;
  if (apiVersion !== expected.apiVersion || kind !== expected.kind) {
    throw ApiError.badRequest(
      `${text(kind)} in version ${quote(groupVersionOf(text(apiVersion)).version)} cannot be handled as a ${expected.kind}: expected ${expected.apiVersion} ${expected.kind}, got ${text(apiVersion)} ${text(kind)}`,
    );
  }
  const metadata = object['metadata'] ?? {};
  if (!isJsonObject(metadata)) {
    const what = `${expected.kind} in version ${JSON.stringify(definition.version)} cannot be handled as a ${expected.kind}`;
    throw unmarshalError(`${what}: json`, metadata, 'v1.ObjectMeta');
  }
  return {
    ...object,
    apiVersion: expected.apiVersion,
    kind: expected.kind,
    metadata: completedMetadata(metadata, definition, target),
  };
}

function text(value: JsonValue): string {
  return typeof value === 'string' ? value.slice(0, 253) : JSON.stringify(value).slice(0, 253);
}

function completedMetadata(metadata: JsonObject, definition: ResourceDefinition, target: ResourceTarget): JsonObject {
  const { namespace, name, subresource } = target;
  const isOfItem = subresource !== undefined && name !== undefined;
  const named = isOfItem && (metadata['name'] ?? '') === '' ? { ...metadata, name } : metadata;
  if (!definition.namespaced || namespace === undefined) {
    return named;
  }
  const own = metadata['namespace'] ?? '';
  if (own !== '' && own !== namespace) {
    throw ApiError.badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  return { ...named, namespace };
}

/** The kind that a URL's body must have. */
function expectedType(
  definition: ResourceDefinition,
  subresource: string | undefined,
): { apiVersion: string; kind: string } {
  const found = subresourcesOf(definition).find(({ name }) => name === subresource);
  const type = found?.kind ?? definition;
  return { apiVersion: apiVersionOf(type), kind: type.kind };
}

function answerObject({ form, now }: ResourceRequest, status: number, object: KubernetesObject): GatewayAnswer {
  return { status, body: formattedObject(form, object, now) };
}

function keyOfTarget({ namespace, name = '' }: ResourceTarget): ObjectKey {
  return namespace === undefined ? { name } : { namespace, name };
}

function inNamespace({ namespace }: ResourceTarget): { readonly namespace?: string } {
  return namespace === undefined ? {} : { namespace };
}

function ofSubresource({ subresource }: ResourceTarget): { readonly subresource?: string } {
  return subresource === undefined ? {} : { subresource };
}

function clusterOptions({ signal, onWarning }: ResourceRequest, options: ParsedWriteOptions): WriteOptions {
  const { dryRun, fieldManager, fieldValidation } = options;
  return {
    ...(dryRun === undefined ? {} : { dryRun }),
    ...(fieldManager === undefined ? {} : { fieldManager }),
    ...(fieldValidation === undefined ? {} : { fieldValidation }),
    signal,
    onWarning,
  };
}
