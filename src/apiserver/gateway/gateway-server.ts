// The HTTPS server of a gateway: its limits, and its answer to malformed HTTP.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { ClusterError } from '../../cluster/index.ts';

/** Size of a request's headers; a service account token has about 1 KiB. Bytes. */
const MAX_HEADERS_BYTES = 32 * 1024;
/** Time limit for the TLS handshake and the headers. Milliseconds. */
const HEADERS_TIMEOUT_MS = 10_000;
/** Time limit for a whole request: 3 MiB over a slow line. Milliseconds. */
const REQUEST_TIMEOUT_MS = 60_000;
/** Interval of the checks for slow clients. Milliseconds. */
const CONNECTION_CHECK_MS = 2_000;
/** Longer than Go clients keep idle connections (90 s), so that the server is never the one to close them. Milliseconds. */
const KEEP_ALIVE_MS = 120_000;
/** Time limit for silent connections, but for watches. Longer than any webhook takes. Milliseconds. */
const SILENT_SOCKET_MS = 90_000;
/** Concurrent connections. */
const MAX_CONNECTIONS = 5_000;

/** The certificate of a gateway, and the authorities of its clients' certificates. PEM. */
export interface GatewayTls {
  readonly cert: string;
  readonly key: string;
  /** Authorities of client certificates. Default: no client certificates. */
  readonly clientCa?: string;
}

/** Creates the server, without listening. */
export function createGatewayServer(
  { cert, key, clientCa }: GatewayTls,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Server {
  const server = createServer(
    {
      cert,
      key,
      ...(clientCa === undefined ? {} : { ca: clientCa, requestCert: true }),
      // The authenticator checks certificates and tokens.
      rejectUnauthorized: false,
      minVersion: 'TLSv1.2',
      maxHeaderSize: MAX_HEADERS_BYTES,
      handshakeTimeout: HEADERS_TIMEOUT_MS,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: CONNECTION_CHECK_MS,
      noDelay: true,
    },
    handle,
  );
  server.maxConnections = MAX_CONNECTIONS;
  server.timeout = SILENT_SOCKET_MS;
  server.on('clientError', refuseGarbage);
  return server;
}

/**
 * Listens; 0 takes a free port.
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

/** Answers malformed HTTP, and headers that are too large. */
function refuseGarbage(
  error: NodeJS.ErrnoException,
  socket: { writable: boolean; end(text: string): unknown; destroy(): unknown },
): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const status = error.code === 'HPE_HEADER_OVERFLOW' ? '431 Request Header Fields Too Large' : '400 Bad Request';
  const headers = `Content-Type: text/plain; charset=utf-8\r\nContent-Length: ${status.length}\r\nConnection: close`;
  socket.end(`HTTP/1.1 ${status}\r\n${headers}\r\n\r\n${status}`);
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
