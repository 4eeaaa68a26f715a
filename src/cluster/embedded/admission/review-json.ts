import { isJsonObject, quoteText } from '../../../resources/index.ts';
import type { JsonObject } from '../../../resources/index.ts';

/**
 * Reads what a webhook answered.
 * @throws Error in an API server's words when it is no AdmissionReview at all
 */
export function reviewJson(text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`couldn't get version/kind; json parse error: ${syntaxMessage(text)}`, { cause: error });
  }
  if (!isJsonObject(value)) {
    const kind = Array.isArray(value) ? 'array' : typeof value;
    throw new Error(`couldn't get version/kind; json parse error: expected an AdmissionReview, got ${kind}`);
  }
  return value;
}

/** Where JSON is left, as Go says it: for the first character, and for a text that ends too early. */
function syntaxMessage(text: string): string {
  const start = text.trimStart();
  const first = start[0] ?? '';
  return first !== '' && !'{["-0123456789tfn'.includes(first)
    ? `invalid character '${quoteText(first).slice(1, -1)}' looking for beginning of value`
    : 'unexpected end of JSON input';
}
