import { isJsonObject } from '../../../resources/index.ts';
import type { JsonObject } from '../../../resources/index.ts';

const ENVELOPE = String.raw`struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }`;

/**
 * Reads what a webhook answered.
 * @throws Error in an API server's words when it is no AdmissionReview at all
 */
export function reviewJson(text: string): JsonObject {
  const value = parse(text);
  if (isJsonObject(value)) {
    return value;
  }
  // Nothing is a review without a response.
  if (value === null) {
    return {};
  }
  throw new Error(`couldn't get version/kind; json parse error: ${notInto(value, ENVELOPE)}`);
}

/** Of the values of JSON, by the name that Go has for them. */
export function notInto(value: unknown, type: string): string {
  const kind = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value;
  return `json: cannot unmarshal ${kind} into Go value of type ${type}`;
}

/** Go's text for JSON that ends too early, which is how it most often is broken. */
export const UNEXPECTED_END = 'unexpected end of JSON input';

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (text.trimStart().startsWith('{')) {
      throw new Error(`couldn't get version/kind; json parse error: ${UNEXPECTED_END}`, { cause: error });
    }
    // API servers take what is no JSON for YAML: it is one text.
    return text;
  }
}
