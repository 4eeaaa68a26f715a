import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { AgentOptions } from 'node:https';
import type { LookupFunction } from 'node:net';
import { getCACertificates } from 'node:tls';

import { ModuleError, systemCode } from './errors.ts';
import { redactUrl } from './module-reference.ts';
import type { HttpReference } from './module-reference.ts';
import { authoritiesOf } from './sources.ts';
import type { SourcesConfig } from './sources.ts';
import { tenantLookup } from './tenant-sources.ts';
import { assertModulePreamble, SNIFF_BYTES } from './wasm-bytes.ts';

/** Most redirects: a release download takes two, a mirror in front of it one more. */
export const MAX_REDIRECTS = 5;
/** Time for the TCP connection: a lost SYN is sent again after 1, 3 and 7 seconds. */
export const CONNECT_TIMEOUT_MS = 10_000;
/** Time without a byte: longer than a server needs to find a file. */
export const IDLE_TIMEOUT_MS = 20_000;
/** Time for the whole download, redirects included: 64 MiB at half a megabyte per second. */
export const FETCH_TIMEOUT_MS = 120_000;

/** Time limits in milliseconds. */
export interface FetchTimeouts {
  /** For the TCP connection. Default: `CONNECT_TIMEOUT_MS`. */
  readonly connectMs?: number;
  /** Between two bytes. Default: `IDLE_TIMEOUT_MS`. */
  readonly idleMs?: number;
  /** For the whole download. Default: `FETCH_TIMEOUT_MS`. */
  readonly totalMs?: number;
}

/** Called as bytes arrive; `total` is the announced length. */
type ProgressListener = (received: number, total?: number) => void;

/** How to download. */
export interface DownloadOptions {
  readonly sources: SourcesConfig;
  readonly maxBytes: number;
  readonly timeouts?: FetchTimeouts;
  readonly signal?: AbortSignal;
  readonly onProgress?: ProgressListener;
  /** Refuses addresses that are not public, also behind redirects and DNS names, except hosts in `tenantHosts`. Default: false. */
  readonly isForTenant?: boolean;
  /** Default: the resolver of the system. */
  readonly lookup?: LookupFunction;
}

const REDIRECT_STATUS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const TLS_FAILURE =
  /^(ERR_TLS|ERR_SSL|EPROTO|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH)/;

/**
 * Downloads a module over HTTP or HTTPS.
 * @throws ModuleError `source-…` (`source-forbidden` only for tenants), `module-too-large`, `not-wasm`, `file-unreadable` (an authority); the signal's reason when it is aborted
 */
export async function downloadModule(reference: HttpReference, options: DownloadOptions): Promise<Uint8Array> {
  const limits = new TimeLimits(reference, options.timeouts ?? {}, options.signal);
  try {
    const response = await followRedirects(reference, options, limits);
    return await readBody(response, reference, options, limits);
  } catch (error) {
    limits.signal.throwIfAborted();
    throw error instanceof ModuleError ? error : unreachable(reference, error);
  } finally {
    limits.end();
  }
}

/** The timeouts of one download. The first that expires aborts `signal` with the error to report. */
class TimeLimits {
  readonly signal: AbortSignal;
  readonly #controller = new AbortController();
  readonly #shown: string;
  readonly #connectMs: number;
  readonly #idleMs: number;
  readonly #whole: NodeJS.Timeout;
  #current: NodeJS.Timeout | undefined;

  constructor(reference: HttpReference, timeouts: FetchTimeouts, signal: AbortSignal | undefined) {
    this.#shown = reference.shown;
    this.#connectMs = timeouts.connectMs ?? CONNECT_TIMEOUT_MS;
    this.#idleMs = timeouts.idleMs ?? IDLE_TIMEOUT_MS;
    this.signal = signal === undefined ? this.#controller.signal : AbortSignal.any([signal, this.#controller.signal]);
    const totalMs = timeouts.totalMs ?? FETCH_TIMEOUT_MS;
    this.#whole = this.#after(totalMs, 'the whole transfer');
  }

  connecting(): void {
    clearTimeout(this.#current);
    this.#current = this.#after(this.#connectMs, 'the connection');
  }

  connected(): void {
    clearTimeout(this.#current);
    this.#current = this.#after(this.#idleMs, 'the next byte');
  }

  /** Restarts the idle timeout. */
  received(): void {
    this.#current?.refresh();
  }

  /** Stops the timers, and closes the connection if it is still open. */
  end(): void {
    clearTimeout(this.#whole);
    clearTimeout(this.#current);
    this.#controller.abort();
  }

  #after(ms: number, what: string): NodeJS.Timeout {
    return setTimeout(() => {
      const message = `${this.#shown} took too long: expected ${what} within ${ms} ms. Check that the server is up and reachable from here`;
      this.#controller.abort(new ModuleError('source-timeout', message));
    }, ms);
  }
}

async function followRedirects(
  reference: HttpReference,
  options: DownloadOptions,
  limits: TimeLimits,
): Promise<IncomingMessage> {
  let { url } = reference;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const response = await send(url, reference, options, limits);
    const status = response.statusCode ?? 0;
    if (!REDIRECT_STATUS.has(status)) {
      assertStatus(status, url);
      return response;
    }
    const next = redirectTarget(url, response.headers.location);
    response.destroy();
    url = next;
  }
  throw new ModuleError(
    'source-redirect',
    `${reference.shown} redirects too often: expected at most ${MAX_REDIRECTS} redirects. Use the final address`,
  );
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

async function send(
  url: URL,
  reference: HttpReference,
  { sources, isForTenant = false, lookup }: DownloadOptions,
  limits: TimeLimits,
): Promise<IncomingMessage> {
  const lookingUp = isForTenant ? tenantLookup(url, sources.tenantHosts, lookup) : lookup;
  const requestOptions: RequestOptions = {
    ...(lookingUp === undefined ? {} : { lookup: lookingUp }),
    headers: {
      accept: 'application/wasm, application/octet-stream;q=0.9, */*;q=0.1',
      'accept-encoding': 'identity',
      'user-agent': 'portcullis',
      ...authorization(url, reference.url),
    },
    agent: await agentFor(url, sources),
    signal: limits.signal,
  };
  // Credentials in the Location header of a redirect are never sent.
  const target = new URL(url);
  target.username = '';
  target.password = '';
  limits.signal.throwIfAborted();
  limits.connecting();
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(target, requestOptions);
  watchConnection(request, limits);
  request.once('response', resolve).on('error', reject).end();
  return await promise;
}

/** The credentials of the reference, for its own origin only. */
function authorization(url: URL, origin: URL): { authorization?: string } {
  if (url.origin !== origin.origin || (origin.username === '' && origin.password === '')) {
    return {};
  }
  const pair = `${decodeURIComponent(origin.username)}:${decodeURIComponent(origin.password)}`;
  return { authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
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

async function agentFor(url: URL, sources: SourcesConfig): Promise<HttpAgent> {
  const { httpProxy, httpsProxy, noProxy } = sources.proxies;
  const agentOptions: AgentOptions = {
    keepAlive: false,
    proxyEnv: {
      ...(httpProxy === undefined ? {} : { HTTP_PROXY: httpProxy }),
      ...(httpsProxy === undefined ? {} : { HTTPS_PROXY: httpsProxy }),
      ...(noProxy === undefined ? {} : { NO_PROXY: noProxy }),
    },
  };
  if (url.protocol === 'http:') {
    return new HttpAgent(agentOptions);
  }
  const authorities = await authoritiesOf(sources, url.host);
  return new HttpsAgent({
    ...agentOptions,
    rejectUnauthorized: !sources.insecureSources.includes(url.host),
    ...(authorities === undefined ? {} : { ca: [...getCACertificates('default'), ...authorities] }),
  });
}

function assertStatus(status: number, url: URL): void {
  if (status !== 200) {
    throw new ModuleError(
      'source-status',
      `${redactUrl(url.href)} answered ${status}: expected 200. ${statusAdvice(status)}`,
    );
  }
}

function statusAdvice(status: number): string {
  if (status === 401 || status === 403) {
    return 'The server needs credentials, or these may not read the module: check the permissions';
  }
  if (status === 404 || status === 410) {
    return 'There is no module at this URL: check its spelling and version';
  }
  if (status === 429) {
    return 'The server limits the rate of requests: wait, or mirror the module';
  }
  return status >= 500 ? 'The server failed: try again later, or look at its logs' : 'Check the URL';
}

async function readBody(
  response: IncomingMessage,
  reference: HttpReference,
  { maxBytes, onProgress }: DownloadOptions,
  limits: TimeLimits,
): Promise<Uint8Array> {
  const total = announcedLength(response);
  if (total !== undefined && total > maxBytes) {
    throw tooLarge(reference, maxBytes, `${total}`);
  }
  const chunks: Uint8Array[] = [];
  let received = 0;
  let isSniffed = false;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    limits.received();
    chunks.push(chunk);
    received += chunk.length;
    if (received > maxBytes) {
      throw tooLarge(reference, maxBytes, 'more');
    }
    if (!isSniffed && received >= SNIFF_BYTES) {
      sniff(chunks, reference, response);
      isSniffed = true;
    }
    onProgress?.(received, total);
  }
  if (!response.complete || (total !== undefined && total !== received)) {
    throw new ModuleError(
      'source-truncated',
      `${reference.shown} ended early: expected ${total ?? 'a complete answer'}${total === undefined ? '' : ' bytes'}, got ${received} bytes`,
    );
  }
  if (!isSniffed) {
    sniff(chunks, reference, response);
  }
  return Buffer.concat(chunks);
}

function announcedLength(response: IncomingMessage): number | undefined {
  const header = response.headers['content-length'];
  return header === undefined ? undefined : Number(header);
}

function sniff(chunks: readonly Uint8Array[], reference: HttpReference, response: IncomingMessage): void {
  const head = Buffer.concat(chunks).subarray(0, SNIFF_BYTES);
  assertModulePreamble(head, reference.shown, response.headers['content-type']);
}

function tooLarge(reference: HttpReference, maxBytes: number, got: string): ModuleError {
  return new ModuleError(
    'module-too-large',
    `${reference.shown} is too large: expected at most ${maxBytes} bytes, got ${got}`,
  );
}

/** The error for a failed connection, by the code that Node reports. */
function unreachable(reference: HttpReference, error: unknown): ModuleError {
  const code = systemCode(error) ?? 'unknown error';
  const { host } = reference.url;
  if (TLS_FAILURE.test(code)) {
    return new ModuleError(
      'source-untrusted',
      `no trusted TLS connection for ${reference.shown} (${code}): expected a certificate from a known authority. ` +
        'Add the certificate authority of the host to source_authorities in sources.yml',
      { cause: error },
    );
  }
  if (code === 'ECONNRESET' || code === 'HPE_INVALID_EOF_STATE') {
    return new ModuleError(
      'source-truncated',
      `the connection for ${reference.shown} was lost (${code}): expected a complete answer`,
      { cause: error },
    );
  }
  const advice =
    code === 'ENOTFOUND'
      ? `no host of that name: check ${host}`
      : `check that the server runs and is reachable from here`;
  return new ModuleError('source-unreachable', `${reference.shown} cannot be reached (${code}): ${advice}`, {
    cause: error,
  });
}
