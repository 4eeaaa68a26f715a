import { constants, createPublicKey, type KeyObject, verify } from 'node:crypto';

import type { Signature } from './signature.ts';

/** The hash of each curve's size; cosign used SHA-256 with every curve before version 3. */
const HASH_OF_CURVE: Readonly<Record<string, string>> = {
  prime256v1: 'sha256',
  secp384r1: 'sha384',
  secp521r1: 'sha512',
};

/** Whether a signature is one of the holder of a public key (PEM). */
export function isSignedBy(pem: string, { signedBytes, signature }: Signature): boolean {
  const key = createPublicKey(pem);
  switch (key.asymmetricKeyType) {
    case 'ec': {
      const hash = HASH_OF_CURVE[key.asymmetricKeyDetails?.namedCurve ?? ''] ?? 'sha256';
      return [...new Set(['sha256', hash])].some((algorithm) => holds(algorithm, signedBytes, key, signature));
    }
    case 'rsa':
      return [constants.RSA_PKCS1_PADDING, constants.RSA_PKCS1_PSS_PADDING].some((padding) =>
        holds('sha256', signedBytes, { key, padding }, signature),
      );
    case 'ed25519':
      return holds(null, signedBytes, key, signature);
    default:
      return false;
  }
}

/** Whether a signature verifies; a malformed one does not. */
function holds(
  algorithm: string | null,
  bytes: Uint8Array,
  key: KeyObject | { readonly key: KeyObject; readonly padding: number },
  signature: Uint8Array,
): boolean {
  try {
    return verify(algorithm, bytes, key, signature);
  } catch {
    return false;
  }
}
