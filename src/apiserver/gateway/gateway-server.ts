// The HTTPS server of a gateway: its limits, and its response to malformed HTTP.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import { ClusterError } from '../../cluster/index.ts';
import { createPort, HttpsError, listen as listenOn, PORT_LIMITS } from '../../https/index.ts';

/** The serving certificate of a gateway, and the CA of its clients. PEM. */
export interface GatewayTls {
  readonly cert: string;
  readonly key: string;
  /** The CAs that client certificates are verified with. Default: none, clients have no certificates. */
  readonly clientCa?: string;
}

/**
 * Creates the server, without listening.
 * @param headersMs for the handshake, and for the headers of a request; default: that of the port
 */
export function createGatewayServer(
  { cert, key, clientCa }: GatewayTls,
  handler: (request: IncomingMessage, response: ServerResponse) => void,
  headersMs: number = PORT_LIMITS.gateway.headersMs,
): Server {
  const server = createPort('gateway', {
    handler,
    limits: { handshakeMs: headersMs, headersMs },
    tls: {
      cert,
      key,
      ...(clientCa === undefined ? {} : { ca: clientCa, requestCert: true }),
      // A request without a valid certificate may have a token: the authenticator decides.
      rejectUnauthorized: false,
      minVersion: 'TLSv1.2',
    },
  });
  server.on('clientError', refuseMalformed);
  return server;
}

/**
 * Starts listening. Port 0 selects a free port.
 * @returns the port
 * @throws ClusterError 'port-busy'.
 */
export async function listen(server: Server, port: number, host: string): Promise<number> {
  try {
    return await listenOn(server, port, host);
  } catch (error) {
    throw error instanceof HttpsError
      ? new ClusterError('port-busy', `${error.message}; choose another port`, { cause: error })
      : error;
  }
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
