import { isJsonObject } from '../../../resources/index.ts';
import type { JsonObject } from '../../../resources/index.ts';
import { parseJson } from '../../../values/index.ts';

/** The Go type in the message for JSON that is not an object. */
const ENVELOPE = String.raw`struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }`;

/**
 * Parses the response body of a webhook.
 * @throws Error with an API server's message when it is not a JSON object
 */
export function reviewJson(text: string): JsonObject {
  const value = parse(text);
  if (isJsonObject(value)) {
    return value;
  }
  // In Go, null decodes to an empty struct.
  if (value === null) {
    return {};
  }
  throw new Error(`couldn't get version/kind; json parse error: ${unmarshalMessage(value, ENVELOPE)}`);
}

/** Go's message for a JSON value of the wrong type. */
export function unmarshalMessage(value: unknown, type: string): string {
  const kind = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value;
  return `json: cannot unmarshal ${kind} into Go value of type ${type}`;
}

/** Go's message for truncated JSON, the most common syntax error. */
export const UNEXPECTED_END = 'unexpected end of JSON input';

function parse(text: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    if (text.trimStart().startsWith('{')) {
      throw new Error(`couldn't get version/kind; json parse error: ${UNEXPECTED_END}`, { cause: error });
    }
    // API servers parse a body that is not JSON as YAML. Most texts are a single string there.
    return text;
  }
}
