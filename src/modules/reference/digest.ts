import { createHash } from 'node:crypto';

/** A SHA-256 digest, as OCI writes it: 64 lower-case hexadecimal digits. */
export type Digest = `sha256:${string}`;

/** The digest of bytes. */
export function digestOf(bytes: Uint8Array): Digest {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

/** Whether a value is `sha256:` and 64 lower-case hexadecimal digits. */
export function isDigest(value: unknown): value is Digest {
  return typeof value === 'string' && /^sha256:[0-9a-f]{64}$/.test(value);
}
