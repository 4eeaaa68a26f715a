import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';

import type { ServerIdentity } from './test-authority.ts';

/** An HTTP(S) server on a free port of this machine. */
export class TestServer {
  /** `http://127.0.0.1:<port>` or `https://localhost:<port>`. */
  readonly origin: string;
  /** Requests so far. */
  requests = 0;
  readonly #server: Server;

  private constructor(server: Server, scheme: 'http' | 'https') {
    this.#server = server;
    const { port } = server.address() as AddressInfo;
    this.origin = scheme === 'http' ? `http://127.0.0.1:${port}` : `https://localhost:${port}`;
    server.on('request', () => {
      this.requests++;
    });
  }

  static async start(listener: RequestListener, identity?: ServerIdentity): Promise<TestServer> {
    const server = identity === undefined ? createServer(listener) : createTlsServer({ ...identity }, listener);
    server.on('clientError', (_error, socket) => socket.destroy());
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    return new TestServer(server, identity === undefined ? 'http' : 'https');
  }

  get host(): string {
    return new URL(this.origin).host;
  }

  /** Ends it with all of its connections. Ending it twice is allowed. */
  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }
}
