import { createPublicKey, type KeyObject } from 'node:crypto';

import { ConfigReader, isAbsent, type Mapping, show } from './config-reader.ts';
import type { ValuePath } from './config-reader.ts';

/** Annotations that a signature must have. */
type Annotations = Readonly<Record<string, string>>;

/** The subject of a certificate. A prefix is a URL that ends with a slash. */
type CertificateSubject = { readonly equal: string } | { readonly urlPrefix: string };

/** A signature that an artifact must have. */
export type SignatureRequirement =
  | {
      readonly kind: 'pubKey';
      /** A note of the administrator; it is not compared with anything. */
      readonly owner?: string;
      /** SubjectPublicKeyInfo as PEM, as {@link parsePublicKey} returns it. */
      readonly key: string;
      readonly annotations?: Annotations;
    }
  | {
      readonly kind: 'genericIssuer';
      readonly issuer: string;
      readonly subject: CertificateSubject;
      readonly annotations?: Annotations;
    }
  | {
      readonly kind: 'githubAction';
      readonly owner: string;
      /** Default: all repositories of the owner. */
      readonly repo?: string;
      readonly annotations?: Annotations;
    }
  | CertificateRequirement;

/** A signature with the key of a certificate. `verification.yml` has none; policies require it of images. */
export interface CertificateRequirement {
  readonly kind: 'certificate';
  /** PEM. It leads to a root that is trusted. */
  readonly certificate: string;
  /** Whether a transparency log must have the signature. */
  readonly isLogRequired: boolean;
  readonly annotations?: Annotations;
}

/** The contents of `verification.yml`. Plain data. */
export interface VerificationConfig {
  /** Each of them must be satisfied. */
  readonly allOf: readonly SignatureRequirement[];
  /** So many of them must be satisfied. */
  readonly anyOf?: { readonly minimumMatches: number; readonly signatures: readonly SignatureRequirement[] };
}

/** Largest `verification.yml`: in a cluster it is in a ConfigMap, which holds 1 MiB. */
const VERIFICATION_LIMIT_BYTES = 1024 * 1024;
/** Most requirements: each is compared with every signature. */
const MAX_REQUIREMENTS = 100;
const MAX_ANNOTATIONS = 100;
const MIN_RSA_BITS = 2048;
/** Larger keys need seconds for one signature. */
const MAX_RSA_BITS = 16_384;
const CURVES: ReadonlySet<string | undefined> = new Set(['prime256v1', 'secp384r1', 'secp521r1']);

const GITHUB_OWNER = /^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,99})$/;
const GITHUB_REPOSITORY = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}$/;

/**
 * Reads the text of a `verification.yml` (YAML or JSON).
 * @param fileName for messages
 * @throws ModuleError `verification-invalid`, with line and column
 */
export function parseVerification(text: string, fileName: string): VerificationConfig {
  return new VerificationReader(
    new ConfigReader({ text, fileName, code: 'verification-invalid', maxBytes: VERIFICATION_LIMIT_BYTES }),
  ).read();
}

/** A public key in PEM of a kind that signs artifacts, normalized; undefined if it is none. */
export function parsePublicKey(pem: string): string | undefined {
  // createPublicKey also reads private keys and certificates.
  if (!/^\s*-----BEGIN PUBLIC KEY-----\s[A-Za-z0-9+/=\s]+-----END PUBLIC KEY-----\s*$/.test(pem)) {
    return undefined;
  }
  try {
    const key = createPublicKey({ key: pem, format: 'pem' });
    return isSigningKey(key) ? key.export({ type: 'spki', format: 'pem' }).toString() : undefined;
  } catch {
    return undefined;
  }
}

/** A URL as the prefix of subjects: normalized, with a slash at the end; undefined if it is not fit for that. */
export function parseUrlPrefix(text: string): string | undefined {
  const url = URL.parse(text);
  const isPlain = url !== null && url.username === '' && url.password === '' && !/[?#]/.test(text);
  if (!isPlain || !(url.protocol === 'https:' || url.protocol === 'http:')) {
    return undefined;
  }
  return url.href.endsWith('/') ? url.href : `${url.href}/`;
}

function isSigningKey({ asymmetricKeyType, asymmetricKeyDetails: details }: KeyObject): boolean {
  switch (asymmetricKeyType) {
    case 'ec':
      return CURVES.has(details?.namedCurve);
    case 'rsa': {
      const bits = details?.modulusLength ?? 0;
      return bits >= MIN_RSA_BITS && bits <= MAX_RSA_BITS;
    }
    default:
      return asymmetricKeyType === 'ed25519';
  }
}

class VerificationReader {
  readonly #config: ConfigReader;

  constructor(config: ConfigReader) {
    this.#config = config;
  }

  read(): VerificationConfig {
    const root = this.#config.mapping(this.#config.document(), [], ['apiVersion', 'allOf', 'anyOf']);
    if (root['apiVersion'] !== 'v1') {
      throw this.#config.error(['apiVersion'], `expected v1, got ${show(root['apiVersion'])}`);
    }
    const allOf = this.#requirements(root['allOf'], ['allOf']);
    const anyOf = isAbsent(root['anyOf']) ? undefined : this.#anyOf(root['anyOf']);
    if (allOf.length === 0 && anyOf === undefined) {
      throw this.#config.error([], 'expected at least one signature in allOf or anyOf');
    }
    return { allOf, ...(anyOf === undefined ? {} : { anyOf }) };
  }

  #anyOf(value: unknown): NonNullable<VerificationConfig['anyOf']> {
    const anyOf = this.#config.mapping(value, ['anyOf'], ['minimumMatches', 'signatures']);
    const path = ['anyOf', 'signatures'];
    const signatures = this.#requirements(anyOf['signatures'], path);
    if (signatures.length === 0) {
      throw this.#config.error(path, 'expected at least one signature');
    }
    const minimumMatches = anyOf['minimumMatches'] ?? 1;
    if (typeof minimumMatches !== 'number' || !Number.isInteger(minimumMatches)) {
      throw this.#config.error(['anyOf', 'minimumMatches'], `expected a number, got ${show(minimumMatches)}`);
    }
    if (minimumMatches < 1 || minimumMatches > signatures.length) {
      throw this.#config.error(
        ['anyOf', 'minimumMatches'],
        `expected a number from 1 to ${signatures.length}, the number of signatures, got ${minimumMatches}`,
      );
    }
    return { minimumMatches, signatures };
  }

  #requirements(value: unknown, path: ValuePath): readonly SignatureRequirement[] {
    const requirements = this.#config
      .list(value, path, MAX_REQUIREMENTS)
      .map((entry, index) => this.#requirement(entry, [...path, index]));
    const seen = new Set<string>();
    for (const [index, requirement] of requirements.entries()) {
      // Twice the same one would count as two matches.
      const text = JSON.stringify(requirement.kind === 'pubKey' ? { ...requirement, owner: '' } : requirement);
      if (seen.has(text)) {
        throw this.#config.error([...path, index], 'this signature is required twice: expected different ones');
      }
      seen.add(text);
    }
    return requirements;
  }

  #requirement(value: unknown, path: ValuePath): SignatureRequirement {
    const { kind } = this.#config.mapping(value, path);
    switch (kind) {
      case 'pubKey':
        return this.#pubKey(value, path);
      case 'genericIssuer':
        return this.#genericIssuer(value, path);
      case 'githubAction':
        return this.#githubAction(value, path);
      default:
        throw this.#config.error(
          [...path, 'kind'],
          `expected pubKey, genericIssuer or githubAction, got ${show(kind)}`,
        );
    }
  }

  #pubKey(value: unknown, path: ValuePath): SignatureRequirement {
    const entry = this.#config.mapping(value, path, ['kind', 'owner', 'key', 'annotations']);
    const owner = isAbsent(entry['owner']) ? undefined : this.#config.string(entry['owner'], [...path, 'owner']);
    const key = parsePublicKey(this.#config.string(entry['key'], [...path, 'key']));
    if (key === undefined) {
      throw this.#config.error(
        [...path, 'key'],
        `expected a PEM public key ("-----BEGIN PUBLIC KEY-----…"): ECDSA P-256, P-384 or P-521, Ed25519, or RSA of ${MIN_RSA_BITS} to ${MAX_RSA_BITS} bits`,
      );
    }
    return { kind: 'pubKey', ...(owner === undefined ? {} : { owner }), key, ...this.#annotations(entry, path) };
  }

  #genericIssuer(value: unknown, path: ValuePath): SignatureRequirement {
    const entry = this.#config.mapping(value, path, ['kind', 'issuer', 'subject', 'annotations']);
    return {
      kind: 'genericIssuer',
      issuer: this.#config.string(entry['issuer'], [...path, 'issuer']),
      subject: this.#subject(entry['subject'], [...path, 'subject']),
      ...this.#annotations(entry, path),
    };
  }

  #subject(value: unknown, path: ValuePath): CertificateSubject {
    const subject = this.#config.mapping(value, path, ['equal', 'urlPrefix']);
    if (Object.keys(subject).length !== 1) {
      throw this.#config.error(path, 'expected either equal or urlPrefix');
    }
    if ('equal' in subject) {
      return { equal: this.#config.string(subject['equal'], [...path, 'equal']) };
    }
    const urlPrefix = parseUrlPrefix(this.#config.string(subject['urlPrefix'], [...path, 'urlPrefix']));
    if (urlPrefix === undefined) {
      throw this.#config.error(
        [...path, 'urlPrefix'],
        'expected the URL that subjects begin with (https://host/path), without credentials, query and fragment',
      );
    }
    return { urlPrefix };
  }

  #githubAction(value: unknown, path: ValuePath): SignatureRequirement {
    const entry = this.#config.mapping(value, path, ['kind', 'owner', 'repo', 'annotations']);
    const owner = this.#config.string(entry['owner'], [...path, 'owner']);
    if (!isGithubOwner(owner)) {
      throw this.#config.error([...path, 'owner'], 'expected the name of a GitHub user or organization');
    }
    const repo = isAbsent(entry['repo']) ? undefined : this.#config.string(entry['repo'], [...path, 'repo']);
    if (repo !== undefined && !isGithubRepository(repo)) {
      throw this.#config.error([...path, 'repo'], 'expected the name of a GitHub repository, without its owner');
    }
    return { kind: 'githubAction', owner, ...(repo === undefined ? {} : { repo }), ...this.#annotations(entry, path) };
  }

  #annotations(entry: Mapping, parent: ValuePath): { readonly annotations?: Annotations } {
    if (isAbsent(entry['annotations'])) {
      return {};
    }
    const path = [...parent, 'annotations'];
    const entries = Object.entries(this.#config.mapping(entry['annotations'], path));
    if (entries.length > MAX_ANNOTATIONS) {
      throw this.#config.error(path, `expected at most ${MAX_ANNOTATIONS} annotations, got ${entries.length}`);
    }
    return {
      annotations: Object.fromEntries(
        entries.map(([name, text]) => [name, this.#config.string(text, [...path, name])]),
      ),
    };
  }
}

/** Whether a text can be the name of a GitHub user or organization. */
export function isGithubOwner(text: string): boolean {
  return GITHUB_OWNER.test(text);
}

/** Whether a text can be the name of a GitHub repository. */
export function isGithubRepository(text: string): boolean {
  return GITHUB_REPOSITORY.test(text);
}
