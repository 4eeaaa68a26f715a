// The limit on connections of a server. Who connects and says nothing must not keep others out, so a full server closes
// the connections that have shown the least, instead of refusing new ones.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as SecureServer } from 'node:https';
import type { Socket } from 'node:net';

/** Unfinished handshakes of one address. API servers open a few dozen connections, also when they restart. */
const MAX_HANDSHAKES_PER_ADDRESS = 1_000;
/** Time for a TLS handshake while the server is full: ten times that of a busy server. Milliseconds. */
const HANDSHAKE_WHEN_FULL_MS = 1_000;
/** Time for the body of a request while the server is full: ten times that of 7 MiB from an API server. Milliseconds. */
const BODY_WHEN_FULL_MS = 1_000;

/** What a connection has shown: nothing, a TLS handshake, at least one whole request, or a part of one. */
export type ConnectionState = 'handshake' | 'silent' | 'idle' | 'receiving';

export interface ConnectionLimitOptions {
  /** Maximum number of connections. */
  readonly max: number;
  /** Maximum number of unfinished handshakes of one address. Default: 1,000. */
  readonly maxHandshakesPerAddress?: number;
  /** Called for each connection that is closed to make room. */
  readonly closed?: (state: ConnectionState) => void;
}

interface Connection {
  readonly socket: Socket;
  readonly address: string;
  /** Remote address and port, by which a TLS socket finds the connection that it is for. */
  readonly key: string;
  /** Milliseconds, monotonic. */
  readonly since: number;
  /** Requests that are being answered. */
  requests: number;
}

/** A request whose body may not be complete. */
interface Receiving {
  readonly request: IncomingMessage;
  /** Milliseconds, monotonic. */
  readonly since: number;
}

/**
 * Limits the connections of a server. When it is full, a new connection takes the place of the oldest one without a finished
 * handshake; if there is none, of the oldest without a request; if there is none, of one that has sent its body for more than a
 * second, of the one that is idle the longest, or of the one that has sent its body the longest. Connections that wait for an
 * answer are never closed: if all do, the new connection is refused. Constant work for each connection and request.
 */
export function limitConnections(server: Server | SecureServer, options: ConnectionLimitOptions): void {
  const connections = new ConnectionLimit(options);
  const isSecure = server instanceof SecureServer;
  server.prependListener('connection', (socket: Socket) => connections.opened(socket, isSecure));
  if (isSecure) {
    server.prependListener('secureConnection', (socket: Socket) => connections.secured(socket));
  }
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    connections.requested(request);
    response.once('close', () => connections.answered(request.socket));
  });
}

class ConnectionLimit {
  readonly #options: ConnectionLimitOptions;
  readonly #open = new Set<Connection>();
  readonly #connectionOf = new WeakMap<Socket, Connection>();
  /** Connections without a finished handshake by key, the oldest first. */
  readonly #handshakes = new Map<string, Connection>();
  readonly #handshakesOf = new Map<string, Set<Connection>>();
  /** Connections without a request so far, the oldest first. */
  readonly #silent = new Set<Connection>();
  /** Connections between two requests, the one that is idle the longest first. */
  readonly #idle = new Set<Connection>();
  /** Connections with a request, the oldest request first. Those with a complete one leave when room is made. */
  readonly #receiving = new Map<Connection, Receiving>();

  constructor(options: ConnectionLimitOptions) {
    this.#options = options;
  }

  opened(socket: Socket, isSecure: boolean): void {
    const { remoteAddress: address, remotePort } = socket;
    const since = performance.now();
    const isGone = address === undefined || remotePort === undefined;
    if (isGone || (this.#open.size >= this.#options.max && !this.#makeRoom(since))) {
      socket.destroy();
      return;
    }
    const connection: Connection = { socket, address, key: `${address} ${remotePort}`, since, requests: 0 };
    this.#open.add(connection);
    socket.once('close', () => this.#forget(connection));
    if (isSecure) {
      this.#addHandshake(connection);
    } else {
      this.#connectionOf.set(socket, connection);
      this.#silent.add(connection);
    }
  }

  secured(socket: Socket): void {
    const connection = this.#handshakes.get(`${socket.remoteAddress} ${socket.remotePort}`);
    if (connection !== undefined) {
      this.#leaveStates(connection);
      this.#connectionOf.set(socket, connection);
      this.#silent.add(connection);
    }
  }

  requested(request: IncomingMessage): void {
    const connection = this.#connectionOf.get(request.socket);
    if (connection !== undefined) {
      connection.requests += 1;
      this.#leaveStates(connection);
      this.#receiving.set(connection, { request, since: performance.now() });
    }
  }

  answered(socket: Socket): void {
    const connection = this.#connectionOf.get(socket);
    if (connection !== undefined) {
      connection.requests -= 1;
      if (connection.requests === 0 && this.#open.has(connection)) {
        this.#receiving.delete(connection);
        this.#idle.add(connection);
      }
    }
  }

  #addHandshake(connection: Connection): void {
    const { address, key } = connection;
    const ofAddress = this.#handshakesOf.get(address) ?? new Set();
    this.#handshakesOf.set(address, ofAddress.add(connection));
    this.#handshakes.set(key, connection);
    if (ofAddress.size > (this.#options.maxHandshakesPerAddress ?? MAX_HANDSHAKES_PER_ADDRESS)) {
      this.#close('handshake', first(ofAddress));
    }
  }

  /** Closes connections so that one more fits. Returns false if all have a request. */
  #makeRoom(now: number): boolean {
    for (const connection of this.#handshakes.values()) {
      if (now - connection.since < HANDSHAKE_WHEN_FULL_MS) {
        break;
      }
      this.#close('handshake', connection);
    }
    return (
      this.#open.size < this.#options.max ||
      this.#close('handshake', first(this.#handshakes.values())) ||
      this.#close('silent', first(this.#silent)) ||
      this.#close('receiving', this.#slowest(now - BODY_WHEN_FULL_MS)) ||
      this.#close('idle', first(this.#idle)) ||
      this.#close('receiving', this.#slowest(now))
    );
  }

  /** The connection that has sent an incomplete body the longest, if it began before a time. */
  #slowest(before: number): Connection | undefined {
    for (const [connection, { request, since }] of this.#receiving) {
      if (!request.complete) {
        return since <= before ? connection : undefined;
      }
      this.#receiving.delete(connection);
    }
    return undefined;
  }

  #close(state: ConnectionState, connection: Connection | undefined): boolean {
    if (connection === undefined) {
      return false;
    }
    this.#forget(connection);
    connection.socket.destroy();
    this.#options.closed?.(state);
    return true;
  }

  #forget(connection: Connection): void {
    this.#open.delete(connection);
    this.#leaveStates(connection);
  }

  #leaveStates(connection: Connection): void {
    const { address, key } = connection;
    this.#silent.delete(connection);
    this.#idle.delete(connection);
    this.#receiving.delete(connection);
    const ofAddress = this.#handshakesOf.get(address);
    if (ofAddress?.delete(connection) === true) {
      this.#handshakes.delete(key);
      if (ofAddress.size === 0) {
        this.#handshakesOf.delete(address);
      }
    }
  }
}

function first<T>(items: Iterable<T>): T | undefined {
  const [item] = items;
  return item;
}
