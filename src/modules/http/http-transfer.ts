import { type ClientRequest, Agent as HttpAgent, request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { type AgentOptions, Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from 'node:https';
import type { LookupFunction } from 'node:net';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';

import { ModuleError, systemCode } from '../reference/errors.ts';
import { redactUrl } from '../reference/module-reference.ts';
import { authoritiesOf } from '../sources/sources.ts';
import type { SourcesConfig } from '../sources/sources.ts';
import { assertProxiedHost, tenantLookup } from '../sources/tenant-sources.ts';
import { needsNoProxy } from './no-proxy.ts';
import { type FetchTimeouts, TimeLimits } from './time-limits.ts';

/** Most redirects of one request: a release download takes two, a mirror in front of it one more. */
export const MAX_REDIRECTS = 5;

/** Part of a body that is sent at once: each counts as progress for the idle timeout. Bytes. */
const BODY_PART_BYTES = 64 * 1024;
/** Most contexts that are kept: hosts with authorities of their own are few, and files of authorities change rarely. */
const MAX_CONTEXTS = 32;

const REDIRECT_STATUS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const TLS_FAILURE =
  /^(ERR_TLS|ERR_SSL|EPROTO|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH)/;

/** Called as bytes arrive; `total` is the announced length. */
export type ProgressListener = (received: number, total?: number) => void;

/** Waits until a number of bytes may be in memory. @throws the signal's reason */
export type ReserveMemory = (bytes: number, signal: AbortSignal) => Promise<void>;

/** How to reach servers. */
export interface TransferOptions {
  readonly sources: SourcesConfig;
  readonly timeouts?: FetchTimeouts;
  readonly signal?: AbortSignal;
  /** Refuses addresses that are not public, also behind redirects and DNS names, except hosts in `tenantHosts`. Default: false. */
  readonly isForTenant?: boolean;
  /** Default: the resolver of the system. */
  readonly lookup?: LookupFunction;
  /** Waits until a module of this size may be in memory. Default: at once. */
  readonly reserve?: ReserveMemory;
}

/** One request. */
export interface TransferRequest {
  /** Without credentials. */
  readonly url: URL;
  /** Whether an answer named the URL. Default: no. */
  readonly isFromAnswer?: boolean;
  /** Default: GET. */
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT';
  readonly headers?: Readonly<Record<string, string>>;
  /** The header `Authorization`, sent to the origin of `url` only. */
  readonly authorization?: string | undefined;
  readonly body?: Uint8Array;
  /** Called as the body is sent. */
  readonly onSent?: ProgressListener | undefined;
}

/** An answer whose body is not read yet. */
export interface TransferResponse {
  readonly response: IncomingMessage;
  /** The URL that answered, after redirects. */
  readonly url: URL;
}

/** How much of a body to read. */
export interface BodyOptions {
  readonly maxBytes: number;
  /** Called with each chunk; may throw to end the transfer. */
  readonly onChunk?: (chunk: Uint8Array) => void;
  readonly onProgress?: ProgressListener | undefined;
}

/**
 * HTTP requests that belong together, such as those of one download, under the same time limits. Follows redirects. Errors
 * name what is transferred, never credentials or query strings.
 */
export class HttpTransfer {
  readonly limits: TimeLimits;
  readonly #shown: string;
  readonly #options: TransferOptions;

  /** @param shown what is transferred, for messages */
  private constructor(shown: string, options: TransferOptions) {
    this.#shown = shown;
    this.#options = options;
    this.limits = new TimeLimits(shown, options.timeouts ?? {}, options.signal);
  }

  /**
   * Runs the requests of one transfer.
   * @throws ModuleError `source-…` (`source-forbidden` only for tenants), `module-too-large`, `file-unreadable` (an
   * authority), what `work` throws; the signal's reason when it is aborted
   */
  static async run<T>(
    shown: string,
    options: TransferOptions,
    work: (transfer: HttpTransfer) => Promise<T>,
  ): Promise<T> {
    const transfer = new HttpTransfer(shown, options);
    try {
      return await work(transfer);
    } catch (error) {
      transfer.limits.signal.throwIfAborted();
      throw error;
    } finally {
      transfer.limits.end();
    }
  }

  /** Sends a request and follows redirects. Resolves with any other status, and the URL that answered. */
  async send(request: TransferRequest): Promise<TransferResponse> {
    let { url } = request;
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
      const response = await this.#sendOnce(url, request);
      if (!REDIRECT_STATUS.has(response.statusCode ?? 0)) {
        return { response, url };
      }
      const next = redirectTarget(url, response.headers.location);
      response.destroy();
      if (request.body !== undefined && next.origin !== request.url.origin) {
        throw new ModuleError(
          'source-redirect',
          `${redactUrl(url.href)} redirects a request with content to ${next.origin}: expected to stay on ${request.url.origin}`,
        );
      }
      url = next;
    }
    throw new ModuleError(
      'source-redirect',
      `${this.#shown} redirects too often: expected at most ${MAX_REDIRECTS} redirects. Use the final address`,
    );
  }

  /** Waits until a module of this size may be in memory. */
  async reserve(bytes: number): Promise<void> {
    const { reserve } = this.#options;
    if (reserve !== undefined) {
      await this.limits.paused(() => reserve(bytes, this.limits.signal));
    }
  }

  /** Reads a whole body. */
  async read(response: IncomingMessage, { maxBytes, onChunk, onProgress }: BodyOptions): Promise<Buffer> {
    const total = announcedLength(response);
    if (total !== undefined && total > maxBytes) {
      throw this.#tooLarge(maxBytes, `${total}`);
    }
    const chunks: Uint8Array[] = [];
    let received = 0;
    try {
      for await (const chunk of response as AsyncIterable<Buffer>) {
        this.limits.received();
        chunks.push(chunk);
        received += chunk.length;
        if (received > maxBytes) {
          throw this.#tooLarge(maxBytes, 'more');
        }
        onChunk?.(chunk);
        onProgress?.(received, total);
      }
    } catch (error) {
      throw this.#failed(error, '');
    }
    if (!response.complete || (total !== undefined && total !== received)) {
      throw new ModuleError(
        'source-truncated',
        `${this.#shown} ended early: expected ${total ?? 'a complete answer'}${total === undefined ? '' : ' bytes'}, got ${received} bytes`,
      );
    }
    this.limits.idle();
    return Buffer.concat(chunks);
  }

  async #sendOnce(url: URL, request: TransferRequest): Promise<IncomingMessage> {
    const { sources, isForTenant = false, lookup } = this.#options;
    const isFromAnswer = url !== request.url || request.isFromAnswer === true;
    const redirectedFrom = isFromAnswer ? this.#shown : undefined;
    const lookingUp = isForTenant ? tenantLookup(url, sources.tenantHosts, redirectedFrom, lookup) : lookup;
    const { method = 'GET', headers, authorization, body, onSent } = request;
    const proxy = proxyFor(url, sources.proxies, this.#shown);
    if (isForTenant && lookingUp !== undefined && proxy !== undefined) {
      await assertProxiedHost(url, lookingUp);
    }
    const options: RequestOptions = {
      method,
      ...(lookingUp === undefined ? {} : { lookup: lookingUp }),
      headers: {
        'accept-encoding': 'identity',
        'user-agent': 'portcullis',
        ...headers,
        ...(authorization === undefined || url.origin !== request.url.origin ? {} : { authorization }),
        ...(body === undefined ? {} : { 'content-length': body.length }),
      },
      agent: await agentFor(url, sources, proxy),
      signal: this.limits.signal,
    };
    // Credentials in the Location header of a redirect are never sent.
    const target = new URL(url);
    target.username = '';
    target.password = '';
    this.limits.signal.throwIfAborted();
    this.limits.connecting();
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const sent = (url.protocol === 'https:' ? httpsRequest : httpRequest)(target, options);
    watchConnection(sent, this.limits);
    sent.once('response', resolve).on('error', reject);
    sendBody(sent, body ?? Buffer.of(), (bytes) => {
      this.limits.received();
      onSent?.(bytes, body?.length);
    });
    try {
      return await promise;
    } catch (error) {
      throw this.#failed(error, url.host, proxy !== undefined);
    }
  }

  #tooLarge(maxBytes: number, got: string): ModuleError {
    return new ModuleError(
      'module-too-large',
      `${this.#shown} is too large: expected at most ${maxBytes} bytes, got ${got}`,
      { tenantMessage: `${this.#shown} is too large: expected at most ${maxBytes} bytes` },
    );
  }

  /** The error for a failed connection, by the code that Node reports. */
  #failed(error: unknown, host: string, isProxied = false): unknown {
    if (error instanceof ModuleError || this.limits.signal.aborted) {
      return error;
    }
    const code = systemCode(error) ?? 'unknown error';
    if (TLS_FAILURE.test(code)) {
      return new ModuleError(
        'source-untrusted',
        `no trusted TLS connection for ${this.#shown} (${code}): expected a certificate from a known authority. ` +
          'Add the certificate authority of the host to source_authorities in sources.yml',
        { cause: error },
      );
    }
    if (code === 'ECONNRESET' || code === 'HPE_INVALID_EOF_STATE') {
      return new ModuleError(
        'source-truncated',
        `the connection for ${this.#shown} was lost (${code}): expected a complete answer`,
        { cause: error },
      );
    }
    const advice = isProxied
      ? `check the proxy, and whether it may reach ${host}`
      : code === 'ENOTFOUND'
        ? `no host of that name: check ${host}`
        : `check that the server runs and is reachable from here`;
    const problem = `${this.#shown} cannot be reached${isProxied ? ' through the proxy' : ''} (${code})`;
    return new ModuleError('source-unreachable', `${problem}: ${advice}`, {
      cause: error,
      // The host may be one that the server redirects to.
      tenantMessage: `${problem}: check that the server has this name and runs`,
    });
  }
}

/** Sends a body as fast as the connection takes it. */
function sendBody(request: ClientRequest, body: Uint8Array, onSent: (bytes: number) => void): void {
  let at = 0;
  const sendMore = (): void => {
    while (at < body.length) {
      const end = Math.min(at + BODY_PART_BYTES, body.length);
      const hasRoom = request.write(body.subarray(at, end), () => onSent(end));
      at = end;
      if (!hasRoom) {
        request.once('drain', sendMore);
        return;
      }
    }
    request.end();
  };
  sendMore();
}

function redirectTarget(from: URL, location: string | undefined): URL {
  const shown = redactUrl(from.href);
  if (location === undefined || !URL.canParse(location, from.href)) {
    throw new ModuleError('source-redirect', `${shown} redirects without a valid Location header`);
  }
  const target = new URL(location, from.href);
  if (!['http:', 'https:'].includes(target.protocol)) {
    throw new ModuleError(
      'source-redirect',
      `${shown} redirects to ${target.protocol} : expected http: or https:. Name the module's own address`,
    );
  }
  if (from.protocol === 'https:' && target.protocol === 'http:') {
    throw new ModuleError(
      'source-redirect',
      `${shown} redirects from https to http (${redactUrl(target.href)}): expected to stay on https`,
    );
  }
  return target;
}

function watchConnection(request: ClientRequest, limits: TimeLimits): void {
  request.once('socket', (socket) => {
    if (socket.connecting) {
      socket.once('connect', () => limits.connected());
    } else {
      limits.connected();
    }
  });
}

/** Contexts by the authorities that they trust beside those of the system: to parse all of these takes longer than a connection. */
const contexts = new Map<string, SecureContext>();

function contextFor(authorities: readonly string[]): SecureContext {
  const key = authorities.join('\n');
  const known = contexts.get(key);
  if (known !== undefined) {
    return known;
  }
  if (contexts.size >= MAX_CONTEXTS) {
    contexts.clear();
  }
  const context = createSecureContext({ ca: [...getCACertificates('default'), ...authorities] });
  contexts.set(key, context);
  return context;
}

async function agentFor(url: URL, sources: SourcesConfig, proxy: string | undefined): Promise<HttpAgent> {
  const proxyEnv = proxy === undefined ? {} : { HTTP_PROXY: proxy, HTTPS_PROXY: proxy };
  const agentOptions: AgentOptions = { keepAlive: false, proxyEnv };
  if (url.protocol === 'http:') {
    return new HttpAgent(agentOptions);
  }
  const authorities = await authoritiesOf(sources, url.host);
  return new HttpsAgent({
    ...agentOptions,
    rejectUnauthorized: !sources.insecureSources.includes(url.host),
    ...(authorities === undefined ? {} : { secureContext: contextFor(authorities) }),
  });
}

/** The proxy for a URL; undefined if it needs none. @throws ModuleError `source-unreachable` */
function proxyFor(
  url: URL,
  { httpProxy, httpsProxy, noProxy = '' }: SourcesConfig['proxies'],
  shown: string,
): string | undefined {
  const proxy = url.protocol === 'http:' ? httpProxy : httpsProxy;
  if (proxy === undefined || needsNoProxy(url, noProxy)) {
    return undefined;
  }
  // Node would connect without the proxy. Not printed: it may hold a password.
  if (!['http:', 'https:'].includes(URL.parse(proxy)?.protocol ?? '')) {
    throw new ModuleError(
      'source-unreachable',
      `${shown} cannot be reached: the proxy of the environment is not supported: expected a URL http://host:port`,
    );
  }
  return proxy;
}

/** The length of the body that a server announces. */
export function announcedLength(response: IncomingMessage): number | undefined {
  const header = response.headers['content-length'];
  return header === undefined ? undefined : Number(header);
}
