// A client of the registry API (https://github.com/opencontainers/distribution-spec) with token and basic authentication
// (https://distribution.github.io/distribution/spec/auth/token/).
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

import { isJsonObject, own, parseJson, textOf, valueAt } from '../../values/index.ts';
import { ModuleError } from '../reference/errors.ts';
import { basicAuthorization, isBearerToken } from '../http/authorization.ts';
import { retryAfterMs, statusError } from '../http/http-status.ts';
import type { HttpTransfer, ProgressListener, TransferRequest, TransferResponse } from '../http/http-transfer.ts';
import { parseChallenges } from './challenge.ts';
import type { RegistryCredentials } from './docker-config.ts';
import { type ArtifactSource, type RawManifest, taggedReferrers } from './artifact-source.ts';
import { type Digest, digestOf } from '../reference/digest.ts';
import { type Descriptor, MANIFEST_MEDIA_TYPES, MAX_MANIFEST_BYTES, OCI_INDEX, parseManifest } from './manifest.ts';

/** Most repetitions of a request that a registry asks to repeat later. */
const MAX_RETRIES = 2;
/** Longest delay before such a repetition; when a registry asks for more, the pull fails and is tried again later. Milliseconds. */
const MAX_RETRY_DELAY_MS = 10_000;
/** Largest answer of a token service: tokens have a few KiB. Bytes. */
const MAX_TOKEN_BYTES = 256 * 1024;
/** Largest error that is read. Bytes. */
const MAX_ERROR_BYTES = 64 * 1024;
/** Most pages of a list of referrers, which may be of any length. */
const MAX_REFERRER_PAGES = 10;
/** Statuses of registries without an API for referrers. */
const NO_REFERRERS_API: ReadonlySet<number> = new Set([400, 404, 405, 406, 501]);
/** Error codes of the distribution spec: only these are repeated, since an answer may hold anything. */
const ERROR_CODES: ReadonlySet<string> = new Set([
  'BLOB_UNKNOWN',
  'BLOB_UPLOAD_INVALID',
  'BLOB_UPLOAD_UNKNOWN',
  'DIGEST_INVALID',
  'MANIFEST_BLOB_UNKNOWN',
  'MANIFEST_INVALID',
  'MANIFEST_UNKNOWN',
  'NAME_INVALID',
  'NAME_UNKNOWN',
  'SIZE_INVALID',
  'UNAUTHORIZED',
  'DENIED',
  'UNSUPPORTED',
  'TOOMANYREQUESTS',
]);

export interface RegistryClientOptions {
  readonly transfer: HttpTransfer;
  /** The artifact, for messages. */
  readonly shown: string;
  /** `https://host:port`, and the path of a mirror if it has one, without a slash at the end. */
  readonly origin: string;
  readonly repository: string;
  readonly credentials: RegistryCredentials | undefined;
  /** Whether requests push, which tokens must allow. Default: false. */
  readonly isPush?: boolean;
}

/** A request to the registry, or to an upload location that it named. */
export type RepositoryRequest = Omit<TransferRequest, 'url' | 'authorization'> & {
  /** A path below that of the repository, or a whole URL. */
  readonly target: string | URL;
};

/** One repository of a registry. */
export class RegistryClient implements ArtifactSource {
  readonly #options: RegistryClientOptions;
  #authorization: string | undefined;

  constructor(options: RegistryClientOptions) {
    this.#options = options;
    const { credentials } = options;
    this.#authorization = credentials?.kind === 'bearer' ? `Bearer ${credentials.token}` : undefined;
  }

  /**
   * A manifest by tag or digest.
   * @throws ModuleError `source-…`, `digest-mismatch`, `manifest-invalid` (too large)
   */
  async manifest(reference: string): Promise<RawManifest> {
    const { shown } = this.#options;
    const { response } = await this.#get(`manifests/${reference}`, MANIFEST_MEDIA_TYPES.join(', '));
    const bytes = await this.#readManifest(response);
    const digest = digestOf(bytes);
    if (reference.startsWith('sha256:') && reference !== digest) {
      throw new ModuleError(
        'digest-mismatch',
        `the manifest of ${shown} is another one: expected ${reference}, got ${digest}`,
      );
    }
    return { bytes, digest, contentType: response.headers['content-type'] };
  }

  /** The content of a descriptor. @throws ModuleError `source-…`, `size-mismatch`, `digest-mismatch` */
  async blob({ digest, size }: Descriptor, onProgress: ProgressListener | undefined): Promise<Uint8Array> {
    const { transfer, shown } = this.#options;
    await transfer.reserve(size);
    const { response } = await this.#get(`blobs/${digest}`, 'application/octet-stream, */*;q=0.1');
    const announced = response.headers['content-length'];
    if (announced !== undefined && Number(announced) !== size) {
      throw sizeMismatch(shown, size, `${Number(announced)}`);
    }
    const hash = createHash('sha256');
    let received = 0;
    const onChunk = (chunk: Uint8Array): void => {
      received += chunk.length;
      if (received > size) {
        throw sizeMismatch(shown, size, 'more');
      }
      hash.update(chunk);
      onProgress?.(received, size);
    };
    const bytes = await transfer.read(response, { maxBytes: Number.MAX_SAFE_INTEGER, onChunk });
    if (bytes.length !== size) {
      throw sizeMismatch(shown, size, `${bytes.length}`);
    }
    const got = `sha256:${hash.digest('hex')}`;
    if (got !== digest) {
      throw new ModuleError('digest-mismatch', `a blob of ${shown} has other bytes: expected ${digest}, got ${got}`);
    }
    return bytes;
  }

  /** Sends a request, with credentials if it goes to the registry itself. Resolves with any status. */
  async send({ target, ...request }: RepositoryRequest): Promise<TransferResponse> {
    const { origin, repository, transfer } = this.#options;
    const registry = new URL(origin);
    const url = target instanceof URL ? target : new URL(`${origin}/v2/${repository}/${target}`);
    return url.origin === registry.origin
      ? await this.#authorized({ ...request, url })
      : await transfer.send({ ...request, url, isFromAnswer: true });
  }

  /** The error for an answer with an unexpected status. */
  async failure(answer: TransferResponse): Promise<ModuleError> {
    const { shown, isPush = false } = this.#options;
    const { response, url } = answer;
    const detail = await this.#errorCodes(answer);
    return statusError(`${url.host}, for ${shown},`, response.statusCode ?? 0, response.headers, { detail, isPush });
  }

  /**
   * The referrers of a manifest, by the registry's API or by their tag.
   * @throws ModuleError `source-…`, `manifest-invalid`
   */
  async referrers(digest: Digest): Promise<readonly Descriptor[]> {
    const { transfer, shown } = this.#options;
    const found: Descriptor[] = [];
    // Of all pages: each alone may be as large as a manifest.
    let leftBytes = MAX_MANIFEST_BYTES;
    let target: string | URL | undefined = `referrers/${digest}`;
    for (let page = 0; target !== undefined && page < MAX_REFERRER_PAGES; page++) {
      const answer: TransferResponse = await this.send({ target, headers: { accept: OCI_INDEX } });
      const { response } = answer;
      const status = response.statusCode ?? 0;
      const isList = status === 200 && response.headers['content-type']?.split(';', 1)[0]?.trim() === OCI_INDEX;
      if (page === 0 && (NO_REFERRERS_API.has(status) || (status === 200 && !isList))) {
        response.destroy();
        transfer.limits.idle();
        return await taggedReferrers(this, digest, shown);
      }
      if (!isList) {
        throw await this.failure(answer);
      }
      const bytes = await this.#readManifest(response, leftBytes);
      leftBytes -= bytes.length;
      const list = parseManifest(bytes, `the referrers of ${shown}`, OCI_INDEX);
      found.push(...(list.kind === 'index' ? list.manifests : []));
      target = nextPage(response.headers.link, answer.url);
    }
    return found;
  }

  async #readManifest(response: IncomingMessage, maxBytes: number = MAX_MANIFEST_BYTES): Promise<Buffer> {
    const { transfer, shown } = this.#options;
    return await transfer
      .read(response, { maxBytes })
      .catch((error: unknown) => Promise.reject(manifestTooLarge(error, shown)));
  }

  async #get(path: string, accept: string): Promise<TransferResponse> {
    const answer = await this.send({ target: path, headers: { accept } });
    if (answer.response.statusCode === 200) {
      return answer;
    }
    throw await this.failure(answer);
  }

  /** Sends a request, again with a token or password if the registry requires one, and again later if it asks for that. */
  async #authorized(request: TransferRequest): Promise<TransferResponse> {
    const { transfer } = this.#options;
    let hasAuthenticated = false;
    for (let retries = 0; ;) {
      const answer = await transfer.send({ ...request, authorization: this.#authorization });
      const { statusCode = 0, headers } = answer.response;
      if (statusCode === 401 && !hasAuthenticated && answer.url.origin === request.url.origin) {
        hasAuthenticated = true;
        const authorization = await this.#authenticate(headers['www-authenticate'], request.url);
        if (authorization === undefined) {
          return answer;
        }
        answer.response.destroy();
        this.#authorization = authorization;
        continue;
      }
      const wait = statusCode === 429 || statusCode === 503 ? retryAfterMs(headers) : undefined;
      if (
        wait === undefined ||
        retries === MAX_RETRIES ||
        wait > Math.min(MAX_RETRY_DELAY_MS, transfer.limits.remainingMs)
      ) {
        return answer;
      }
      retries += 1;
      answer.response.destroy();
      transfer.limits.idle();
      await delay(wait, undefined, { signal: transfer.limits.signal });
    }
  }

  /** The header `Authorization` for a challenge; undefined when there is none that the credentials satisfy. */
  async #authenticate(header: string | undefined, url: URL): Promise<string | undefined> {
    const { credentials } = this.#options;
    const challenges = parseChallenges(header);
    const bearer = challenges.find(({ scheme }) => scheme === 'bearer');
    if (bearer !== undefined && credentials?.kind !== 'bearer') {
      return await this.#token(bearer.parameters, url);
    }
    return challenges.some(({ scheme }) => scheme === 'basic') && credentials?.kind === 'password'
      ? basicAuthorization(credentials.username, credentials.password)
      : undefined;
  }

  /** @throws ModuleError `source-…`, `token-invalid` */
  async #token(parameters: ReadonlyMap<string, string>, registry: URL): Promise<string> {
    const { transfer, shown, repository, credentials, isPush = false } = this.#options;
    const realm = URL.parse(parameters.get('realm') ?? '', registry.href);
    if (realm === null || !(realm.protocol === 'https:' || realm.protocol === registry.protocol)) {
      throw this.#tokenInvalid(registry, 'expected it to name its token service by an https:// URL');
    }
    realm.username = '';
    realm.password = '';
    // The first request of a push only reads, so its challenge asks for less than the push needs.
    const challenged = isPush ? undefined : parameters.get('scope');
    const scope = challenged ?? `repository:${repository}:${isPush ? 'pull,push' : 'pull'}`;
    const service = parameters.get('service');
    const { response, url } = await transfer.send(tokenRequest(realm, { scope, service }, credentials));
    if (response.statusCode !== 200) {
      response.destroy();
      throw statusError(
        `the token service ${url.host} of ${registry.host}, for ${shown},`,
        response.statusCode ?? 0,
        response.headers,
      );
    }
    const bytes = await transfer.read(response, { maxBytes: MAX_TOKEN_BYTES }).catch((error: unknown) => {
      throw isTooLarge(error)
        ? this.#tokenInvalid(registry, `its token service answered more than ${MAX_TOKEN_BYTES} bytes`)
        : error;
    });
    let answer: unknown;
    try {
      answer = parseJson(bytes.toString('utf8'));
    } catch {
      throw this.#tokenInvalid(registry, 'its token service answered what is not JSON');
    }
    const token = isJsonObject(answer) ? textOf(own(answer, 'token')) || textOf(own(answer, 'access_token')) : '';
    if (!isBearerToken(token)) {
      throw this.#tokenInvalid(registry, 'its token service answered without a well-formed token');
    }
    return `Bearer ${token}`;
  }

  #tokenInvalid({ host }: URL, problem: string): ModuleError {
    return new ModuleError('token-invalid', `no token for ${this.#options.shown} from ${host}: ${problem}`);
  }

  /** The known error codes of an answer, for a message. */
  async #errorCodes({ response }: TransferResponse): Promise<string> {
    try {
      const { transfer } = this.#options;
      const body = parseJson((await transfer.read(response, { maxBytes: MAX_ERROR_BYTES })).toString('utf8'));
      const errors = valueAt(body, 'errors');
      const codes = (Array.isArray(errors) ? errors : []).map((error) => textOf(valueAt(error, 'code')));
      const known = [...new Set(codes.filter((code) => ERROR_CODES.has(code)))];
      return known.length === 0 ? '' : ` (${known.join(', ')})`;
    } catch {
      response.destroy();
      return '';
    }
  }
}

/** The URL of the next page of a list, on the same origin; undefined at the end. */
function nextPage(link: string | string[] | undefined, url: URL): URL | undefined {
  const target = /^\s*<([^<>]{1,2000})>\s*;\s*rel="?next"?\s*$/.exec(String(link ?? ''))?.[1];
  const next = target === undefined ? null : URL.parse(target, url.href);
  return next !== null && next.origin === url.origin ? next : undefined;
}

function tokenRequest(
  realm: URL,
  { scope, service }: { readonly scope: string; readonly service: string | undefined },
  credentials: RegistryCredentials | undefined,
): TransferRequest {
  if (credentials?.kind === 'refresh-token') {
    const form = new URLSearchParams({
      grant_type: 'refresh_token',
      client_id: 'portcullis',
      refresh_token: credentials.token,
      scope,
      ...(service === undefined ? {} : { service }),
    });
    return {
      url: realm,
      isFromAnswer: true,
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: Buffer.from(form.toString()),
    };
  }
  const url = new URL(realm);
  url.searchParams.set('scope', scope);
  if (service !== undefined) {
    url.searchParams.set('service', service);
  }
  return credentials?.kind === 'password'
    ? { url, isFromAnswer: true, authorization: basicAuthorization(credentials.username, credentials.password) }
    : { url, isFromAnswer: true };
}

function isTooLarge(error: unknown): boolean {
  return error instanceof ModuleError && error.code === 'module-too-large';
}

function manifestTooLarge(error: unknown, shown: string): unknown {
  return isTooLarge(error)
    ? new ModuleError(
        'manifest-invalid',
        `the manifest of ${shown} is too large: expected at most ${MAX_MANIFEST_BYTES} bytes`,
      )
    : error;
}

function sizeMismatch(shown: string, size: number, got: string): ModuleError {
  return new ModuleError(
    'size-mismatch',
    `a blob of ${shown} has another size than its manifest says: expected ${size} bytes, got ${got}`,
  );
}
