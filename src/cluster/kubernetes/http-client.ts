// An HTTP/1.1 client for one cluster: keep-alive connections, credentials, limits, and the retries that are always
// safe.
import type { Agent as HttpAgent, ClientRequest, IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError } from '../api-error.ts';
import { ClusterError } from '../errors.ts';
import { errorOfAnswer, MAX_ANSWER_BYTES } from './answer.ts';
import type { ApiAnswer } from './answer.ts';
import { credentialHeaders } from './connection.ts';
import type { Connection, ClientCredentials } from './connection.ts';
import { throttledWaitMs } from './retry-after.ts';
import { isConnectionReset, transportError } from './transport-error.ts';

/** An import would read all exports, of which WebSocket loads undici: 15 ms at the start of every command. */
const http = process.getBuiltinModule('node:http');

/** Longer than the 60 s after which an API server answers with a timeout (`--request-timeout`). Milliseconds. */
const REQUEST_TIMEOUT_MS = 70_000;
/** For TCP and TLS together: lost packets are retransmitted after 1 s and 3 s. Milliseconds. */
const CONNECT_TIMEOUT_MS = 5_000;
/**
 * A connection without a byte of the response to a GET for this long counts as dead. The GET is then sent once more,
 * with its full timeout. Longer than any response takes to start, except for the largest lists. Milliseconds.
 */
const STALE_CONNECTION_MS = 10_000;
/** Below the 90 s after which API servers close idle connections, so that no request meets a closing one. */
const IDLE_TIMEOUT_MS = 60_000;
/** Idle time before TCP keep-alive probes. Milliseconds. */
const TCP_KEEP_ALIVE_MS = 15_000;
/** Concurrent requests, watches excluded; more wait. API servers give one user a few dozen seats. */
const MAX_CONNECTIONS = 32;

/** A request on the wire. */
export interface HttpRequest {
  readonly method: string;
  /** Including the query. */
  readonly path: string;
  /** Default: application/json. */
  readonly accept?: string;
  readonly contentType?: string;
  readonly body?: Buffer;
  readonly signal?: AbortSignal | undefined;
  /** Per attempt, until the response is complete; for streams, until it starts. Default: {@link REQUEST_TIMEOUT_MS}. */
  readonly timeoutMs?: number;
}

export interface HttpClientOptions {
  readonly userAgent: string;
  /** Default: {@link CONNECT_TIMEOUT_MS}. */
  readonly connectTimeoutMs?: number;
  /** Default: {@link REQUEST_TIMEOUT_MS}. */
  readonly requestTimeoutMs?: number;
  /** Default: {@link STALE_CONNECTION_MS}. */
  readonly staleConnectionMs?: number;
  /** Default: {@link MAX_ANSWER_BYTES}. */
  readonly maxAnswerBytes?: number;
  /** Default: {@link MAX_CONNECTIONS}. */
  readonly maxConnections?: number;
  /** From 0 to below 1, for jitter. Default: Math.random. */
  readonly random?: () => number;
}

type Agent = HttpAgent | HttpsAgent;

/** The connections with one client certificate, or with none. */
interface AgentPair {
  readonly certificate: ClientCredentials['clientCertificate'];
  readonly requests: Agent;
  readonly streams: Agent;
}

interface AttemptOptions {
  readonly streamed: boolean;
  /** Only the first attempt has the limit for stale connections. */
  readonly isFirst: boolean;
}

type Attempt = { readonly answer: ApiAnswer } | { readonly stream: IncomingMessage };

export class HttpClient {
  readonly #connection: Connection;
  readonly #server: URL;
  readonly #options: HttpClientOptions;
  readonly #open = new Set<ClientRequest>();
  #agents: AgentPair | undefined;
  #closed = false;

  constructor(connection: Connection, options: HttpClientOptions) {
    this.#connection = connection;
    this.#server = serverUrl(connection);
    this.#options = options;
  }

  /**
   * Sends a request and waits for the complete response.
   * @throws ApiError for a status of 400 or more; ClusterError without a response, or without a valid one.
   */
  async send(request: HttpRequest): Promise<ApiAnswer> {
    const result = await this.#exchange(request, false);
    if ('answer' in result) {
      return result.answer;
    }
    throw new Error('a request for a complete response got a stream');
  }

  /** Sends a request for a stream, and returns the response when it starts. The caller destroys it. */
  async stream(request: HttpRequest): Promise<IncomingMessage> {
    const result = await this.#exchange(request, true);
    if ('stream' in result) {
      return result.stream;
    }
    throw new Error('a request for a stream got a complete response');
  }

  /** The error for a failed stream. */
  streamError(error: unknown): ClusterError {
    return transportError(error, this.#server.href, this.#connection.origin);
  }

  /** Ends all requests and connections. */
  close(): void {
    this.#closed = true;
    for (const request of this.#open) {
      request.destroy(closedError());
    }
    this.#agents?.requests.destroy();
    this.#agents?.streams.destroy();
  }

  async #exchange(request: HttpRequest, streamed: boolean): Promise<Attempt> {
    const { credentials: source } = this.#connection;
    const random = this.#options.random ?? Math.random;
    let throttled = 0;
    let repeats = 0;
    let renewals = 0;
    for (;;) {
      request.signal?.throwIfAborted();
      const credentials = (await source?.current(request.signal)) ?? {};
      let attempt: Attempt;
      try {
        attempt = await this.#attempt(request, credentials, { streamed, isFirst: repeats === 0 });
      } catch (error) {
        request.signal?.throwIfAborted();
        // The other idle connections may be dead for the same reason.
        this.#discardIdle();
        // A server may close a connection while a request is being written to it.
        const isDead = isConnectionReset(error) || error instanceof StaleConnectionError;
        if (request.method === 'GET' && repeats === 0 && isDead && !this.#closed) {
          repeats += 1;
          continue;
        }
        throw error;
      }
      if ('stream' in attempt || attempt.answer.status < 400) {
        return attempt;
      }
      const { answer } = attempt;
      if (isUnauthenticated(answer) && renewals === 0 && source?.dropRefused(credentials) === true) {
        renewals += 1;
        continue;
      }
      const retryAfter = answer.headers['retry-after'];
      const wait = throttledWaitMs(
        { status: answer.status, retryAfter: typeof retryAfter === 'string' ? retryAfter : undefined },
        throttled,
        Date.now(),
        random,
      );
      if (wait === undefined) {
        throw this.#errorOf(answer, request);
      }
      throttled += 1;
      await pause(wait, request.signal);
    }
  }

  #errorOf(answer: ApiAnswer, request: HttpRequest): ApiError | ClusterError {
    const error = errorOfAnswer(answer, `${request.method} ${this.#server.origin}${request.path}`);
    if (!(error instanceof ApiError) || !isUnauthenticated(answer)) {
      return error;
    }
    const { credentials, origin } = this.#connection;
    const from = origin === undefined ? '' : ` (${origin})`;
    const text =
      credentials === undefined
        ? `the request has no credentials${from}: expected a token, a client certificate or an exec plugin of the user`
        : `the cluster does not accept ${credentials.description}${from}; it may have expired: log in again, or ask for new credentials`;
    return new ApiError(401, 'Unauthorized', `${error.message}: ${text}`, error.details);
  }

  /** One attempt. Rejects with the signal's reason, or a ClusterError. */
  async #attempt(
    request: HttpRequest,
    credentials: ClientCredentials,
    { streamed, isFirst }: AttemptOptions,
  ): Promise<Attempt> {
    if (this.#closed) {
      throw closedError();
    }
    const outgoing = this.#start(request, credentials, { streamed, isFirst });
    this.#open.add(outgoing);
    outgoing.once('close', () => this.#open.delete(outgoing));
    let incoming: IncomingMessage | undefined;
    const end = (error: Error): void => {
      // Once there is a response, its reader gets the error.
      (incoming ?? outgoing).destroy(error);
    };
    const timeoutMs = request.timeoutMs ?? this.#options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS;
    const timer = setTimeout(() => end(this.#timeout(request, timeoutMs)), timeoutMs);
    const onAbort = (): void => end(abortError(request.signal));
    request.signal?.addEventListener('abort', onAbort, { once: true });
    const stopWaiting = (): void => {
      clearTimeout(timer);
      request.signal?.removeEventListener('abort', onAbort);
    };
    try {
      incoming = await responseOf(outgoing);
      if (streamed && (incoming.statusCode ?? 0) < 400) {
        clearTimeout(timer);
        incoming.once('close', stopWaiting);
        // An error before the stream is read must not end the process; its reader still gets it.
        incoming.on('error', () => undefined);
        return { stream: incoming };
      }
      const body = await this.#bodyOf(incoming);
      stopWaiting();
      return { answer: answerOf(incoming, body) };
    } catch (error) {
      stopWaiting();
      request.signal?.throwIfAborted();
      throw transportError(error, this.#server.origin, this.#connection.origin);
    }
  }

  #start(request: HttpRequest, credentials: ClientCredentials, { streamed, isFirst }: AttemptOptions): ClientRequest {
    const { body } = request;
    const agents = this.#agentsFor(credentials);
    const outgoing = (this.#server.protocol === 'https:' ? httpsRequest : http.request)({
      protocol: this.#server.protocol,
      // Without the brackets of IPv6 addresses.
      hostname: this.#server.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: this.#server.port,
      method: request.method,
      path: `${this.#server.pathname.replace(/\/$/, '')}${request.path}`,
      agent: streamed ? agents.streams : agents.requests,
      headers: {
        accept: request.accept ?? 'application/json',
        'user-agent': this.#options.userAgent,
        ...credentialHeaders(credentials),
        ...(body === undefined
          ? {}
          : { 'content-type': request.contentType ?? 'application/json', 'content-length': body.length }),
      },
    });
    outgoing.once('socket', (socket) => {
      this.#limitConnecting(outgoing, socket);
      if (isFirst && request.method === 'GET') {
        // New connections may die as well; the second attempt has no such limit.
        this.#limitSilence(outgoing);
      }
    });
    outgoing.end(body);
    return outgoing;
  }

  /** The body, within the limits for its length and for silence. */
  async #bodyOf(incoming: IncomingMessage): Promise<Buffer> {
    const limit = this.#options.maxAnswerBytes ?? MAX_ANSWER_BYTES;
    const silenceMs = this.#staleMs;
    const chunks: Buffer[] = [];
    let bytes = 0;
    const timer = setTimeout(
      () => incoming.destroy(new StaleConnectionError(this.#server.origin, silenceMs)),
      silenceMs,
    );
    try {
      for await (const chunk of incoming as AsyncIterable<Buffer>) {
        timer.refresh();
        bytes += chunk.length;
        if (bytes > limit) {
          const text = `expected a response of at most ${limit} bytes, got a longer one; request pages (limit) or less`;
          throw new ClusterError('answer-malformed', text);
        }
        chunks.push(chunk);
      }
    } finally {
      clearTimeout(timer);
    }
    return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, bytes);
  }

  get #staleMs(): number {
    return this.#options.staleConnectionMs ?? STALE_CONNECTION_MS;
  }

  #limitSilence(outgoing: ClientRequest): void {
    const limit = this.#staleMs;
    const timer = setTimeout(() => outgoing.destroy(new StaleConnectionError(this.#server.origin, limit)), limit);
    outgoing.once('response', () => clearTimeout(timer));
    outgoing.once('close', () => clearTimeout(timer));
  }

  #discardIdle(): void {
    for (const agent of [this.#agents?.requests, this.#agents?.streams]) {
      for (const sockets of Object.values(agent?.freeSockets ?? {})) {
        sockets?.forEach((socket) => socket.destroy());
      }
    }
  }

  #limitConnecting(outgoing: ClientRequest, socket: Socket): void {
    if (!socket.connecting) {
      return;
    }
    socket.setKeepAlive(true, TCP_KEEP_ALIVE_MS);
    socket.setNoDelay(true);
    const limit = this.#options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS;
    const timer = setTimeout(() => {
      const text = `cannot reach the cluster at ${this.#server.origin}: no connection within ${limit} ms; is the address right, and does a firewall drop packets?`;
      outgoing.destroy(new ClusterError('unreachable', text));
    }, limit);
    socket.once(this.#server.protocol === 'https:' ? 'secureConnect' : 'connect', () => clearTimeout(timer));
    socket.once('close', () => clearTimeout(timer));
  }

  #agentsFor({ clientCertificate: certificate }: ClientCredentials): AgentPair {
    const known = this.#agents;
    if (known?.certificate?.cert === certificate?.cert && known?.certificate?.key === certificate?.key && known) {
      return known;
    }
    // Idle connections were made with the old certificate.
    this.#discardIdle();
    const pair = {
      certificate,
      requests: this.#agent(certificate, this.#options.maxConnections ?? MAX_CONNECTIONS),
      streams: this.#agent(certificate),
    };
    this.#agents = pair;
    return pair;
  }

  #agent(certificate: ClientCredentials['clientCertificate'], maxSockets = Infinity): Agent {
    const pool = { keepAlive: true, keepAliveMsecs: TCP_KEEP_ALIVE_MS, timeout: IDLE_TIMEOUT_MS, maxSockets };
    if (this.#server.protocol === 'http:') {
      return new http.Agent(pool);
    }
    const { ca, insecureSkipTlsVerify, tlsServerName } = this.#connection;
    return new HttpsAgent({
      ...pool,
      ...(ca === undefined ? {} : { ca }),
      ...certificate,
      ...(tlsServerName === undefined ? {} : { servername: tlsServerName }),
      rejectUnauthorized: insecureSkipTlsVerify !== true,
    });
  }

  #timeout(request: HttpRequest, timeoutMs: number): ClusterError {
    const text = `${request.method} ${this.#server.origin}${request.path}: no answer within ${timeoutMs} ms; the cluster is overloaded or the connection is dead`;
    return new ClusterError('timeout', text);
  }
}

class StaleConnectionError extends ClusterError {
  constructor(server: string, limitMs: number) {
    super(
      'timeout',
      `the connection to ${server} was silent for ${limitMs} ms when an answer was due; it is taken to be dead`,
    );
  }
}

function serverUrl({ server, origin }: Connection): URL {
  const url = URL.parse(server);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    const where = origin === undefined ? '' : ` (${origin})`;
    throw new ClusterError(
      'request-invalid',
      `expected the address of a cluster such as https://127.0.0.1:6443, got ${JSON.stringify(server)}${where}`,
    );
  }
  return url;
}

function closedError(): ClusterError {
  return new ClusterError('unreachable', 'the client of this cluster was closed');
}

function abortError(signal: AbortSignal | undefined): Error {
  return signal?.reason instanceof Error ? signal.reason : new Error('aborted', { cause: signal?.reason });
}

/** Waits. Rejects with the signal's reason. */
async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(ms, undefined, signal === undefined ? {} : { signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}

function responseOf(outgoing: ClientRequest): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  outgoing.once('response', resolve);
  // Not removed, so that an error after the response began does not end the process: the response reports it.
  outgoing.on('error', reject);
  return promise;
}

function answerOf(incoming: IncomingMessage, body: Buffer): ApiAnswer {
  const { statusCode = 0, headers } = incoming;
  return { status: statusCode, headers, contentType: (headers['content-type'] ?? '').toLowerCase(), body };
}

/** How API servers begin the text of a denial by an admission webhook, which chooses its status code. */
const DENIAL = /^admission webhook "/;

/** Whether the cluster did not accept the credentials. A denial by an admission webhook may have the same status. */
function isUnauthenticated(answer: ApiAnswer): boolean {
  return answer.status === 401 && !DENIAL.test(errorOfAnswer(answer, '').message);
}
