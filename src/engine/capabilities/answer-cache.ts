import type { ContextAwareResource } from '../../resources/index.ts';
import type { HostCaller, HostPort } from './host-port.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonValue } from '../values/json-text.ts';
import { RevisionCache } from './revision-cache.ts';
import { parseJson } from '../../values/index.ts';

/** Maximum number of cached answers per thread. */
export const MAX_KEPT_ANSWERS = 1_000;
/** Maximum length of all cached answers of a thread, in characters: some thousand objects. */
export const MAX_KEPT_ANSWERS_LENGTH = 16 * 1024 * 1024;

/** Capabilities that read objects of one kind, named in the payload. */
const READS: ReadonlySet<string> = new Set([
  'kubernetes/get_resource',
  'kubernetes/list_resources_by_namespace',
  'kubernetes/list_resources_all',
]);

/** Forwards host calls, and caches reads of objects until an object of their kind changes. */
export class AnswerCache {
  readonly #port: HostPort;
  readonly #kept = new RevisionCache({ maxEntries: MAX_KEPT_ANSWERS, maxLength: MAX_KEPT_ANSWERS_LENGTH });

  constructor(port: HostPort) {
    this.#port = port;
  }

  /** See {@link HostPort.request}. */
  request(capability: string, payloadJson: string, caller?: HostCaller): string {
    const kind = READS.has(capability) ? kindOf(parseJson(payloadJson) as JsonValue) : undefined;
    const revision = kind && this.#port.revisionOf?.([kind]);
    const request = (): string => this.#port.request(capability, payloadJson, caller);
    return revision === undefined ? request() : this.#kept.get(`${capability} ${payloadJson}`, revision, request);
  }
}

/** The kind of a read; undefined when the policy disables the cache. */
function kindOf(payload: JsonValue): ContextAwareResource | undefined {
  if (!isJsonObject(payload) || payload.disable_cache === true) {
    return undefined;
  }
  const { api_version: apiVersion, kind } = payload;
  return typeof apiVersion === 'string' && typeof kind === 'string' ? { apiVersion, kind } : undefined;
}
