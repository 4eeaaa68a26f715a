// A proxy in front of an API server: it records requests, pauses everything at a chosen request, and makes the API
// server unavailable for all users or for one.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent, createServer, request as httpsRequest, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { createLoopbackCertificate } from '../cluster/loopback-certificate.ts';

/** A recorded request. */
export interface ApiRequest {
  /** User of the bearer token; empty without one. */
  readonly user: string;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly isWatch: boolean;
  /** The parsed body of a write. */
  readonly body: unknown;
}

/** A paused request. */
export interface Hold {
  /** Resolves with the request when it is paused. */
  readonly reached: Promise<ApiRequest>;
  /** Lets the request, or its response, continue. */
  release(): void;
  /** Breaks the connection instead. */
  drop(): void;
}

interface HoldRequest {
  readonly matches: (request: ApiRequest) => boolean;
  readonly when: 'before' | 'after';
  readonly reached: PromiseWithResolvers<ApiRequest>;
  readonly gone: PromiseWithResolvers<'release' | 'drop'>;
}

export interface Upstream {
  readonly url: string;
  /** PEM */
  readonly ca: string;
}

const WRITES: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

export class ApiProxy implements AsyncDisposable {
  readonly ca: string;
  /** All requests since the start, or since the list was cleared. */
  requests: ApiRequest[] = [];
  /** Whether the API server is unavailable for all. */
  isDown = false;
  /** Users for whom the API server is unavailable. */
  readonly cutOff = new Set<string>();
  /** Names of users by their bearer tokens. */
  readonly users: ReadonlyMap<string, string>;
  readonly #server: Server;
  readonly #holds = new Set<HoldRequest>();
  readonly #live = new Map<Socket, string>();
  #upstream: { readonly url: URL; readonly agent: Agent };

  private constructor(upstream: Upstream, users: ReadonlyMap<string, string>, own: { cert: string; key: string }) {
    this.ca = own.cert;
    this.users = users;
    this.#upstream = connectionTo(upstream);
    // A connection that ends while a client uses it again would fail a request.
    const options = { ...own, keepAliveTimeout: 0 };
    this.#server = createServer(options, (request, response) => void this.#serve(request, response));
    this.#server.on('secureConnection', (socket: Socket) => {
      this.#live.set(socket, '');
      socket.on('close', () => this.#live.delete(socket));
      socket.on('error', () => undefined);
      if (this.isDown) {
        socket.destroy();
      }
    });
    this.#server.on('tlsClientError', () => undefined);
  }

  static async start(upstream: Upstream, users: ReadonlyMap<string, string>): Promise<ApiProxy> {
    const proxy = new ApiProxy(upstream, users, await createLoopbackCertificate());
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Changes the address of the API server. */
  setUpstream(upstream: Upstream): void {
    this.#upstream.agent.destroy();
    this.#upstream = connectionTo(upstream);
  }

  /**
   * Breaks all connections, of one user or of all. Clients may reconnect, unless the API server is unavailable for
   * them.
   */
  disconnect(user?: string): void {
    for (const [socket, owner] of this.#live) {
      if (user === undefined || owner === user) {
        socket.destroy();
      }
    }
  }

  /** Pauses the first matching request, before the API server receives it or before its response is sent. */
  hold(matches: (request: ApiRequest) => boolean, when: 'before' | 'after' = 'before'): Hold {
    const held: HoldRequest = {
      matches,
      when,
      reached: Promise.withResolvers<ApiRequest>(),
      gone: Promise.withResolvers<'release' | 'drop'>(),
    };
    this.#holds.add(held);
    const end = (how: 'release' | 'drop'): void => {
      this.#holds.delete(held);
      held.gone.resolve(how);
    };
    return { reached: held.reached.promise, release: () => end('release'), drop: () => end('drop') };
  }

  /** Writes of users, except Leases and dry runs. */
  writes(...users: readonly string[]): readonly ApiRequest[] {
    return this.requests.filter(
      ({ user, method, path, query }) =>
        users.includes(user) &&
        WRITES.has(method) &&
        !path.includes('/leases') &&
        !query.has('dryRun') &&
        !path.includes('reviews'),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const held of this.#holds) {
      held.gone.resolve('drop');
    }
    this.#upstream.agent.destroy();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.#upstream.url);
    const user = this.users.get((request.headers.authorization ?? '').replace(/^Bearer /, '')) ?? '';
    this.#live.set(request.socket, user);
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request as AsyncIterable<Buffer>) {
        chunks.push(chunk);
      }
    } catch {
      return;
    }
    if (this.isDown || this.cutOff.has(user)) {
      request.socket.destroy();
      return;
    }
    const payload = Buffer.concat(chunks);
    const recorded: ApiRequest = {
      user,
      method: request.method ?? '',
      path: url.pathname,
      query: url.searchParams,
      isWatch: url.searchParams.get('watch') === 'true' || url.searchParams.get('watch') === '1',
      body: WRITES.has(request.method ?? '') ? parsed(payload) : undefined,
    };
    this.requests.push(recorded);
    if (!(await this.#pass(recorded, 'before'))) {
      request.socket.destroy();
      return;
    }
    this.#forward(request, response, { recorded, url, payload });
  }

  /** Whether the request may continue. */
  async #pass(recorded: ApiRequest, when: 'before' | 'after'): Promise<boolean> {
    const held = [...this.#holds].find((candidate) => candidate.when === when && candidate.matches(recorded));
    if (held === undefined) {
      return true;
    }
    this.#holds.delete(held);
    held.reached.resolve(recorded);
    return (await held.gone.promise) === 'release';
  }

  #forward(
    request: IncomingMessage,
    response: ServerResponse,
    { recorded, url, payload }: { recorded: ApiRequest; url: URL; payload: Buffer },
  ): void {
    const { agent, url: base } = this.#upstream;
    const headers = { ...request.headers };
    delete headers['transfer-encoding'];
    if (payload.length > 0) {
      headers['content-length'] = String(payload.length);
    }
    const target = new URL(url.pathname + url.search, base);
    const outgoing = httpsRequest(target, { method: recorded.method, headers, agent }, (incoming) => {
      void this.#pass(recorded, 'after').then((passes) => {
        if (!passes) {
          incoming.resume();
          response.destroy();
          return;
        }
        response.writeHead(incoming.statusCode ?? 502, incoming.headers);
        response.flushHeaders();
        incoming.pipe(response);
      });
      incoming.on('error', () => response.destroy());
      incoming.on('close', () => {
        if (!incoming.complete) {
          response.destroy();
        }
      });
    });
    outgoing.on('error', () => response.destroy());
    response.on('close', () => outgoing.destroy());
    outgoing.end(payload);
  }
}

function connectionTo({ url, ca }: Upstream): { readonly url: URL; readonly agent: Agent } {
  return { url: new URL(url), agent: new Agent({ keepAlive: true, ca }) };
}

function parsed(payload: Buffer): unknown {
  try {
    return JSON.parse(payload.toString());
  } catch {
    return undefined;
  }
}
