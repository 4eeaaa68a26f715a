// The control port of a replica: HTTPS for controllers and other replicas, with client certificates.
import { constants, randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { Server } from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContextOptions, TLSSocket } from 'node:tls';
import {
  BodyBudget,
  limitConnections,
  listen,
  readBody,
  RequestRefused,
  sendError,
  sendJson,
  watchTls,
} from '../https/index.ts';
import type { Logger } from '../log/index.ts';
import { errorText } from '../values/index.ts';
import { ControlModules } from './control-modules.ts';
import { parseControlTarget, parsePrevalidation } from './control-request.ts';
import { ControlStream, STALLED_MS } from './control-stream.ts';
import type { ControlTls } from './control-tls.ts';
import { CONTROL_NAME, CONTROL_PROTOCOL } from './replica-protocol.ts';
import type { PrevalidationRequest, PrevalidationResult } from './replica-protocol.ts';
import type { ReportSource } from './report-source.ts';

/** Parallel streams: a few controllers, and connections that are not closed yet. A further one ends the oldest. */
export const MAX_STREAMS = 16;
/**
 * Parallel pre-validations, including those that wait for slow sources. Their bodies count against the same budget as
 * reviews.
 */
export const MAX_PREVALIDATIONS = 128;
/** Time limit of a pre-validation: a download, compiling and checking. Milliseconds. */
const PREVALIDATION_TIMEOUT_MS = 180_000;
/** `Retry-After` of 503 responses. Seconds. */
const RETRY_AFTER_SECONDS = 1;
/** Parallel connections: streams, pre-validations and peers of a large fleet. */
const MAX_CONTROL_CONNECTIONS = 512;
/** Time limit of a TLS handshake, and of request headers. Milliseconds. */
const HEADERS_TIMEOUT_MS = 5_000;
/** Time limit of a whole request: 7 MiB from a controller nearby. Milliseconds. */
const REQUEST_TIMEOUT_MS = 20_000;
/** Interval of the check for slow requests. Milliseconds. */
const CONNECTION_CHECK_MS = 1_000;
/** Idle connections are kept longer than clients keep theirs (30 s). Milliseconds. */
const KEEP_ALIVE_MS = 60_000;
/** Time for open connections when the port stops. Milliseconds. */
const LAST_BYTES_MS = 250;

export interface ControlEndpointOptions {
  readonly host: string;
  /** 0 chooses a free port. */
  readonly port: number;
  readonly tls: ControlTls;
  /** `metadata.name` of the PolicyServerReplica. */
  readonly replica: string;
  /** Version of Portcullis. */
  readonly version: string;
  readonly reports: ReportSource;
  /** May reject with {@link RequestRefused}, or with the reason of the signal when it is aborted. */
  readonly prevalidate: (request: PrevalidationRequest, signal: AbortSignal) => Promise<PrevalidationResult>;
  /** The verified module of a digest; undefined if it is not in the cache. */
  readonly readModule: (digest: string) => Promise<Uint8Array | undefined>;
  /** A controller that does not read for this long is disconnected. Milliseconds. Default: {@link STALLED_MS}. */
  readonly stalledMs?: number;
  readonly log: Logger;
}

/** The control port. See docs/control-port.md. */
export class ControlEndpoint {
  readonly #options: ControlEndpointOptions;
  readonly #log: Logger;
  readonly #modules: ControlModules;
  readonly #budget = new BodyBudget();
  readonly #instance = randomUUID();
  /** Oldest first. */
  readonly #streams = new Set<ControlStream>();
  readonly #stopped = new AbortController();
  /** Includes connections in their handshake, which the server's own methods do not cover. */
  readonly #sockets = new Set<Socket>();
  #prevalidations = 0;
  #server: Server | undefined;
  #stopWatching: (() => void) | undefined;

  constructor(options: ControlEndpointOptions) {
    this.#options = options;
    this.#log = options.log;
    this.#modules = new ControlModules(options.readModule);
  }

  /**
   * Starts listening. Resolves with the port.
   * @throws HttpsError 'port-busy', 'tls-invalid'
   */
  async start(): Promise<number> {
    const { host, port, tls } = this.#options;
    let authorities: readonly string[] = [];
    const files = { certFile: tls.certFile, keyFile: tls.keyFile, clientCaFiles: [tls.caFile] };
    const { options, stop } = await watchTls(files, {
      reloaded: (changed) => {
        server.setSecureContext({ ...changed, ...SECURITY });
        const before = authorities;
        authorities = certificatesOf(changed.ca);
        if (before.some((authority) => !authorities.includes(authority))) {
          // Clients that are still trusted reconnect.
          server.closeAllConnections();
        }
        this.#log.info({ file: tls.certFile }, 'control certificate reloaded');
      },
      failed: (error) =>
        this.#log.error({ error: error.message }, 'control certificate not reloaded, the old one stays in use'),
    });
    this.#stopWatching = stop;
    authorities = certificatesOf(options.ca);
    const server = createServer(
      {
        ...options,
        ...SECURITY,
        requestCert: true,
        rejectUnauthorized: true,
        handshakeTimeout: HEADERS_TIMEOUT_MS,
        headersTimeout: HEADERS_TIMEOUT_MS,
        requestTimeout: REQUEST_TIMEOUT_MS,
        keepAliveTimeout: KEEP_ALIVE_MS,
        connectionsCheckingInterval: CONNECTION_CHECK_MS,
      },
      (request, response) => void this.#answer(request, response),
    );
    limitConnections(server, { max: MAX_CONTROL_CONNECTIONS });
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    server.prependListener('secureConnection', (socket: TLSSocket) => this.#admit(socket));
    server.on('tlsClientError', (error) => this.#log.debug({ error: error.message }, 'control connection refused'));
    this.#server = server;
    try {
      return await listen(server, port, host);
    } catch (error) {
      stop();
      throw error;
    }
  }

  /** Ends the streams and rejects further requests. */
  async stop(): Promise<void> {
    this.#stopped.abort(new RequestRefused(503, 'the replica is stopping'));
    this.#stopWatching?.();
    const server = this.#server;
    if (server === undefined || !server.listening) {
      return;
    }
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const stream of this.#streams) {
      stream.end();
    }
    const limit = setTimeout(() => {
      for (const socket of this.#sockets) {
        socket.destroy();
      }
    }, LAST_BYTES_MS);
    await closed;
    clearTimeout(limit);
  }

  /** Checks the name too: the CA may have issued certificates for other purposes. */
  #admit(socket: TLSSocket): void {
    const certificate = socket.getPeerX509Certificate();
    if (certificate?.checkHost(CONTROL_NAME, { subject: 'never', wildcards: false }) === undefined) {
      this.#log.warn({ address: socket.remoteAddress }, 'control connection refused: its certificate has another name');
      socket.destroy();
    }
  }

  /** Never rejects. */
  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A broken connection also emits `close`, which is handled.
    response.on('error', () => undefined);
    try {
      const target = parseControlTarget(request.method, request.url);
      switch (target.route) {
        case 'stream':
          request.resume();
          this.#stream(response);
          break;
        case 'prevalidate':
          await this.#prevalidate(request, response);
          break;
        case 'modules':
          request.resume();
          await this.#modules.send(target.digest, response);
          break;
        default:
          target satisfies never;
      }
    } catch (error) {
      request.resume();
      this.#reject(response, error);
    }
  }

  #reject(response: ServerResponse, error: unknown): void {
    if (response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    const status = error instanceof RequestRefused ? error.status : 500;
    if (status === 500) {
      this.#log.error({ error: errorText(error) }, 'control request failed');
    }
    if (status === 503) {
      response.setHeader('retry-after', RETRY_AFTER_SECONDS);
    }
    sendError(response, status, status === 500 ? 'Something went wrong' : (error as Error).message);
  }

  #stream(response: ServerResponse): void {
    const [oldest] = this.#streams;
    if (oldest !== undefined && this.#streams.size >= MAX_STREAMS) {
      this.#log.warn({ streams: this.#streams.size }, 'too many controller streams, the oldest is ended');
      this.#streams.delete(oldest);
      oldest.destroy();
    }
    const { replica, version, reports, stalledMs = STALLED_MS } = this.#options;
    const hello = { type: 'hello', protocol: CONTROL_PROTOCOL, replica, instance: this.#instance, version } as const;
    const stream = new ControlStream(response, hello, reports, stalledMs);
    this.#streams.add(stream);
    response.once('close', () => this.#streams.delete(stream));
  }

  async #prevalidate(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const type = request.headers['content-type'] ?? 'none';
    if (!/^application\/json\s*(?:;|$)/i.test(type)) {
      throw new RequestRefused(415, 'expected Content-Type: application/json');
    }
    if (this.#prevalidations >= MAX_PREVALIDATIONS) {
      throw new RequestRefused(503, `${MAX_PREVALIDATIONS} pre-validations are running; try again`);
    }
    this.#prevalidations += 1;
    let limit: NodeJS.Timeout | undefined;
    try {
      const policy = parsePrevalidation(await this.#body(request));
      const ended = new AbortController();
      response.once('close', () => ended.abort(new RequestRefused(503, 'the caller has closed the connection')));
      limit = setTimeout(() => ended.abort(timedOut()), PREVALIDATION_TIMEOUT_MS);
      const signal = AbortSignal.any([ended.signal, this.#stopped.signal]);
      const result = await this.#options.prevalidate(policy, signal);
      if (!response.destroyed) {
        sendJson(response, 200, JSON.stringify(result));
      }
    } finally {
      clearTimeout(limit);
      this.#prevalidations -= 1;
    }
  }

  #body(request: IncomingMessage): Promise<Uint8Array> {
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
    readBody(request, this.#budget, (error, body) => (error === undefined ? resolve(body) : reject(error)));
    return promise;
  }
}

function timedOut(): RequestRefused {
  return new RequestRefused(
    503,
    `the pre-validation did not end within ${PREVALIDATION_TIMEOUT_MS / 1000} s; try again`,
  );
}

/**
 * TLS 1.3 only, as both sides are ours. No session tickets: a resumed session would skip the check of the certificate.
 */
const SECURITY = { minVersion: 'TLSv1.3', secureOptions: constants.SSL_OP_NO_TICKET } as const;

/** Splits PEM text into certificates. */
function certificatesOf(pem: SecureContextOptions['ca']): readonly string[] {
  return String(pem).match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
}
