import { isAbsolute, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import type { Digest } from './digest.ts';
import { ModuleError } from './errors.ts';
import { completeImageName, parseImageName } from './image-reference.ts';

/** A module in a local file. */
export interface FileReference {
  readonly kind: 'file';
  /** Absolute path. */
  readonly path: string;
  /** The digest that the module is pinned to. */
  readonly digest?: Digest;
  /** The location for messages and status, without the digest. */
  readonly shown: string;
  /** Identifies the location (not the content) in the cache. */
  readonly key: string;
}

/** A module on an HTTP server. */
export interface HttpReference {
  readonly kind: 'http';
  /** May hold credentials or a signed query: never print it, print `shown`. */
  readonly url: URL;
  readonly digest?: Digest;
  /** The location for messages and status, without the digest, credentials, and query string. */
  readonly shown: string;
  readonly key: string;
}

/** A module in an OCI registry. */
export interface RegistryReference {
  readonly kind: 'registry';
  /** `host` or `host:port`. */
  readonly host: string;
  readonly repository: string;
  /** Undefined if the reference has a manifest's digest only. */
  readonly tag: string | undefined;
  /** The digest of the artifact's manifest, which the reference names by `@sha256:…`. */
  readonly manifest?: Digest;
  /** The digest of the module itself; no reference names it. */
  readonly digest?: Digest;
  /** The location for messages and status; with the manifest's digest only if it has no tag. */
  readonly shown: string;
  readonly key: string;
}

/** The location of a module. */
export type ModuleReference = FileReference | HttpReference | RegistryReference;

interface ReferenceOptions {
  /** Absolute folder for relative references such as `file://./x.wasm`. Default: only absolute paths are allowed. */
  readonly baseDir?: string;
}

/** Longest reference: browsers and servers accept URLs of about 8 KiB. */
export const REFERENCE_LIMIT = 8192;

const DIGEST_SUFFIX = /@(sha\d+):([^/@]*)$/i;
/** A registry reference without a scheme: a host with a dot, a port, or `localhost`; then a path. */
const REGISTRY_SHORTHAND = /^(?:[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::[0-9]+)?|[a-z0-9-]+:[0-9]+|localhost)\/[^\s?#]/i;
const SHA256_HEX = /^[0-9a-f]{64}$/i;
const FORMS =
  'registry://host/repository:tag, https://host/policy.wasm, file:///path/policy.wasm, file://./policy.wasm, each with an optional @sha256:<64 hex digits>';
/** The tag of a reference without tag and digest. */
const DEFAULT_TAG = 'latest';

/**
 * Reads `file:///abs`, `file://./relative`, `http(s)://…`, `registry://host/repository:tag` and its short form
 * `host/repository:tag`, each optionally followed by `@sha256:<64 hex>`. In a registry that is the digest of the manifest.
 * @throws ModuleError `reference-invalid`
 */
export function parseReference(text: string, options: ReferenceOptions = {}): ModuleReference {
  if (text.length > REFERENCE_LIMIT) {
    throw new ModuleError(
      'reference-invalid',
      `the module reference is too long: expected at most ${REFERENCE_LIMIT} characters, got ${text.length}`,
    );
  }
  const { location, digest } = splitDigest(text.trim());
  const written = /^([a-z][a-z0-9+.-]*):\/\//i.exec(location)?.[1]?.toLowerCase();
  // Kubewarden reads `ghcr.io/kubewarden/policies/x:v1` as `registry://ghcr.io/…`, as most of its manifests have it.
  const scheme = written ?? (REGISTRY_SHORTHAND.test(location) ? 'registry' : undefined);
  switch (scheme) {
    case 'file':
      return fileReference(location, digest, options.baseDir);
    case 'http':
    case 'https':
      return httpReference(location, digest);
    case 'registry':
    case 'oci':
      return registryReference(
        written === undefined ? location : location.slice(written.length + '://'.length),
        digest,
      );
    default:
      throw new ModuleError(
        'reference-invalid',
        scheme === undefined
          ? `the module reference has no scheme: expected one of ${FORMS}`
          : `the module reference has the unknown scheme ${scheme}:// : expected one of ${FORMS}`,
      );
  }
}

/** A reference with `@sha256:…` at its end, unless it ends in a digest already. */
export function withDigest(text: string, digest: Digest): string {
  const reference = text.trim();
  return DIGEST_SUFFIX.test(reference) ? text : `${reference}@${digest}`;
}

/**
 * Reads the name of an image as in pods: `nginx`, `nginx:1.25`, `ghcr.io/a/b@sha256:…`. Docker Hub is the default.
 * @throws ModuleError `reference-invalid`
 */
export function parseImage(text: string): RegistryReference {
  if (text.length > REFERENCE_LIMIT) {
    throw new ModuleError(
      'reference-invalid',
      `the name of the image is too long: expected at most ${REFERENCE_LIMIT} characters, got ${text.length}`,
    );
  }
  const { location, digest } = splitDigest(text);
  return registryReference(completeImageName(location), digest);
}

/** A URL without user, password, query string and fragment; of a text that is no URL, only the scheme. */
export function redactUrl(text: string): string {
  if (!URL.canParse(text)) {
    return `${/^[a-z][a-z0-9+.-]*:\/\//i.exec(text)?.[0] ?? ''}…`;
  }
  const url = new URL(text);
  return `${url.protocol}//${url.host}${url.pathname}${url.search === '' ? '' : '?…'}`;
}

function splitDigest(text: string): { location: string; digest: Digest | undefined } {
  const match = DIGEST_SUFFIX.exec(text);
  if (match === null) {
    return { location: text, digest: undefined };
  }
  const [suffix, algorithm = '', hex = ''] = match;
  if (algorithm.toLowerCase() !== 'sha256' || !SHA256_HEX.test(hex)) {
    throw new ModuleError(
      'reference-invalid',
      `the reference ends in a malformed digest: expected @sha256: and 64 hexadecimal digits, got ${algorithm} and ${hex.length} characters`,
    );
  }
  return { location: text.slice(0, -suffix.length), digest: `sha256:${hex.toLowerCase()}` };
}

function registryReference(location: string, manifest: Digest | undefined): RegistryReference {
  const { host, repository, tag: named } = parseImageName(location);
  const tag = named ?? (manifest === undefined ? DEFAULT_TAG : undefined);
  const path = `registry://${host}/${repository}`;
  const shown = tag === undefined ? `${path}@${manifest}` : `${path}:${tag}`;
  const reference: RegistryReference = { kind: 'registry', host, repository, tag, shown, key: `${path}:${tag}` };
  return manifest === undefined ? reference : withManifest(reference, manifest);
}

/** The reference with the digest of a manifest, which no registry can change. */
export function withManifest(reference: RegistryReference, manifest: Digest): RegistryReference {
  const { host, repository } = reference;
  return { ...reference, manifest, key: `registry://${host}/${repository}@${manifest}` };
}

function httpReference(location: string, digest: Digest | undefined): HttpReference {
  if (!URL.canParse(location)) {
    throw new ModuleError('reference-invalid', `the module reference is not a valid URL: expected one of ${FORMS}`);
  }
  const url = new URL(location);
  url.hash = '';
  if (!isDecodable(url.username) || !isDecodable(url.password)) {
    throw new ModuleError(
      'reference-invalid',
      `the credentials of ${redactUrl(url.href)} are malformed: write "%" in a user name or password as %25`,
    );
  }
  const anonymous = new URL(url);
  anonymous.username = '';
  anonymous.password = '';
  return {
    kind: 'http',
    url,
    shown: redactUrl(url.href),
    key: anonymous.href,
    ...(digest === undefined ? {} : { digest }),
  };
}

function isDecodable(text: string): boolean {
  try {
    return decodeURIComponent(text).length >= 0;
  } catch {
    return false;
  }
}

function fileReference(location: string, digest: Digest | undefined, baseDir: string | undefined): FileReference {
  const path = filePath(location, baseDir);
  const shown = pathToFileURL(path).href;
  return { kind: 'file', path, shown, key: shown, ...(digest === undefined ? {} : { digest }) };
}

function filePath(location: string, baseDir: string | undefined): string {
  const rest = location.slice('file://'.length);
  if (/[?#\0]/.test(rest)) {
    throw new ModuleError(
      'reference-invalid',
      'the module reference is a file URL with "?" or "#": write these characters of the path as %3F and %23',
    );
  }
  const isRelative = rest === '.' || rest === '..' || rest.startsWith('./') || rest.startsWith('../');
  if (isRelative && (baseDir === undefined || !isAbsolute(baseDir))) {
    throw new ModuleError(
      'reference-invalid',
      `the module reference has a relative path where none is allowed: expected file:///absolute/path, got ${location}`,
    );
  }
  if (!isRelative && !rest.startsWith('/') && !rest.toLowerCase().startsWith('localhost/')) {
    throw new ModuleError(
      'reference-invalid',
      `the module reference names another machine: expected file:///absolute/path or file://./relative/path, got ${location}`,
    );
  }
  try {
    const path = fileURLToPath(isRelative ? new URL(rest, pathToFileURL(join(baseDir ?? '', '/'))) : new URL(location));
    if (path.includes('\0')) {
      throw new TypeError('the path holds a zero byte');
    }
    return path;
  } catch (error) {
    throw new ModuleError('reference-invalid', `the module reference is not a valid file URL: got ${location}`, {
      cause: error,
    });
  }
}
