import { dump } from 'js-yaml';
import { EngineError } from '../values/errors.ts';
import type { HostCaller, HostPort } from './host-port.ts';
import { canonicalJson, isJsonObject } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { parseYaml } from '../../values/yaml/index.ts';
import { errorText, parseJson } from '../../values/index.ts';
import { payloadFields } from './kubernetes.ts';

/** A host call and its answer: `{type: Exchange, request, response}` of a kwctl session. */
interface Exchange {
  /** Identifies the request: variant and fields, without null fields. */
  readonly key: string;
  readonly response: { readonly payload: string } | { readonly error: string };
}

/** A host request in kwctl's format: a variant, written as a YAML tag, and its fields. */
interface HostRequest {
  readonly variant: string;
  readonly fields: JsonObject;
}

/** Variants by capability. The payload of `oci/…/verify` names the variant. */
const VARIANTS: Readonly<Record<string, (payload: JsonValue) => HostRequest>> = {
  'kubernetes/list_resources_by_namespace': (payload) =>
    kubernetes('KubernetesListResourceNamespace', payload, [
      'api_version',
      'kind',
      'namespace',
      'label_selector',
      'field_selector',
      'field_masks',
    ]),
  'kubernetes/list_resources_all': (payload) =>
    kubernetes('KubernetesListResourceAll', payload, [
      'api_version',
      'kind',
      'label_selector',
      'field_selector',
      'field_masks',
    ]),
  'kubernetes/get_resource': (payload) =>
    kubernetes('KubernetesGetResource', payload, ['api_version', 'kind', 'name', 'namespace', 'field_masks']),
  'kubernetes/get_resource_plural_name': (payload) => {
    const { api_version = null, kind = null } = payloadFields(payload);
    return { variant: 'KubernetesGetResourcePluralName', fields: { api_version, kind } };
  },
  'kubernetes/can_i': (payload) => {
    const { subject_access_review: request = null, disable_cache = false } = payloadFields(payload);
    return { variant: 'KubernetesCanI', fields: { request, disable_cache } };
  },
  'net/v1/dns_lookup_host': (host) => ({ variant: 'DNSLookupHost', fields: { host } }),
  'crypto/v1/is_certificate_trusted': (request) => ({ variant: 'CryptoIsCertificateTrusted', fields: { request } }),
  'oci/v1/manifest_digest': (image) => ({ variant: 'OciManifestDigest', fields: { image } }),
  'oci/v1/oci_manifest': (image) => ({ variant: 'OciManifest', fields: { image } }),
  'oci/v1/oci_manifest_config': (image) => ({ variant: 'OciManifestAndConfig', fields: { image } }),
  'oci/v1/verify': (payload) => {
    const [variant = '', fields = null] = Object.entries(payloadFields(payload))[0] ?? [];
    return { variant, fields: payloadFields(fields) };
  },
  'oci/v2/verify': (payload) => {
    const { type = '', ...fields } = payloadFields(payload);
    return { variant: typeof type === 'string' ? type : '', fields };
  },
};

/**
 * Answers host calls from a session of `kwctl run --record-host-capabilities-interactions` (or {@link
 * SessionRecorder}). Equal requests get their answers in the order of the file; the last answer repeats.
 */
export class ReplayPort implements HostPort {
  readonly #answers = new Map<string, Exchange['response'][]>();
  readonly #unanswered: string[] = [];
  readonly #errors: string[] = [];

  /** Throws `session-malformed`, naming the exchange. */
  constructor(sessionText: string) {
    for (const { key, response } of parseSession(sessionText)) {
      const answers = this.#answers.get(key) ?? [];
      answers.push(response);
      this.#answers.set(key, answers);
    }
  }

  /** Requests without an answer in the session: their errors may have led to a denial. */
  get unanswered(): readonly string[] {
    return this.#unanswered;
  }

  /** Errors that the session answered with: the host's own, such as that an object does not exist. */
  get errors(): readonly string[] {
    return this.#errors;
  }

  request(capability: string, payloadJson: string): string {
    const request = hostRequest(capability, parseJson(payloadJson) as JsonValue);
    const answers = this.#answers.get(requestKey(request));
    const answer = answers !== undefined && answers.length > 1 ? answers.shift() : answers?.[0];
    if (answer === undefined) {
      const unanswered = `${request.variant} ${canonicalJson(withoutNulls(request.fields))}`;
      this.#unanswered.push(unanswered);
      throw new EngineError(
        'capability-failed',
        `the recorded session has no answer for ${unanswered}: record it again`,
      );
    }
    if ('error' in answer) {
      this.#errors.push(answer.error);
      throw new EngineError('capability-failed', answer.error);
    }
    return answer.payload;
  }
}

/** Answers host capabilities, such as {@link AsyncCapabilities.answer}. */
type AnswerCapability = (capability: string, payloadJson: string, caller?: HostCaller) => Promise<string>;

/** Forwards host calls, and records requests and answers. */
export class SessionRecorder {
  readonly #inner: AnswerCapability;
  readonly #exchanges: JsonObject[] = [];

  constructor(inner: AnswerCapability) {
    this.#inner = inner;
  }

  async answer(capability: string, payloadJson: string, caller?: HostCaller): Promise<string> {
    const request = requestText(hostRequest(capability, parseJson(payloadJson) as JsonValue));
    try {
      const payload = await this.#inner(capability, payloadJson, caller);
      this.#exchanges.push({ type: 'Exchange', request, response: { type: 'Success', payload } });
      return payload;
    } catch (error) {
      this.#exchanges.push({ type: 'Exchange', request, response: { type: 'Error', message: errorText(error) } });
      throw error;
    }
  }

  /** The session so far, in kwctl's format. */
  text(): string {
    return dump(this.#exchanges, { lineWidth: -1 });
  }
}

function kubernetes(variant: string, payload: JsonValue, keys: readonly string[]): HostRequest {
  const given = payloadFields(payload);
  const fields: JsonObject = Object.fromEntries(keys.map((key) => [key, given[key] ?? null]));
  return { variant, fields: { ...fields, disable_cache: given.disable_cache ?? false } };
}

function hostRequest(capability: string, payload: JsonValue): HostRequest {
  const variant = Object.hasOwn(VARIANTS, capability) ? VARIANTS[capability] : undefined;
  if (variant === undefined) {
    throw new EngineError('capability-failed', `unknown host capability: ${capability}`);
  }
  return variant(payload);
}

function requestText({ variant, fields }: HostRequest): string {
  return `!${variant}\n${dump(fields, { lineWidth: -1 })}`;
}

function requestKey({ variant, fields }: HostRequest): string {
  return `${variant} ${canonicalJson(withoutNulls(fields))}`;
}

/** Kubewarden omits options or writes null, and writes sets (`field_masks`) in any order. */
function withoutNulls(value: JsonValue): JsonValue {
  if (!isJsonObject(value)) {
    return Array.isArray(value) ? value.map(withoutNulls) : value;
  }
  const entries = Object.entries(value)
    .filter(([key, member]) => member !== null && !(key === 'disable_cache' && member === false))
    .map(([key, member]) => {
      const isSet = key === 'field_masks' && Array.isArray(member);
      return [key, isSet ? member.map(String).sort() : withoutNulls(member)] as const;
    });
  return Object.fromEntries(entries);
}

function parseSession(text: string): Exchange[] {
  const session = parsePart(text, 'the session');
  if (!Array.isArray(session)) {
    throw malformed('expected a list of exchanges');
  }
  return session.map((exchange: unknown, index) => parseExchange(exchange, index + 1));
}

function parseExchange(exchange: unknown, number: number): Exchange {
  const what = `exchange ${number}`;
  if (!isJsonObject(exchange) || exchange.type !== 'Exchange' || typeof exchange.request !== 'string') {
    throw malformed(`${what}: expected {type: Exchange, request: text, response}`);
  }
  const { response } = exchange;
  const tag = /^\s*(?:---\s*)?!([A-Za-z]+)[ \t]*/.exec(exchange.request);
  if (tag === null) {
    throw malformed(`${what}: expected a request that starts with a tag such as !KubernetesGetResource`);
  }
  const fields = parsePart(exchange.request.slice(tag[0].length), what);
  const request = { variant: tag[1] ?? '', fields: isJsonObject(fields) ? fields : {} };
  if (isJsonObject(response) && response.type === 'Success' && typeof response.payload === 'string') {
    return { key: requestKey(request), response: { payload: response.payload } };
  }
  if (isJsonObject(response) && response.type === 'Error' && typeof response.message === 'string') {
    return { key: requestKey(request), response: { error: response.message } };
  }
  throw malformed(`${what}: expected a response {type: Success, payload: text} or {type: Error, message: text}`);
}

function parsePart(text: string, what: string): unknown {
  try {
    return parseYaml(text, 'core')[0];
  } catch (error) {
    throw malformed(`${what}: not YAML: ${errorText(error)}`);
  }
}

function malformed(problem: string): EngineError {
  return new EngineError('session-malformed', `the recorded session cannot be read: ${problem}`);
}
