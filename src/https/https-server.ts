// The server of the admission port: HTTP or HTTPS, with timeouts for slow clients.
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https';
import type { Logger } from '../log/index.ts';
import { type ConnectionState, limitConnections } from './connection-limit.ts';
import { type TlsFiles, watchTls } from './tls.ts';

/** Timeout for the headers of a request. Milliseconds. */
const HEADERS_TIMEOUT_MS = 10_000;
/** Timeout for a whole request: the longest webhook timeout. Milliseconds. */
const REQUEST_TIMEOUT_MS = 30_000;
/** Interval of the check for slow clients. Milliseconds. */
const CONNECTION_CHECK_MS = 2_000;
/** Longer than API servers keep idle connections (90 s), so that they never use a closed one. Milliseconds. */
const KEEP_ALIVE_MS = 120_000;
/** Timeout of a connection without traffic during a request or an answer. Milliseconds. */
const SILENT_SOCKET_MS = 60_000;
/** Maximum number of connections; an API server opens a few dozen. */
const MAX_CONNECTIONS = 5_000;

/** Timeouts for clients. Milliseconds. */
export interface ClientTimeouts {
  /** For the TLS handshake, and for the headers of a request. Default: 10 s. */
  readonly headersMs?: number;
  /** For a whole request. Default: 30 s, the longest that a webhook may take. */
  readonly requestMs?: number;
  /** Interval of the check for slow clients. Default: 2 s. */
  readonly checkMs?: number;
}

export interface AdmissionServerOptions {
  readonly handler: RequestListener;
  /** Certificate files, watched. Default: plain HTTP. */
  readonly tls: TlsFiles | undefined;
  readonly timeouts: ClientTimeouts | undefined;
  /** Called for each connection that is closed because the server is full. */
  readonly connectionClosed?: (state: ConnectionState) => void;
  readonly log: Logger;
}

/** A server before it listens. */
export interface AdmissionServer {
  readonly server: Server | SecureServer;
  /** The watch of its certificate files, if any. */
  readonly tls: { readonly check: () => Promise<void>; readonly stop: () => void } | undefined;
}

/** @throws HttpsError 'tls-invalid' */
export async function createAdmissionServer(options: AdmissionServerOptions): Promise<AdmissionServer> {
  const { handler, tls: files, timeouts = {}, connectionClosed, log } = options;
  const { headersMs = HEADERS_TIMEOUT_MS, requestMs = REQUEST_TIMEOUT_MS, checkMs = CONNECTION_CHECK_MS } = timeouts;
  const limits = {
    handshakeTimeout: headersMs,
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: checkMs,
    noDelay: true,
  };
  const bounded = <T extends Server | SecureServer>(created: T): T => {
    created.timeout = SILENT_SOCKET_MS;
    limitConnections(created, {
      max: MAX_CONNECTIONS,
      ...(connectionClosed === undefined ? {} : { closed: connectionClosed }),
    });
    return created;
  };
  if (files === undefined) {
    return { server: bounded(createServer(limits, handler)), tls: undefined };
  }
  const { options: certificates, ...watch } = await watchTls(files, {
    reloaded: (changed) => {
      server.setSecureContext(changed);
      log.info({ file: files.certFile }, 'certificate reloaded');
    },
    failed: (error) => log.error({ error: error.message }, 'certificate not reloaded, the old one stays in use'),
  });
  const isMutual = (files.clientCaFiles ?? []).length > 0;
  const server = bounded(
    createSecureServer({ ...limits, ...certificates, requestCert: isMutual, rejectUnauthorized: isMutual }, handler),
  );
  return { server, tls: watch };
}
