import { parseCelJson } from '../../cel/index.ts';
import { admissionRequest } from '../cel-policy/index.ts';
import type { CelRequest } from '../cel-policy/index.ts';
import { EngineError } from '../values/errors.ts';
import { isJsonObject } from '../values/json-text.ts';

/** Parsed requests, for as long as their buffers exist. */
const known = new WeakMap<Buffer, CelRequest>();

/**
 * Parses the request of a review for CEL expressions. Parsed once for all policies, so it must not be changed. Throws
 * EngineError `guest-error`.
 */
export function requestOf(requestJson: Buffer): CelRequest {
  let request = known.get(requestJson);
  if (request === undefined) {
    const json = parseCelJson(requestJson.toString());
    if (!isJsonObject(json)) {
      throw new EngineError('guest-error', 'the request is not an object');
    }
    request = admissionRequest(json);
    known.set(requestJson, request);
  }
  return request;
}
