// Module sources of the lab: a web server with controllable failures, and for each replica a proxy to it that can be
// blocked.
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

/** How the server responds to a path. */
export type PathBehaviour =
  | { readonly kind: 'serve'; readonly bytes: Uint8Array }
  | { readonly kind: 'status'; readonly status: number }
  /** Accepts requests, but responds only after the behaviour changes. */
  | { readonly kind: 'hang' };

export class ModuleWeb implements AsyncDisposable {
  /** Whether all connections are broken. */
  isDown = false;
  /** Number of requests by path. */
  readonly requests = new Map<string, number>();
  readonly #paths = new Map<string, PathBehaviour>();
  readonly #server: Server;
  #waiting: (() => void)[] = [];

  private constructor() {
    this.#server = createServer((request, response) => this.#answer(request, response));
  }

  static async start(): Promise<ModuleWeb> {
    const web = new ModuleWeb();
    await new Promise<void>((resolve) => web.#server.listen(0, '127.0.0.1', resolve));
    return web;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** The address of a module, with its behaviour from now on. */
  put(name: string, behaviour: PathBehaviour): string {
    this.#paths.set(`/${name}`, behaviour);
    const waiting = this.#waiting;
    this.#waiting = [];
    waiting.forEach((again) => again());
    return `http://127.0.0.1:${this.port}/${name}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await closed(this.#server);
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = request.url ?? '/';
    this.requests.set(path, (this.requests.get(path) ?? 0) + 1);
    const behaviour = this.#paths.get(path) ?? { kind: 'status', status: 404 };
    if (this.isDown) {
      request.socket.destroy();
      return;
    }
    switch (behaviour.kind) {
      case 'serve':
        response.end(behaviour.bytes);
        break;
      case 'status':
        response.writeHead(behaviour.status).end('no');
        break;
      case 'hang':
        this.#waiting.push(() => this.#answer(request, response));
        break;
      default:
        behaviour satisfies never;
    }
  }
}

/** A forward proxy for http: the only connection of a replica to module sources. */
export class Road implements AsyncDisposable {
  isBlocked = false;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => this.#forward(request, response));
  }

  static async start(): Promise<Road> {
    const road = new Road();
    await new Promise<void>((resolve) => road.#server.listen(0, '127.0.0.1', resolve));
    return road;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await closed(this.#server);
  }

  #forward(request: IncomingMessage, response: ServerResponse): void {
    if (this.isBlocked) {
      request.socket.destroy();
      return;
    }
    const outgoing = httpRequest(new URL(request.url ?? ''), { method: request.method ?? 'GET' }, (incoming) => {
      response.writeHead(incoming.statusCode ?? 502, incoming.headers);
      incoming.pipe(response);
    });
    outgoing.on('error', () => response.destroy());
    response.on('close', () => outgoing.destroy());
    outgoing.end();
  }
}

async function closed(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise<void>((resolve) => server.close(() => resolve()));
}
