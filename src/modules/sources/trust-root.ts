import { createPublicKey, X509Certificate } from 'node:crypto';

import { isJsonObject, type JsonObject, parseJson } from '../../values/index.ts';
import { ConfigReader, isAbsent, type Mapping } from './config-reader.ts';
import { ModuleError } from '../reference/errors.ts';
import type { ValuePath } from './config-reader.ts';

/** The certificate authorities and logs that keyless signatures are verified with. Plain data. */
export interface TrustRoot {
  /** A `TrustedRoot` of Sigstore's protobuf-specs, as JSON. */
  readonly trustedRoot: JsonObject;
}

/** Largest trust root: that of Sigstore's public instance has 10 KiB. Bytes. */
const TRUST_ROOT_LIMIT_BYTES = 1024 * 1024;
/** Most authorities, and most logs, of each kind. */
const MAX_ENTRIES = 100;
/** Most certificates of an authority. */
const MAX_CHAIN = 10;
const CLIENT_TRUST_CONFIG = 'application/vnd.dev.sigstore.clienttrustconfig.';
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/**
 * Reads a trust root: a `ClientTrustConfig` or a `TrustedRoot` of Sigstore, as JSON.
 * @param fileName for messages
 * @throws ModuleError `trust-root-invalid`, with line and column
 */
export function parseTrustRoot(text: string, fileName: string): TrustRoot {
  const reader = new ConfigReader({ text, fileName, code: 'trust-root-invalid', maxBytes: TRUST_ROOT_LIMIT_BYTES });
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (error) {
    throw new ModuleError('trust-root-invalid', `${fileName}: not valid JSON: expected a trust root of Sigstore`, {
      cause: error,
    });
  }
  return new TrustRootReader(reader).read(value);
}

class TrustRootReader {
  readonly #config: ConfigReader;

  constructor(config: ConfigReader) {
    this.#config = config;
  }

  read(value: unknown): TrustRoot {
    const root = this.#config.mapping(value, []);
    const isClientConfig = typeof root['mediaType'] === 'string' && root['mediaType'].startsWith(CLIENT_TRUST_CONFIG);
    const path = isClientConfig ? ['trustedRoot'] : [];
    const trustedRoot = this.#config.mapping(isClientConfig ? root['trustedRoot'] : root, path);
    const authorities = this.#entries(trustedRoot, 'certificateAuthorities', path, (entry, at) =>
      this.#authority(entry, at),
    );
    const timestamps = this.#entries(trustedRoot, 'timestampAuthorities', path, (entry, at) =>
      this.#authority(entry, at),
    );
    const logs = this.#entries(trustedRoot, 'tlogs', path, (entry, at) => this.#log(entry, at));
    this.#entries(trustedRoot, 'ctlogs', path, (entry, at) => this.#log(entry, at));
    if (authorities === 0 || logs + timestamps === 0 || !isJsonObject(trustedRoot)) {
      throw this.#config.error(
        path,
        'expected certificateAuthorities, and tlogs or timestampAuthorities: is this a TrustedRoot or ClientTrustConfig of Sigstore?',
      );
    }
    return { trustedRoot };
  }

  /** Checks the entries of a list, and returns their number. */
  #entries(root: Mapping, name: string, parent: ValuePath, check: (entry: Mapping, path: ValuePath) => void): number {
    const path = [...parent, name];
    const entries = this.#config.list(root[name], path, MAX_ENTRIES);
    for (const [index, entry] of entries.entries()) {
      check(this.#config.mapping(entry, [...path, index]), [...path, index]);
    }
    return entries.length;
  }

  #authority(entry: Mapping, path: ValuePath): void {
    const chainPath = [...path, 'certChain'];
    const chain = this.#config.mapping(entry['certChain'], chainPath);
    const certificates = this.#config.list(chain['certificates'], [...chainPath, 'certificates'], MAX_CHAIN);
    if (certificates.length === 0) {
      throw this.#config.error([...chainPath, 'certificates'], 'expected at least one certificate');
    }
    for (const [index, certificate] of certificates.entries()) {
      const at = [...chainPath, 'certificates', index];
      this.#der(this.#config.mapping(certificate, at)['rawBytes'], [...at, 'rawBytes'], 'certificate');
    }
    this.#period(entry['validFor'], [...path, 'validFor']);
  }

  #log(entry: Mapping, path: ValuePath): void {
    const keyPath = [...path, 'publicKey'];
    const key = this.#config.mapping(entry['publicKey'], keyPath);
    this.#der(key['rawBytes'], [...keyPath, 'rawBytes'], 'public key');
    this.#period(key['validFor'], [...keyPath, 'validFor']);
    const idPath = [...path, 'logId'];
    const id = this.#config.string(this.#config.mapping(entry['logId'], idPath)['keyId'], [...idPath, 'keyId']);
    if (!BASE64.test(id)) {
      throw this.#config.error([...idPath, 'keyId'], 'expected base64');
    }
  }

  #der(value: unknown, path: ValuePath, what: 'certificate' | 'public key'): void {
    const text = this.#config.string(value, path);
    try {
      if (!BASE64.test(text)) {
        throw new TypeError('not base64');
      }
      const key = Buffer.from(text, 'base64');
      if (what === 'certificate') {
        void new X509Certificate(key);
      } else {
        createPublicKey({ key, format: 'der', type: 'spki' });
      }
    } catch {
      throw this.#config.error(path, `expected a ${what} (DER in base64)`);
    }
  }

  #period(value: unknown, path: ValuePath): void {
    if (isAbsent(value)) {
      return;
    }
    const period = this.#config.mapping(value, path, ['start', 'end']);
    for (const name of ['start', 'end'].filter((key) => !isAbsent(period[key]))) {
      if (Number.isNaN(Date.parse(this.#config.string(period[name], [...path, name])))) {
        throw this.#config.error([...path, name], 'expected a time (RFC 3339)');
      }
    }
  }
}
