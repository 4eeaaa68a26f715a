// An HTTP proxy that tunnels every connection to one registry, and counts them.
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { Registry } from './registry-lab.ts';

export class ConnectProxy implements AsyncDisposable {
  /** `host:port` of each tunnel. */
  readonly tunnels: string[] = [];
  /** Whether it makes connections; otherwise it answers 403. */
  isOpen = true;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start({ host }: Registry): Promise<ConnectProxy> {
    const server = createServer();
    const proxy = new ConnectProxy(server);
    const port = Number(new URL(`https://${host}`).port);
    server.on('connect', ({ url = '' }, socket: Socket) => {
      if (!proxy.isOpen) {
        socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
        return;
      }
      proxy.tunnels.push(url);
      const upstream = connect(port, '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
        socket.pipe(upstream).pipe(socket);
      });
      for (const [one, other] of [
        [socket, upstream],
        [upstream, socket],
      ] as const) {
        proxy.#sockets.add(one);
        one.on('error', () => undefined).once('close', () => other.destroy());
      }
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    return proxy;
  }

  /** `127.0.0.1:<port>` */
  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#sockets.forEach((socket) => socket.destroy());
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }
}
