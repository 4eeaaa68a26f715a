// Listens on a control port: HTTPS with client certificates, for controllers and replicas.
import { constants, X509Certificate } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContextOptions, TLSSocket } from 'node:tls';
import { createPort, listen, RequestRefusal, sendError, watchTls } from '../https/index.ts';
import type { Logger } from '../log/index.ts';
import { errorText } from '../values/index.ts';
import { controlPeer, type ControlPeer, hasFurtherName } from './control-names.ts';
import type { ControlTls } from './control-tls.ts';
import { CONTROL_NAME } from './replica-protocol.ts';

/** `Retry-After` of 503 responses. Seconds. */
const RETRY_AFTER_SECONDS = 1;
/** Time for open connections when the port stops. Milliseconds. */
const LAST_BYTES_MS = 250;

export interface ControlListenerOptions {
  readonly host: string;
  /** 0 chooses a free port. */
  readonly port: number;
  readonly tls: ControlTls;
  /** May reject with {@link RequestRefusal}. */
  readonly answer: (request: IncomingMessage, response: ServerResponse, peer: ControlPeer) => Promise<void>;
  readonly log: Logger;
}

/** A control port without its routes. See docs/control-port.md. */
export class ControlListener {
  readonly #options: ControlListenerOptions;
  readonly #log: Logger;
  /** Includes connections in their handshake, which the server's own methods do not cover. */
  readonly #sockets = new Set<Socket>();
  readonly #peers = new WeakMap<Socket, ControlPeer>();
  #server: Server | undefined;
  #own: X509Certificate | undefined;
  #stopWatching: (() => void) | undefined;

  constructor(options: ControlListenerOptions) {
    this.#options = options;
    this.#log = options.log;
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
        const [before, own] = [authorities, this.#own];
        authorities = certificatesOf(changed.ca);
        this.#own = new X509Certificate(String(changed.cert));
        const isNamedNow = own !== undefined && !hasFurtherName(own) && hasFurtherName(this.#own);
        if (isNamedNow || before.some((authority) => !authorities.includes(authority))) {
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
    this.#own = new X509Certificate(String(options.cert));
    const server = createPort('control', {
      handler: (request, response) => void this.#answer(request, response),
      tls: { ...options, ...SECURITY, requestCert: true, rejectUnauthorized: true },
    });
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

  /** Ends the connections. Requests in progress have a short time. */
  async stop(): Promise<void> {
    this.#stopWatching?.();
    const server = this.#server;
    if (server === undefined || !server.listening) {
      return;
    }
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
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
    if (
      this.#own === undefined ||
      certificate?.checkHost(CONTROL_NAME, { subject: 'never', wildcards: false }) === undefined
    ) {
      this.#log.warn({ address: socket.remoteAddress }, 'control connection refused: its certificate has another name');
      socket.destroy();
      return;
    }
    this.#peers.set(socket, controlPeer(certificate, this.#own));
  }

  /** Never rejects. */
  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A broken connection also emits `close`, which is handled.
    response.on('error', () => undefined);
    try {
      const peer = this.#peers.get(request.socket);
      if (peer === undefined) {
        throw new RequestRefusal(403, 'the certificate of the connection is not known');
      }
      await this.#options.answer(request, response, peer);
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
    const status = error instanceof RequestRefusal ? error.status : 500;
    if (status === 500) {
      this.#log.error({ error: errorText(error) }, 'control request failed');
    }
    if (status === 503) {
      response.setHeader('retry-after', RETRY_AFTER_SECONDS);
    }
    sendError(response, status, status === 500 ? 'Something went wrong' : (error as Error).message);
  }
}

/**
 * TLS 1.3 only, as both sides are ours. No session tickets: a resumed session would skip the check of the certificate.
 */
const SECURITY = { minVersion: 'TLSv1.3', secureOptions: constants.SSL_OP_NO_TICKET } as const;

/** Splits PEM text into certificates. */
function certificatesOf(pem: SecureContextOptions['ca']): readonly string[] {
  return String(pem).match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
}
