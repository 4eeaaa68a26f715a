// The operations port of a controller, plain HTTP: /livez, /readyz, /metrics.
import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Registry } from 'prom-client';
import { createPort, hostText, listen, loopbackNamesOnly } from '../../https/index.ts';
import { MetricsEndpoint } from '../../metrics/index.ts';

interface OperationsServerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Why the process is not ready; undefined when it is. */
  readonly notReady: () => string | undefined;
  readonly registry: Registry;
}

export class OperationsServer {
  readonly #options: OperationsServerOptions;
  readonly #metrics: MetricsEndpoint;
  readonly #server: Server;

  constructor(options: OperationsServerOptions) {
    this.#options = options;
    this.#metrics = new MetricsEndpoint(options.registry);
    const answer = loopbackNamesOnly(options.host, (request, response) => void this.#answer(request, response));
    this.#server = createPort('operations', { handler: answer });
  }

  /** Starts listening. Returns the base URL. @throws HttpsError 'port-busy' */
  async start(): Promise<string> {
    const { host, port } = this.#options;
    return `http://${hostText(host)}:${await listen(this.#server, port, host)}`;
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) {
      return;
    }
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.resume();
    const { notReady } = this.#options;
    const [path] = (request.url ?? '/').split('?', 1);
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD');
      send(response, 405, `expected GET, got ${request.method ?? 'no method'}\n`);
    } else if (path === '/livez') {
      send(response, 200, 'ok\n');
    } else if (path === '/readyz') {
      const reason = notReady();
      send(response, reason === undefined ? 200 : 503, reason === undefined ? 'ok\n' : `${reason}\n`);
    } else if (path === '/metrics') {
      await this.#metrics.answer(request, response);
    } else {
      send(response, 404, 'no such path: expected /livez, /readyz or /metrics\n');
    }
  }
}

function send(response: ServerResponse, status: number, text: string): void {
  const length = Buffer.byteLength(text);
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'content-length': length });
  response.end(text);
}
