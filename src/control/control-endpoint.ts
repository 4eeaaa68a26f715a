// The control port of a replica: HTTPS for controllers and other replicas, who show who they are by certificates.
import { constants, randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { Server } from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContextOptions, TLSSocket } from 'node:tls';
import { BodyBudget, listen, readBody, RequestRefused, sendError, sendJson, watchTls } from '../https/index.ts';
import type { Logger } from '../log/index.ts';
import { errorText } from '../values/index.ts';
import { ControlModules } from './control-modules.ts';
import { parseControlTarget, parsePrevalidation } from './control-request.ts';
import { ControlStream, STALLED_MS } from './control-stream.ts';
import type { ControlTls } from './control-tls.ts';
import { CONTROL_NAME, CONTROL_PROTOCOL } from './replica-protocol.ts';
import type { PrevalidationRequest, PrevalidationResult } from './replica-protocol.ts';
import type { ReportSource } from './report-source.ts';

/** Streams at once: a few controllers, and what is left of their connections. One more ends the oldest. */
export const MAX_STREAMS = 16;
/** Pre-validations at once, those that wait for slow sources included. Bodies of them count like those of reviews. */
export const MAX_PREVALIDATIONS = 128;
/** A pre-validation that takes longer is given up: more than one download may take, compiling and checking included. Milliseconds. */
export const PREVALIDATION_TIMEOUT_MS = 180_000;
/** When whoever is told that there is too much to do may come back. Seconds. */
export const RETRY_AFTER_SECONDS = 1;
/** Connections at once: what streams, pre-validations and peers of a large fleet take. */
export const MAX_CONTROL_CONNECTIONS = 512;
/** Time for a handshake, and for the head of a request. Milliseconds. */
const HEADERS_TIMEOUT_MS = 5_000;
/** Time for a whole request: 7 MiB from a controller nearby. Milliseconds. */
const REQUEST_TIMEOUT_MS = 20_000;
/** How often slow callers are looked for. Milliseconds. */
const CONNECTION_CHECK_MS = 1_000;
/** How long an unused connection is kept: longer than controllers keep theirs (30 s). Milliseconds. */
const KEEP_ALIVE_MS = 60_000;
/** Time for the last bytes of a stopping port. Milliseconds. */
const LAST_BYTES_MS = 250;

export interface ControlEndpointOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly tls: ControlTls;
  /** `metadata.name` of the PolicyServerReplica. */
  readonly replica: string;
  /** Version of the product. */
  readonly version: string;
  readonly reports: ReportSource;
  /** Rejects with {@link RequestRefused} to be answered so, with the reason of the signal when that is aborted. */
  readonly prevalidate: (request: PrevalidationRequest, signal: AbortSignal) => Promise<PrevalidationResult>;
  /** The module of a digest, verified; undefined when it is not in the cache. */
  readonly readModule: (digest: string) => Promise<Uint8Array | undefined>;
  /** When a controller that does not read is cut off, in milliseconds. Default: {@link STALLED_MS}. */
  readonly stalledMs?: number;
  readonly log: Logger;
}

/** See docs/control-port.md. */
export class ControlEndpoint {
  readonly #options: ControlEndpointOptions;
  readonly #log: Logger;
  readonly #modules: ControlModules;
  readonly #budget = new BodyBudget();
  readonly #instance = randomUUID();
  /** In the order in which they began. */
  readonly #streams = new Set<ControlStream>();
  readonly #stopped = new AbortController();
  /** Also those in the middle of a handshake, which the server does not count among its own yet. */
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
   * Begins to listen. Resolves with the port.
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
          // Whoever is still trusted connects again.
          server.closeAllConnections();
        }
        this.#log.info({ file: tls.certFile }, 'control certificate reloaded');
      },
      failed: (error) =>
        this.#log.error({ error: error.message }, 'control certificate not reloaded, the old one serves on'),
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
    server.maxConnections = MAX_CONTROL_CONNECTIONS;
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

  /** Ends the streams and takes no more requests. */
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

  /** A certificate of the CA is not enough: others may have got one for something else. */
  #admit(socket: TLSSocket): void {
    const certificate = socket.getPeerX509Certificate();
    if (certificate?.checkHost(CONTROL_NAME, { subject: 'never', wildcards: false }) === undefined) {
      this.#log.warn(
        { address: socket.remoteAddress },
        'control connection with a certificate of another name refused',
      );
      socket.destroy();
    }
  }

  /** Never rejects. */
  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A connection that breaks also closes, which is what everybody listens to.
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
      this.#refuse(response, error);
    }
  }

  #refuse(response: ServerResponse, error: unknown): void {
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
      this.#log.warn({ streams: this.#streams.size }, 'too many streams of controllers, the oldest is ended');
      this.#streams.delete(oldest);
      oldest.cut();
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
      throw new RequestRefused(503, `${MAX_PREVALIDATIONS} policies are being tried; try again`);
    }
    this.#prevalidations += 1;
    let limit: NodeJS.Timeout | undefined;
    try {
      const wanted = parsePrevalidation(await this.#body(request));
      const ended = new AbortController();
      response.once('close', () => ended.abort(new RequestRefused(503, 'nobody waits for the answer any more')));
      limit = setTimeout(() => ended.abort(tooLong()), PREVALIDATION_TIMEOUT_MS);
      const signal = AbortSignal.any([ended.signal, this.#stopped.signal]);
      const result = await this.#options.prevalidate(wanted, signal);
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

function tooLong(): RequestRefused {
  return new RequestRefused(
    503,
    `the policy could not be tried within ${PREVALIDATION_TIMEOUT_MS / 1000} s; try again`,
  );
}

/**
 * Both sides are ours, so nothing older is needed. A resumed session would not be checked again: certificates that are no
 * longer trusted could go on with it.
 */
const SECURITY = { minVersion: 'TLSv1.3', secureOptions: constants.SSL_OP_NO_TICKET } as const;

/** The certificates in PEM texts. */
function certificatesOf(pem: SecureContextOptions['ca']): readonly string[] {
  return String(pem).match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
}
