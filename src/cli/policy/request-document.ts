// Requests for policies, as users have them: an AdmissionReview, the AdmissionRequest inside of one, or anything (raw).
import type { Route } from '../../engine/index.ts';
import { type Document, readDocument } from '../document.ts';
import { CliError, errorText } from '../errors.ts';

/**
 * The body that a server would have been sent. JSON is handed on as it is written: parsing and writing it again could
 * change what the policy sees.
 * @throws CliError when the file cannot be read or understood
 */
export async function readRequest(path: string, route: Route): Promise<Uint8Array> {
  const document = await readDocument(path);
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
    return JSON.stringify(value ?? null);
  } catch (error) {
    // An alias can make a value contain itself.
    throw new CliError(`${name} cannot be written as JSON: ${errorText(error)}`, { cause: error });
  }
}
