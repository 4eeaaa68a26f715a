import { EvaluationFailure, parseCelJson } from '../../cel/index.ts';
import type { AuthorizationAnswer, AuthorizationRequest, CelAuthorizer } from '../../cel/index.ts';
import type { CallContext } from '../../wasm/index.ts';
import { EngineError } from '../values/errors.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { errorText } from '../../values/index.ts';
import type { Selector } from '../../resources/index.ts';
import type { PolicySources } from './settings-policy.ts';
import { isKnownClusterKind, NAMESPACE_KIND } from './sources.ts';
import type { NamespaceSource, ParamSource, ParamKind } from './sources.ts';

const BINDING = 'kubewarden';
/** Prefix of a host's message for a missing object. */
const NOT_FOUND = /^Cannot find /u;

/** Sources that call host capabilities, within the policy's contextAwareResources and hostCapabilities. */
export class HostSources implements PolicySources {
  readonly params: ParamSource;
  readonly namespaces: NamespaceSource;
  readonly authorizer: CelAuthorizer;
  readonly #context: CallContext;

  constructor(context: CallContext) {
    this.#context = context;
    this.params = {
      get: (kind, name, namespace) => this.#get(kind, name, namespace),
      list: (kind, namespace, selector) => this.#list(kind, namespace, selector),
      // Reads of a kind that is not served fail, which says why.
      isServed: () => true,
      isNamespaced: (kind) => !isKnownClusterKind(kind),
    };
    this.namespaces = { get: (name) => this.#get(NAMESPACE_KIND, name, undefined) };
    this.authorizer = { authorize: (request) => this.#authorize(request) };
  }

  #get({ apiVersion, kind }: ParamKind, name: string, namespace: string | undefined): JsonObject | undefined {
    const payload = { api_version: apiVersion, kind, name, disable_cache: false };
    try {
      return objectIn(this.#call('get_resource', namespace === undefined ? payload : { ...payload, namespace }));
    } catch (error) {
      if (NOT_FOUND.test(errorText(error))) {
        return undefined;
      }
      throw error;
    }
  }

  #list({ apiVersion, kind }: ParamKind, namespace: string | undefined, selector: Selector): JsonObject[] {
    const labelSelector = selector.toString();
    const payload = {
      api_version: apiVersion,
      kind,
      ...(labelSelector === '' ? {} : { label_selector: labelSelector }),
    };
    const { items } = objectIn(
      namespace === undefined
        ? this.#call('list_resources_all', payload)
        : this.#call('list_resources_by_namespace', { ...payload, namespace }),
    );
    return Array.isArray(items) ? items.filter(isJsonObject) : [];
  }

  #authorize(request: AuthorizationRequest): AuthorizationAnswer | EvaluationFailure {
    const payload = { subject_access_review: subjectAccessReview(request), disable_cache: false };
    let status: JsonObject;
    try {
      status = objectIn(this.#call('can_i', payload));
    } catch (error) {
      if (error instanceof EngineError && error.code === 'capability-refused') {
        return new EvaluationFailure(error.message);
      }
      throw error;
    }
    const { allowed, reason, evaluationError } = status;
    return {
      isAllowed: allowed === true,
      reason: typeof reason === 'string' ? reason : '',
      ...(typeof evaluationError === 'string' && evaluationError !== '' ? { error: evaluationError } : {}),
    };
  }

  #call(operation: string, payload: JsonObject): JsonValue {
    const bytes = this.#context.hostCall(BINDING, 'kubernetes', operation, Buffer.from(JSON.stringify(payload)));
    // Keeps integers as CEL values.
    return parseCelJson(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()) as JsonValue;
  }
}

function objectIn(value: JsonValue): JsonObject {
  if (!isJsonObject(value)) {
    throw new Error('the host answered something that is no object');
  }
  return value;
}

/**
 * The payload of `can_i`. Fields that Kubewarden's payload lacks (path, selectors) are added in the same style: a host
 * that does not know them must refuse the payload.
 */
function subjectAccessReview(request: AuthorizationRequest): JsonObject {
  const { username, uid, groups = [], extra } = request.user;
  const user: JsonObject = {
    user: username,
    groups: [...groups],
    ...(uid === undefined ? {} : { uid }),
    ...(extra === undefined
      ? {}
      : { extra: Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, [...values]])) }),
  };
  if (request.kind === 'path') {
    return { ...user, non_resource_attributes: { path: request.path, verb: request.verb } };
  }
  const { verb, group, resource, subresource, namespace, name, fieldSelector, labelSelector } = request;
  return {
    ...user,
    resource_attributes: {
      verb,
      group,
      resource,
      subresource,
      namespace,
      name,
      version: '*',
      ...(fieldSelector === '' ? {} : { field_selector: fieldSelector }),
      ...(labelSelector === '' ? {} : { label_selector: labelSelector }),
    },
  };
}
