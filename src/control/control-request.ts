// Parses requests to a control port. The sender may be a controller of another version, or anything else with a
// certificate.
import { RequestRefusal } from '../https/index.ts';
import { isJsonObject, own, POLICY_KINDS } from '../resources/index.ts';
import type { JsonObject } from '../resources/index.ts';
import type { PrevalidationRequest } from './replica-protocol.ts';
import { isNestedDeeper, parseJson } from '../values/index.ts';

/** Nesting of brackets: far more than policies have, far less than recursion allows. */
export const MAX_REQUEST_DEPTH = 128;
/** Kubernetes' limit for names (DNS subdomain). Characters. */
const MAX_NAME_LENGTH = 253;
/** The policy kinds, and whether they are namespaced. */
const KINDS: ReadonlyMap<string, boolean> = new Map(POLICY_KINDS.map(({ kind, namespaced }) => [kind, namespaced]));

/** The route of a request. */
export type ControlTarget =
  | { readonly route: 'stream' }
  | { readonly route: 'prevalidate' }
  | { readonly route: 'modules'; readonly digest: string };

/**
 * The route of a method and path.
 * @throws RequestRefusal 400, 404, 405
 */
export function parseControlTarget(method: string | undefined, url: string | undefined): ControlTarget {
  const [path = ''] = (url ?? '').split('?', 1);
  const prefix = '/modules/';
  const target = path.startsWith(prefix) ? prefix : path;
  const allowed = METHODS.get(target);
  if (allowed === undefined) {
    throw new RequestRefusal(404, 'no such path: expected /stream, /prevalidate or /modules/{digest}');
  }
  if (method !== allowed) {
    throw new RequestRefusal(405, `expected ${allowed}, got ${method ?? 'no method'}`);
  }
  if (target === '/stream' || target === '/prevalidate') {
    return { route: target === '/stream' ? 'stream' : 'prevalidate' };
  }
  const digest = path.slice(prefix.length);
  if (!/^sha256:[0-9a-f]{64}$/.test(digest)) {
    throw new RequestRefusal(400, 'expected a digest: sha256: and 64 lower-case hexadecimal digits');
  }
  return { route: 'modules', digest };
}

const METHODS: ReadonlyMap<string, string> = new Map([
  ['/stream', 'GET'],
  ['/prevalidate', 'POST'],
  ['/modules/', 'GET'],
]);

/**
 * Parses the body of POST /prevalidate: a known kind, a name, and a spec with modules. Pre-validation checks the rest
 * of the spec.
 * @throws RequestRefusal 400 for invalid JSON, 422 for JSON of another shape
 */
export function parsePrevalidation(body: Uint8Array): PrevalidationRequest {
  const value = decodeJson(body);
  const request = objectAt(value, 'the body');
  const kind = textAt(request, 'kind', MAX_NAME_LENGTH);
  const isNamespaced = KINDS.get(kind);
  if (isNamespaced === undefined) {
    throw new RequestRefusal(422, `kind: expected one of ${[...KINDS.keys()].join(', ')}`);
  }
  const metadata = objectAt(own(request, 'metadata'), 'metadata');
  const name = textAt(metadata, 'name', MAX_NAME_LENGTH, 'metadata.');
  if (isNamespaced !== (own(metadata, 'namespace') !== undefined)) {
    throw new RequestRefusal(422, `metadata.namespace: expected ${isNamespaced ? 'one' : 'none'} for a ${kind}`);
  }
  const namespace = isNamespaced ? textAt(metadata, 'namespace', MAX_NAME_LENGTH, 'metadata.') : undefined;
  const spec = objectAt(own(request, 'spec'), 'spec');
  checkModules(spec, kind);
  const serving = own(request, 'serving') === undefined ? undefined : textAt(request, 'serving', MAX_NAME_LENGTH);
  return {
    kind,
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
    // Fields are checked where they are used.
    spec: spec as unknown as PrevalidationRequest['spec'],
    ...(serving === undefined ? {} : { serving }),
  };
}

function checkModules(spec: JsonObject, kind: string): void {
  if (!kind.endsWith('Group')) {
    if (own(spec, 'policies') !== undefined) {
      throw new RequestRefusal(422, `spec.policies: expected none for a ${kind}`);
    }
    textAt(spec, 'module', Number.POSITIVE_INFINITY, 'spec.');
    return;
  }
  const members = objectAt(own(spec, 'policies'), 'spec.policies');
  for (const member of Object.values(members)) {
    textAt(objectAt(member, 'spec.policies: a member'), 'module', Number.POSITIVE_INFINITY, 'spec.policies: a ');
  }
}

function decodeJson(body: Uint8Array): unknown {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw new RequestRefusal(400, 'expected JSON in UTF-8');
  }
  if (isNestedDeeper(text, MAX_REQUEST_DEPTH)) {
    throw new RequestRefusal(400, `expected at most ${MAX_REQUEST_DEPTH} nested brackets`);
  }
  try {
    return parseJson(text);
  } catch {
    throw new RequestRefusal(400, 'expected JSON');
  }
}

function objectAt(value: unknown, where: string): JsonObject {
  if (!isJsonObject(value)) {
    throw new RequestRefusal(422, `${where}: expected a JSON object`);
  }
  return value;
}

function textAt(object: JsonObject, field: string, limit: number, path = ''): string {
  const value = own(object, field);
  if (typeof value !== 'string' || value === '' || value.length > limit) {
    const most = Number.isFinite(limit) ? ` of at most ${limit} characters` : '';
    throw new RequestRefusal(422, `${path}${field}: expected a non-empty text${most}`);
  }
  return value;
}
