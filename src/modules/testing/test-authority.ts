import 'reflect-metadata';
import { webcrypto } from 'node:crypto';

import {
  BasicConstraintsExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import type { X509Certificate } from '@peculiar/x509';

import { DEFAULT_SOURCES, type SourcesConfig } from '../sources/sources.ts';

/** A private key and its certificate, as PEM. */
export interface ServerIdentity {
  readonly key: string;
  readonly cert: string;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const HOUR_MS = 3_600_000;

/** A certificate authority for tests, valid from an hour ago for a day. */
export class TestAuthority {
  readonly pem: string;
  readonly #certificate: X509Certificate;
  readonly #keys: webcrypto.CryptoKeyPair;

  private constructor(certificate: X509Certificate, keys: webcrypto.CryptoKeyPair) {
    this.#certificate = certificate;
    this.#keys = keys;
    this.pem = certificate.toString('pem');
  }

  static async create(): Promise<TestAuthority> {
    const keys = await newKeys();
    const certificate = await X509CertificateGenerator.createSelfSigned({
      ...validity(),
      name: 'CN=Test authority',
      keys,
      signingAlgorithm: ALGORITHM,
      extensions: [new BasicConstraintsExtension(true, undefined, true)],
    });
    return new TestAuthority(certificate, keys);
  }

  /** Sources that trust it for these hosts. */
  sourcesFor(...hosts: readonly string[]): SourcesConfig {
    const authorities = hosts.map((host) => [host, [{ type: 'Data' as const, data: this.pem }]] as const);
    return { ...DEFAULT_SOURCES, sourceAuthorities: Object.fromEntries(authorities) };
  }

  /** A server's identity. */
  async issue(name = 'localhost'): Promise<ServerIdentity> {
    const keys = await newKeys();
    const certificate = await X509CertificateGenerator.create({
      ...validity(),
      subject: `CN=${name}`,
      issuer: this.#certificate.subject,
      publicKey: keys.publicKey,
      signingKey: this.#keys.privateKey,
      signingAlgorithm: ALGORITHM,
      extensions: [new SubjectAlternativeNameExtension([{ type: 'dns', value: name }])],
    });
    const key = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
    return { key: PemConverter.encode(key, 'PRIVATE KEY'), cert: certificate.toString('pem') };
  }
}

async function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}

function validity(): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(Date.now() - HOUR_MS), notAfter: new Date(Date.now() + 24 * HOUR_MS) };
}
