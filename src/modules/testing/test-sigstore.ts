// A certificate authority, a certificate log and a transparency log for keyless signatures, as those of Sigstore, and its trust root.
import 'reflect-metadata';
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  webcrypto,
} from 'node:crypto';

import {
  BasicConstraintsExtension,
  ExtendedKeyUsageExtension,
  Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import type { X509Certificate } from '@peculiar/x509';

import type { ArtifactSigner, TestLogEntry } from './test-signer.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const CODE_SIGNING = '1.3.6.1.5.5.7.3.3';
const ISSUER_OID = '1.3.6.1.4.1.57264.1.8';
const OLD_ISSUER_OID = '1.3.6.1.4.1.57264.1.1';
const SCT_OID = '1.3.6.1.4.1.11129.2.4.2';
const MINUTE_MS = 60_000;
const LOG_NAME = 'log.example.com';

/** A log: a key whose identifier is its hash. */
interface TestLog {
  readonly privateKey: KeyObject;
  readonly der: Buffer;
  readonly id: Buffer;
}

export interface CertificateOptions {
  readonly issuer: string;
  /** URLs and e-mail addresses. */
  readonly subjects: readonly string[];
  /** Default: ten minutes from now on. */
  readonly notBefore?: Date;
  /** Default: code signing. */
  readonly extendedKeyUsage?: string;
  /** Whether the certificate has a timestamp of the certificate log. Default: true. */
  readonly isLogged?: boolean;
  /** Whether the issuer is in the extension of before 2023. Default: false. */
  readonly hasOldIssuer?: boolean;
  /** Time of the log entry. Default: now. */
  readonly signedAt?: Date;
}

export class TestSigstore {
  readonly #root: X509Certificate;
  readonly #keys: webcrypto.CryptoKeyPair;
  readonly #certificateLog = newLog();
  readonly #log = newLog();

  private constructor(root: X509Certificate, keys: webcrypto.CryptoKeyPair) {
    this.#root = root;
    this.#keys = keys;
  }

  static async create(): Promise<TestSigstore> {
    const keys = await newKeys();
    const root = await X509CertificateGenerator.createSelfSigned({
      name: 'CN=Test signatures',
      notBefore: new Date(Date.now() - 60 * MINUTE_MS),
      notAfter: new Date(Date.now() + 60 * MINUTE_MS),
      keys,
      signingAlgorithm: ALGORITHM,
      extensions: [
        new BasicConstraintsExtension(true, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign),
      ],
    });
    return new TestSigstore(root, keys);
  }

  /** The text of a `TrustedRoot`. */
  get trustedRoot(): string {
    return JSON.stringify({
      mediaType: 'application/vnd.dev.sigstore.trustedroot+json;version=0.1',
      tlogs: [logInstance(this.#log)],
      certificateAuthorities: [
        {
          subject: { organization: 'example.com', commonName: 'Test signatures' },
          uri: 'https://ca.example.com',
          certChain: { certificates: [{ rawBytes: Buffer.from(this.#root.rawData).toString('base64') }] },
          validFor: { start: new Date(Date.now() - 60 * MINUTE_MS).toISOString() },
        },
      ],
      ctlogs: [logInstance(this.#certificateLog)],
      timestampAuthorities: [],
    });
  }

  /** A signer with a new certificate. */
  async signer(options: CertificateOptions): Promise<ArtifactSigner> {
    const keys = await newKeys();
    const certificate = await this.#certificate(keys.publicKey, options);
    const key = createPrivateKey({
      key: Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)),
      format: 'der',
      type: 'pkcs8',
    });
    const pem = certificate.toString('pem');
    return {
      sign: (bytes) => sign('sha256', bytes, key),
      certificate: { pem, der: Buffer.from(certificate.rawData) },
      logEntry: (body) => this.#entry(body, options.signedAt ?? new Date()),
    };
  }

  async #certificate(publicKey: webcrypto.CryptoKey, options: CertificateOptions): Promise<X509Certificate> {
    const { issuer, subjects, notBefore = new Date(Date.now() - MINUTE_MS), hasOldIssuer = false } = options;
    const common = {
      serialNumber: '0123456789',
      subject: '',
      issuer: this.#root.subject,
      notBefore,
      notAfter: new Date(notBefore.getTime() + 10 * MINUTE_MS),
      publicKey,
      signingKey: this.#keys.privateKey,
      signingAlgorithm: ALGORITHM,
    };
    const extensions = [
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([options.extendedKeyUsage ?? CODE_SIGNING]),
      new SubjectAlternativeNameExtension(
        subjects.map((value) => ({ type: value.includes('://') ? ('url' as const) : ('email' as const), value })),
        true,
      ),
      hasOldIssuer
        ? new Extension(OLD_ISSUER_OID, false, Buffer.from(issuer))
        : new Extension(ISSUER_OID, false, derText(issuer)),
    ];
    const unlogged = await X509CertificateGenerator.create({ ...common, extensions });
    if (options.isLogged === false) {
      return unlogged;
    }
    return await X509CertificateGenerator.create({
      ...common,
      extensions: [...extensions, new Extension(SCT_OID, false, this.#certificateTimestamp(unlogged))],
    });
  }

  /** The timestamp of the certificate log (RFC 6962, section 3.2), for a certificate without one. */
  #certificateTimestamp(unlogged: X509Certificate): Buffer {
    const { privateKey, id } = this.#certificateLog;
    const time = Buffer.alloc(8);
    time.writeBigUInt64BE(BigInt(Date.now()));
    const issuerKey = createHash('sha256').update(Buffer.from(this.#root.publicKey.rawData)).digest();
    const tbs = tbsOf(Buffer.from(unlogged.rawData));
    const signed = Buffer.concat([
      Buffer.from([0, 0]),
      time,
      uint(1, 2),
      issuerKey,
      uint(tbs.length, 3),
      tbs,
      uint(0, 2),
    ]);
    const signature = sign('sha256', signed, privateKey);
    const timestamp = Buffer.concat([
      Buffer.from([0]),
      id,
      time,
      uint(0, 2),
      Buffer.from([4, 3]),
      uint(signature.length, 2),
      signature,
    ]);
    return derValue(0x04, Buffer.concat([uint(timestamp.length + 2, 2), uint(timestamp.length, 2), timestamp]));
  }

  /** An entry of the transparency log, which has no other. */
  #entry(content: object, at: Date): TestLogEntry {
    const { privateKey, id } = this.#log;
    const body = Buffer.from(JSON.stringify(content));
    const integratedTime = Math.floor(at.getTime() / 1000);
    const promised = JSON.stringify({
      body: body.toString('base64'),
      integratedTime,
      logID: id.toString('hex'),
      logIndex: 0,
    });
    const rootHash = createHash('sha256')
      .update(Buffer.from([0]))
      .update(body)
      .digest('base64');
    const note = `${LOG_NAME}\n1\n${rootHash}\n`;
    const noteSignature = Buffer.concat([id.subarray(0, 4), sign('sha256', Buffer.from(note), privateKey)]);
    return {
      body,
      integratedTime,
      logId: id,
      signedEntryTimestamp: sign('sha256', Buffer.from(promised), privateKey),
      rootHash,
      checkpoint: `${note}\n\u2014 ${LOG_NAME} ${noteSignature.toString('base64')}\n`,
    };
  }
}

function newLog(): TestLog {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const der = createPublicKey(privateKey).export({ type: 'spki', format: 'der' });
  return { privateKey, der, id: createHash('sha256').update(der).digest() };
}

function logInstance({ der, id }: TestLog): object {
  return {
    baseUrl: `https://${LOG_NAME}`,
    hashAlgorithm: 'SHA2_256',
    publicKey: {
      rawBytes: der.toString('base64'),
      keyDetails: 'PKIX_ECDSA_P256_SHA_256',
      validFor: { start: new Date(Date.now() - 60 * MINUTE_MS).toISOString() },
    },
    logId: { keyId: id.toString('base64') },
  };
}

async function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}

function uint(value: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  buffer.writeUIntBE(value, 0, bytes);
  return buffer;
}

function derText(text: string): Buffer {
  return derValue(0x0c, Buffer.from(text));
}

function derValue(tag: number, value: Buffer): Buffer {
  const { length } = value;
  const header = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...header]), value]);
}

/** The signed part of a certificate: the first value in its sequence. */
function tbsOf(der: Buffer): Buffer {
  const start = 2 + ((der[1] ?? 0) & 0x80 ? (der[1] ?? 0) & 0x7f : 0);
  const lengthBytes = (der[start + 1] ?? 0) & 0x80 ? (der[start + 1] ?? 0) & 0x7f : 0;
  const length = lengthBytes === 0 ? (der[start + 1] ?? 0) : der.readUIntBE(start + 2, lengthBytes);
  return der.subarray(start, start + 2 + lengthBytes + length);
}
