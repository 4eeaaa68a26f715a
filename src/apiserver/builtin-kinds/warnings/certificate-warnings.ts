// What the TLS library of API servers says of the certificate and the key in a Secret.
import { textOf, valueAt } from '../../../values/index.ts';
import { createPrivateKey, createPublicKey, type KeyObject, X509Certificate } from 'node:crypto';

interface Block {
  readonly type: string;
  readonly der: Buffer;
}

/** Blocks of a file in PEM format. Secrets have at most a megabyte. */
const PEM = /-----BEGIN ([^-\n]+)-----\r?\n([A-Za-z0-9+/=\s]*)-----END \1-----/gu;

/** Warnings about a Secret of the type `kubernetes.io/tls`. */
export function secretWarnings(secret: unknown): readonly string[] {
  if (valueAt(secret, 'type') !== 'kubernetes.io/tls') {
    return [];
  }
  const problem = pairProblem(dataOf(secret, 'tls.crt'), dataOf(secret, 'tls.key'));
  return problem === undefined ? [] : [problem];
}

function dataOf(secret: unknown, key: string): string {
  return Buffer.from(textOf(valueAt(secret, 'data', key)), 'base64').toString('latin1');
}

function pairProblem(certificate: string, key: string): string | undefined {
  const blocks = blocksOf(certificate);
  const first = blocks.find(({ type }) => type === 'CERTIFICATE');
  if (first === undefined) {
    return certificateProblem(blocks);
  }
  const keyBlocks = blocksOf(key);
  const private_ = keyBlocks.find(({ type }) => type === 'PRIVATE KEY' || type.endsWith(' PRIVATE KEY'));
  return private_ === undefined ? keyProblem(keyBlocks) : matchProblem(first.der, private_.der);
}

function blocksOf(text: string): readonly Block[] {
  return Array.from(text.matchAll(PEM), ([, type = '', body = '']) => ({ type, der: Buffer.from(body, 'base64') }));
}

function certificateProblem(blocks: readonly Block[]): string {
  const [only] = blocks;
  if (only === undefined) {
    return 'tls: failed to find any PEM data in certificate input';
  }
  return blocks.length === 1 && only.type.endsWith('PRIVATE KEY')
    ? 'tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched'
    : `tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following types: ${typesOf(blocks)}`;
}

function keyProblem(blocks: readonly Block[]): string {
  const [only] = blocks;
  if (only === undefined) {
    return 'tls: failed to find any PEM data in key input';
  }
  return blocks.length === 1 && only.type === 'CERTIFICATE'
    ? 'tls: found a certificate rather than a key in the PEM for the private key'
    : `tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of the following types: ${typesOf(blocks)}`;
}

function typesOf(blocks: readonly Block[]): string {
  return `[${blocks.map(({ type }) => type).join(' ')}]`;
}

function matchProblem(certificate: Buffer, key: Buffer): string | undefined {
  const public_ = publicKeyOf(certificate);
  if (public_ === undefined) {
    return 'x509: malformed certificate';
  }
  const private_ = privateKeyOf(key);
  if (private_ === undefined) {
    return 'tls: failed to parse private key';
  }
  if (private_.asymmetricKeyType !== public_.asymmetricKeyType) {
    return 'tls: private key type does not match public key type';
  }
  return createPublicKey(private_).equals(public_) ? undefined : 'tls: private key does not match public key';
}

function publicKeyOf(certificate: Buffer): KeyObject | undefined {
  try {
    return new X509Certificate(certificate).publicKey;
  } catch {
    return undefined;
  }
}

function privateKeyOf(der: Buffer): KeyObject | undefined {
  for (const type of ['pkcs8', 'pkcs1', 'sec1'] as const) {
    try {
      return createPrivateKey({ key: der, format: 'der', type });
    } catch {
      // It has another format.
    }
  }
  return undefined;
}
