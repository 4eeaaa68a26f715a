import { parseCelJson } from '../cel/index.ts';
import { admissionRequest } from './cel-policy/index.ts';
import type { AdmissionRequest } from './cel-policy/index.ts';
import { EngineError } from './errors.ts';
import { isJsonObject } from './json-text.ts';

/** What was read, for as long as its text is there. */
const known = new WeakMap<Buffer, AdmissionRequest>();

/**
 * Reads the request of a review as expressions see it: once, however many policies are asked about it. Nobody changes what it is
 * made of. Throws EngineError `guest-error`.
 */
export function requestOf(requestJson: Buffer): AdmissionRequest {
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
