import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { ClusterError } from '../../../cluster/index.ts';
import { isJsonObject } from '../../../resources/index.ts';
import type { JsonObject } from '../../../resources/index.ts';
import { parseJson } from '../../../values/index.ts';

/** Storage of a key: PKCS #8 as PEM. */
export interface KeyStore {
  load(): string | undefined;
  save(pem: string): void;
}

/** Longest token, in characters. Tokens have about 1,000, more with many audiences. */
export const MAX_TOKEN_LENGTH = 16 * 1024;

const ALGORITHMS = { ec: 'ES256', rsa: 'RS256' } as const;

/** The key that signs service account tokens (RFC 7519): ECDSA with P-256. A stored key may also be RSA. */
export class SigningKey {
  readonly #privateKey: KeyObject;
  readonly #publicKey: KeyObject;
  readonly #algorithm: 'ES256' | 'RS256';
  /** The key ID in tokens (`kid`): the hash of the public key, as in API servers. */
  readonly id: string;

  private constructor(privateKey: KeyObject) {
    const type = privateKey.asymmetricKeyType;
    if (type !== 'ec' && type !== 'rsa') {
      throw new ClusterError(
        'credentials-failed',
        `the cluster's signing key is of type ${String(type)}: expected ec (P-256) or rsa`,
      );
    }
    this.#privateKey = privateKey;
    this.#publicKey = createPublicKey(privateKey);
    this.#algorithm = ALGORITHMS[type];
    const der = this.#publicKey.export({ type: 'spki', format: 'der' });
    this.id = createHash('sha256').update(der).digest('base64url');
  }

  /** Reads the stored key, or creates and stores a new one. Throws ClusterError. */
  static open(store: KeyStore): SigningKey {
    const stored = store.load();
    if (stored !== undefined) {
      return SigningKey.of(stored);
    }
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    store.save(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
    return new SigningKey(privateKey);
  }

  /** Reads a key. Throws ClusterError. */
  static of(pem: string): SigningKey {
    let key: KeyObject;
    try {
      key = createPrivateKey(pem);
    } catch (error) {
      throw new ClusterError(
        'credentials-failed',
        "the cluster's signing key cannot be read: expected a private key as PEM; remove it, and a new one is created",
        { cause: error },
      );
    }
    return new SigningKey(key);
  }

  /** A signed token with these claims. */
  sign(claims: JsonObject): string {
    const header = { alg: this.#algorithm, kid: this.id };
    const signed = `${encode(header)}.${encode(claims)}`;
    const signature = sign('sha256', Buffer.from(signed), { key: this.#privateKey, dsaEncoding: 'ieee-p1363' });
    return `${signed}.${signature.toString('base64url')}`;
  }

  /** The claims of a token. Undefined unless this key signed it. */
  verify(token: string): JsonObject | undefined {
    const [header = '', claims = '', signature = '', ...rest] = token.split('.');
    if (rest.length > 0 || decode(header)?.alg !== this.#algorithm) {
      return undefined;
    }
    const isSigned = verify(
      'sha256',
      Buffer.from(`${header}.${claims}`),
      { key: this.#publicKey, dsaEncoding: 'ieee-p1363' },
      Buffer.from(signature, 'base64url'),
    );
    return isSigned ? decode(claims) : undefined;
  }
}

/** The claims of a token, without verification. */
export function unverifiedClaims(token: string): JsonObject | undefined {
  const parts = token.split('.');
  return token.length > MAX_TOKEN_LENGTH || parts.length !== 3 ? undefined : decode(parts[1] ?? '');
}

function encode(value: JsonObject): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function decode(part: string): JsonObject | undefined {
  try {
    const value: unknown = parseJson(Buffer.from(part, 'base64url').toString());
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
