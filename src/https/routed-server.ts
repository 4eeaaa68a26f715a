// The server of a port with a table of routes, plain HTTP. Reviews and control connections have servers of their own.
import { once } from 'node:events';
import type { Server } from 'node:http';
import { hostText, listen } from './listen.ts';
import { loopbackNamesOnly } from './loopback-host.ts';
import { createPort, type PortName } from './ports.ts';
import { routed, type Routes } from './routes.ts';

export interface RoutedServerOptions {
  /** Whose limits the port has. */
  readonly name: PortName;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly routes: Routes;
}

/** Answers the paths of a table. On a loopback address only requests that name it. */
export class RoutedServer {
  readonly #options: RoutedServerOptions;
  readonly #server: Server;

  constructor(options: RoutedServerOptions) {
    const { name, host, routes } = options;
    this.#options = options;
    this.#server = createPort(name, { handler: loopbackNamesOnly(host, routed(routes)) });
  }

  /** Starts listening. Returns the base URL. @throws HttpsError 'port-busy' */
  async start(): Promise<string> {
    const { host, port } = this.#options;
    return `http://${hostText(host)}:${await listen(this.#server, port, host)}`;
  }

  /** Ends all connections. */
  async stop(): Promise<void> {
    if (!this.#server.listening) {
      return;
    }
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}
