// What comes to a control port, checked: a controller of another version may have sent it, or nobody's controller.
import { RequestRefused } from '../https/index.ts';
import { isJsonObject, own } from '../resources/index.ts';
import type { JsonObject } from '../resources/index.ts';
import type { PrevalidationRequest } from './replica-protocol.ts';
import { parseJson } from '../values/index.ts';

/** Brackets within one another: far above what policies have, far below what recursion over them could not take. */
export const MAX_REQUEST_DEPTH = 128;
/** Kubernetes' limit of names (DNS subdomain). Characters. */
const MAX_NAME_LENGTH = 253;
/** The policy kinds, and whether they have a namespace. */
const KINDS: ReadonlyMap<string, boolean> = new Map([
  ['ClusterAdmissionPolicy', false],
  ['ClusterAdmissionPolicyGroup', false],
  ['AdmissionPolicy', true],
  ['AdmissionPolicyGroup', true],
]);

/** Where a request goes. */
export type ControlTarget =
  | { readonly route: 'stream' }
  | { readonly route: 'prevalidate' }
  | { readonly route: 'modules'; readonly digest: string };

/**
 * The target of a request by its method and path.
 * @throws RequestRefused 400, 404, 405
 */
export function parseControlTarget(method: string | undefined, url: string | undefined): ControlTarget {
  const [path = ''] = (url ?? '').split('?', 1);
  const prefix = '/modules/';
  const target = path.startsWith(prefix) ? prefix : path;
  const allowed = METHODS.get(target);
  if (allowed === undefined) {
    throw new RequestRefused(404, 'no such path: expected /stream, /prevalidate or /modules/{digest}');
  }
  if (method !== allowed) {
    throw new RequestRefused(405, `expected ${allowed}, got ${method ?? 'no method'}`);
  }
  if (target === '/stream' || target === '/prevalidate') {
    return { route: target === '/stream' ? 'stream' : 'prevalidate' };
  }
  const digest = path.slice(prefix.length);
  if (!/^sha256:[0-9a-f]{64}$/.test(digest)) {
    throw new RequestRefused(400, 'expected a digest: sha256: and 64 lower-case hexadecimal digits');
  }
  return { route: 'modules', digest };
}

const METHODS: ReadonlyMap<string, string> = new Map([
  ['/stream', 'GET'],
  ['/prevalidate', 'POST'],
  ['/modules/', 'GET'],
]);

/**
 * The request that a body holds: of a known kind, with a name, and a spec that names modules. What else is in the spec is
 * for pre-validation itself to judge.
 * @throws RequestRefused 400 for what is not JSON, 422 for JSON of another shape
 */
export function parsePrevalidation(body: Uint8Array): PrevalidationRequest {
  const value = decodeJson(body);
  const request = objectAt(value, 'the body');
  const kind = textAt(request, 'kind', MAX_NAME_LENGTH);
  const isNamespaced = KINDS.get(kind);
  if (isNamespaced === undefined) {
    throw new RequestRefused(422, `kind: expected one of ${[...KINDS.keys()].join(', ')}`);
  }
  const metadata = objectAt(own(request, 'metadata'), 'metadata');
  const name = textAt(metadata, 'name', MAX_NAME_LENGTH, 'metadata.');
  if (isNamespaced !== (own(metadata, 'namespace') !== undefined)) {
    throw new RequestRefused(422, `metadata.namespace: expected ${isNamespaced ? 'one' : 'none'} of a ${kind}`);
  }
  const namespace = isNamespaced ? textAt(metadata, 'namespace', MAX_NAME_LENGTH, 'metadata.') : undefined;
  const spec = objectAt(own(request, 'spec'), 'spec');
  checkModules(spec, kind);
  return {
    kind,
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
    // Its fields are checked where they are used.
    spec: spec as unknown as PrevalidationRequest['spec'],
  };
}

function checkModules(spec: JsonObject, kind: string): void {
  if (!kind.endsWith('Group')) {
    if (own(spec, 'policies') !== undefined) {
      throw new RequestRefused(422, `spec.policies: expected none of a ${kind}`);
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
    throw new RequestRefused(400, 'expected JSON in UTF-8');
  }
  if (isDeep(text)) {
    throw new RequestRefused(400, `expected at most ${MAX_REQUEST_DEPTH} brackets within one another`);
  }
  try {
    return parseJson(text);
  } catch {
    throw new RequestRefused(400, 'expected JSON');
  }
}

/** Whether brackets outside of texts nest too deeply. Right for JSON; anything else is refused as such. */
function isDeep(text: string): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    switch (text[at]) {
      case '"':
        at = endOfText(text, at);
        break;
      case '{':
      case '[':
        depth += 1;
        if (depth > MAX_REQUEST_DEPTH) {
          return true;
        }
        break;
      case '}':
      case ']':
        depth -= 1;
        break;
      default:
    }
  }
  return false;
}

/** Index of the quote that ends the text which begins at `start`, or of the end. */
function endOfText(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') {
    at += text[at] === '\\' ? 2 : 1;
  }
  return at;
}

function objectAt(value: unknown, where: string): JsonObject {
  if (!isJsonObject(value)) {
    throw new RequestRefused(422, `${where}: expected a JSON object`);
  }
  return value;
}

function textAt(object: JsonObject, field: string, limit: number, path = ''): string {
  const value = own(object, field);
  if (typeof value !== 'string' || value === '' || value.length > limit) {
    const most = Number.isFinite(limit) ? ` of at most ${limit} characters` : '';
    throw new RequestRefused(422, `${path}${field}: expected a text${most} that is not empty`);
  }
  return value;
}
