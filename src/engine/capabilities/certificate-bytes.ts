// Certificates in payloads of host capabilities.
import type { JsonValue } from '../values/json-text.ts';

/** Maximum size of a certificate in bytes: real ones, with hundreds of names, stay below 20 KB. */
const MAX_CERTIFICATE_BYTES = 65_536;

/** The bytes of a certificate, which is a list of numbers in JSON. Throws an Error whose message the guest gets. */
export function certificateBytes(value: JsonValue | undefined, field: string): Buffer {
  if (!Array.isArray(value) || value.length > MAX_CERTIFICATE_BYTES || !value.every(isByte)) {
    throw new Error(`${field}: expected a list of at most ${MAX_CERTIFICATE_BYTES} bytes`);
  }
  return Buffer.from(value);
}

function isByte(value: JsonValue): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 255;
}
