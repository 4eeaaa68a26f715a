// Every port of the product: its limits, and the one function that creates its server. SECURITY.md has the table.
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createSecureServer, type Server as SecureServer, type ServerOptions } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { type ConnectionState, limitConnections } from './connection-limit.ts';

/** What clients of a port may cost. Times in milliseconds. */
export interface PortLimits {
  /** Connections at the same time. */
  readonly connections: number;
  /** For the TLS handshake. */
  readonly handshakeMs: number;
  /** For the headers of a request. */
  readonly headersMs: number;
  /** For a whole request. */
  readonly requestMs: number;
  /** Between two requests of a connection. */
  readonly keepAliveMs: number;
  /** Without traffic during a request or an answer. */
  readonly silentMs: number;
  /** Interval of the check for slow clients. */
  readonly checkMs: number;
  /** Size of a request's headers. Bytes. */
  readonly headerBytes: number;
}

/** Node's default. */
const HEADER_BYTES = 16 * 1024;

/** The limits of each port. */
export const PORT_LIMITS = {
  /** Reviews of API servers, each of which opens a few dozen connections: for policies, and for the webhook of our own kinds. */
  webhook: {
    connections: 5_000,
    handshakeMs: 10_000,
    headersMs: 10_000,
    // The longest timeout of a webhook.
    requestMs: 30_000,
    // Longer than API servers keep idle connections (90 s), so that they never use a closed one.
    keepAliveMs: 120_000,
    silentMs: 60_000,
    checkMs: 2_000,
    headerBytes: HEADER_BYTES,
  },
  /** Probes and metrics: few clients, and requests without bodies. */
  operations: {
    connections: 100,
    handshakeMs: 10_000,
    headersMs: 10_000,
    requestMs: 10_000,
    // Longer than the intervals of most probes.
    keepAliveMs: 15_000,
    silentMs: 10_000,
    checkMs: 2_000,
    headerBytes: HEADER_BYTES,
  },
  /** Streams, pre-validations, modules and copies of a large fleet, between processes of the product. */
  control: {
    connections: 512,
    handshakeMs: 5_000,
    headersMs: 5_000,
    // 7 MiB from a controller nearby.
    requestMs: 20_000,
    // Longer than clients keep idle connections (30 s).
    keepAliveMs: 60_000,
    // Streams send nothing for as long as nothing changes.
    silentMs: 0,
    checkMs: 1_000,
    headerBytes: HEADER_BYTES,
  },
  /** The Kubernetes API of the embedded cluster. */
  gateway: {
    connections: 5_000,
    handshakeMs: 10_000,
    headersMs: 10_000,
    // 3 MiB over a slow connection.
    requestMs: 60_000,
    // Go clients close idle connections after 90 s.
    keepAliveMs: 120_000,
    // But watches. Longer than any webhook's timeout, 30 s.
    silentMs: 90_000,
    checkMs: 2_000,
    // A service account token has about 1 KiB.
    headerBytes: 32 * 1024,
  },
} as const satisfies Readonly<Record<string, PortLimits>>;

export type PortName = keyof typeof PORT_LIMITS;

export interface PortOptions {
  readonly handler: RequestListener;
  /** TLS options. Default: plain HTTP. */
  readonly tls?: ServerOptions | undefined;
  /** Other limits than those of the port. */
  readonly limits?: Partial<PortLimits> | undefined;
  /** Called for each connection that is closed because the port is full. */
  readonly connectionClosed?: ((state: ConnectionState) => void) | undefined;
}

/** Creates the server of a port with its limits, without listening. */
export function createPort(name: PortName, options: PortOptions & { readonly tls: ServerOptions }): SecureServer;
export function createPort(name: PortName, options: PortOptions): Server | SecureServer;
export function createPort(
  name: PortName,
  { handler, tls, limits: others, connectionClosed }: PortOptions,
): Server | SecureServer {
  const limits: PortLimits = { ...PORT_LIMITS[name], ...others };
  const options = {
    handshakeTimeout: limits.handshakeMs,
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: limits.checkMs,
    maxHeaderSize: limits.headerBytes,
    noDelay: true,
  };
  const server =
    tls === undefined ? createServer(options, handler) : createSecureServer({ ...options, ...tls }, handler);
  server.timeout = limits.silentMs;
  limitConnections(server, {
    max: limits.connections,
    ...(connectionClosed === undefined ? {} : { closed: connectionClosed }),
  });
  // Who has not finished a handshake can read no response, and would be kept until it read one.
  server.prependListener('tlsClientError', (_error: Error, socket: TLSSocket) => socket.destroy());
  return server;
}
