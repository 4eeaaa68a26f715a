// Requests in files: an AdmissionReview, an AdmissionRequest, or any document for raw policies.
import type { Route } from '../../engine/index.ts';
import { type Document, readDocument } from '../document.ts';
import { CliError } from '../errors.ts';
import { errorText, exactJson } from '../../values/index.ts';

/**
 * The body of the request to a policy server. JSON is passed on unchanged: serializing it again could change numbers and
 * the order of keys.
 * @throws CliError when the file cannot be read or understood
 */
export async function readRequest(path: string, route: Route): Promise<Uint8Array> {
  const document = await readDocument(path, 'kubernetes-exact');
  if (document.text.trim() === '') {
    throw new CliError(`${document.name} is empty: expected a request, as JSON or YAML`);
  }
  const text = document.isJson ? document.text : jsonText(document);
  return Buffer.from(route !== 'validate_raw' && isReview(document.value) ? text : `{"request":${text}}`);
}

function isReview(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    ('request' in value || ('kind' in value && value.kind === 'AdmissionReview'))
  );
}

function jsonText({ name, value }: Document): string {
  try {
    return exactJson(value ?? null);
  } catch (error) {
    // YAML aliases can make a value contain itself.
    throw new CliError(`${name} cannot be written as JSON: ${errorText(error)}`, { cause: error });
  }
}
