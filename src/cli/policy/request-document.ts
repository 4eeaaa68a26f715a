// Requests in files: an AdmissionReview, an AdmissionRequest, or any document for raw policies.
import type { Route } from '../../engine/index.ts';
import { type Document, readDocument } from '../document.ts';
import { CliError } from '../errors.ts';
import { errorText, exactJson, valueAt } from '../../values/index.ts';

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
  const value = route === 'validate_raw' ? document.value : currentReview(document.value);
  const text = document.isJson && value === document.value ? document.text : jsonText({ ...document, value });
  return Buffer.from(route !== 'validate_raw' && isReview(value) ? text : `{"request":${text}}`);
}

/** A review of v1beta1, as older API servers recorded it, as one of v1: the request is the same. Other values unchanged. */
export function currentReview<Value>(value: Value): Value {
  const isBeta = isReview(value) && valueAt(value, 'apiVersion') === 'admission.k8s.io/v1beta1';
  return isBeta ? { ...value, apiVersion: 'admission.k8s.io/v1' } : value;
}

function isReview(value: unknown): value is object {
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
