import type { JsonObject } from '../../values/index.ts';

/**
 * A signature whose claim is for the artifact that is verified. Whose signature it is, is not known yet.
 * @see collectSignatures
 */
export interface Signature {
  /** For messages. */
  readonly shown: string;
  /** What is signed: the claim, or the manifest itself. */
  readonly signedBytes: Uint8Array;
  readonly signature: Uint8Array;
  /** Annotations in the claim: the signature covers them. */
  readonly annotations: ReadonlyMap<string, string>;
  /** As a bundle of Sigstore, in JSON; undefined if there is no certificate. */
  readonly bundle: JsonObject | undefined;
}

/** Largest signature, certificate, timestamp or log entry in DER: they have at most a few KiB. Bytes. */
const MAX_ITEM_BYTES = 16 * 1024;

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** The bytes of a text in base64; undefined if it is malformed, empty or too large. */
export function fromBase64(value: unknown, maxBytes: number = MAX_ITEM_BYTES): Buffer | undefined {
  if (typeof value !== 'string' || value.length > maxBytes * 2 || !BASE64.test(value)) {
    return undefined;
  }
  const bytes = Buffer.from(value, 'base64');
  return bytes.length > 0 && bytes.length <= maxBytes ? bytes : undefined;
}
