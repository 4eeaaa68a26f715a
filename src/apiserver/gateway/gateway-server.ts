// The HTTPS server of a gateway: its limits, and its response to malformed HTTP.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { ClusterError } from '../../cluster/index.ts';
import { limitConnections } from '../../https/index.ts';

/** Maximum size of a request's headers; a service account token has about 1 KiB. Bytes. */
const MAX_HEADERS_BYTES = 32 * 1024;
/** Time limit for the TLS handshake and the headers. Milliseconds. */
const HEADERS_TIMEOUT_MS = 10_000;
/** Time limit for receiving a whole request: 3 MiB over a slow connection. Milliseconds. */
const REQUEST_TIMEOUT_MS = 60_000;
/** How often Node.js applies the two time limits above. Milliseconds. */
const CONNECTION_CHECK_MS = 2_000;
/** Go clients close idle connections after 90 s. The server waits longer, so that no request meets a closed one. Milliseconds. */
const KEEP_ALIVE_MS = 120_000;
/** Time limit for connections without traffic, except watches. Longer than any webhook's timeout, 30 s. Milliseconds. */
const SILENT_SOCKET_MS = 90_000;
/** Maximum number of concurrent connections. */
const MAX_CONNECTIONS = 5_000;

/** The serving certificate of a gateway, and the CA of its clients. PEM. */
export interface GatewayTls {
  readonly cert: string;
  readonly key: string;
  /** The CAs that client certificates are verified with. Default: none, clients have no certificates. */
  readonly clientCa?: string;
}

/**
 * Creates the server, without listening.
 * @param headersMs see HEADERS_TIMEOUT_MS
 */
export function createGatewayServer(
  { cert, key, clientCa }: GatewayTls,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  headersMs = HEADERS_TIMEOUT_MS,
): Server {
  const server = createServer(
    {
      cert,
      key,
      ...(clientCa === undefined ? {} : { ca: clientCa, requestCert: true }),
      // A request without a valid certificate may have a token: the authenticator decides.
      rejectUnauthorized: false,
      minVersion: 'TLSv1.2',
      maxHeaderSize: MAX_HEADERS_BYTES,
      handshakeTimeout: headersMs,
      headersTimeout: headersMs,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: CONNECTION_CHECK_MS,
      noDelay: true,
    },
    handle,
  );
  limitConnections(server, { max: MAX_CONNECTIONS });
  server.timeout = SILENT_SOCKET_MS;
  // Who has not finished a handshake can read no response, and would be kept until it read one.
  server.prependListener('tlsClientError', (_error: Error, socket: TLSSocket) => socket.destroy());
  server.on('clientError', refuseMalformed);
  return server;
}

/**
 * Starts listening. Port 0 selects a free port.
 * @returns the port
 * @throws ClusterError 'port-busy'.
 */
export async function listen(server: Server, port: number, host: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const failed = (error: NodeJS.ErrnoException): void => reject(listenError(error, host, port));
  server.once('error', failed);
  server.listen(port, host, () => resolve());
  await promise;
  server.off('error', failed);
  return (server.address() as AddressInfo).port;
}

/** Responds to malformed HTTP, and to headers that are too large. */
function refuseMalformed(
  error: NodeJS.ErrnoException,
  socket: { writable: boolean; end(text: string, done: () => void): unknown; destroy(): unknown },
): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const status = error.code === 'HPE_HEADER_OVERFLOW' ? '431 Request Header Fields Too Large' : '400 Bad Request';
  const headers = `Content-Type: text/plain; charset=utf-8\r\nContent-Length: ${status.length}\r\nConnection: close`;
  socket.end(`HTTP/1.1 ${status}\r\n${headers}\r\n\r\n${status}`, () => socket.destroy());
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): Error {
  if (error.code !== 'EADDRINUSE' && error.code !== 'EACCES') {
    return error;
  }
  const why = error.code === 'EACCES' ? 'not permitted' : 'the port is in use';
  return new ClusterError('port-busy', `cannot listen on ${host}:${port}: ${why}; choose another port`, {
    cause: error,
  });
}
