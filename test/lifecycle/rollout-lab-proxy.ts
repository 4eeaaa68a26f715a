// What stands between everybody and an API server: it counts who asks for what, stops the world at one request, and takes
// the API server away, from all or from one user.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent, createServer, request as httpsRequest, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { createLoopbackCertificate } from '../cluster/loopback-certificate.ts';

/** One request, when it came. */
export interface ApiRequest {
  /** Of the bearer token; empty for others. */
  readonly user: string;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly isWatch: boolean;
  /** The parsed body of a write. */
  readonly body: unknown;
}

/** A moment at which the world stands still. */
export interface Hold {
  /** Resolves with the request at which it does. */
  readonly reached: Promise<ApiRequest>;
  /** Lets the request, or its answer, go on. */
  release(): void;
  /** Ends the connection instead. */
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
  /** All requests since it began, or since it was emptied. */
  requests: ApiRequest[] = [];
  /** Nobody reaches the API server. */
  isDown = false;
  /** These do not. */
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
    this.#server = createServer(own, (request, response) => void this.#serve(request, response));
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

  /** The API server is elsewhere now. */
  setUpstream(upstream: Upstream): void {
    this.#upstream.agent.destroy();
    this.#upstream = connectionTo(upstream);
  }

  /** Ends all connections, of one user or of all. New ones are made, unless it is down or the user is cut off. */
  disconnect(user?: string): void {
    for (const [socket, owner] of this.#live) {
      if (user === undefined || owner === user) {
        socket.destroy();
      }
    }
  }

  /** Stops the world at the first request that matches, before the API server sees it or before its answer is seen. */
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

  /** Writes of users, those of Leases and dry runs left out. */
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
    const asked: ApiRequest = {
      user,
      method: request.method ?? '',
      path: url.pathname,
      query: url.searchParams,
      isWatch: url.searchParams.get('watch') === 'true' || url.searchParams.get('watch') === '1',
      body: WRITES.has(request.method ?? '') ? parsed(payload) : undefined,
    };
    this.requests.push(asked);
    if (!(await this.#pass(asked, 'before'))) {
      request.socket.destroy();
      return;
    }
    this.#forward(request, response, { asked, url, payload });
  }

  /** Whether it may go on. */
  async #pass(asked: ApiRequest, when: 'before' | 'after'): Promise<boolean> {
    const held = [...this.#holds].find((candidate) => candidate.when === when && candidate.matches(asked));
    if (held === undefined) {
      return true;
    }
    this.#holds.delete(held);
    held.reached.resolve(asked);
    return (await held.gone.promise) === 'release';
  }

  #forward(
    request: IncomingMessage,
    response: ServerResponse,
    { asked, url, payload }: { asked: ApiRequest; url: URL; payload: Buffer },
  ): void {
    const { agent, url: base } = this.#upstream;
    const headers = { ...request.headers };
    delete headers['transfer-encoding'];
    if (payload.length > 0) {
      headers['content-length'] = String(payload.length);
    }
    const target = new URL(url.pathname + url.search, base);
    const outgoing = httpsRequest(target, { method: asked.method, headers, agent }, (incoming) => {
      void this.#pass(asked, 'after').then((passes) => {
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
