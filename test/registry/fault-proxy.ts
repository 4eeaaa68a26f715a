// A proxy in front of a registry, which counts requests and answers some of them itself.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, request as httpsRequest, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createLoopbackCertificate } from '../cluster/loopback-certificate.ts';
import type { Registry } from './registry-lab.ts';

/** Answers a request instead of the registry. */
export type Fault = (request: IncomingMessage, response: ServerResponse) => void;

export class FaultProxy implements AsyncDisposable {
  readonly ca: string;
  /** Paths of requests with credentials. */
  readonly paths: string[] = [];
  /** Faults by a part of the path, for requests with credentials. */
  readonly faults = new Map<string, Fault>();
  /** The same for requests without credentials. */
  readonly anonymousFaults = new Map<string, Fault>();
  /** When a fault was injected last. */
  faultedAtMs = 0;
  readonly #server: Server;

  private constructor(server: Server, ca: string) {
    this.#server = server;
    this.ca = ca;
  }

  static async start(registry: Registry): Promise<FaultProxy> {
    const certificate = await createLoopbackCertificate();
    const server = createServer(certificate);
    const proxy = new FaultProxy(server, certificate.cert);
    server.on('request', (request, response) => proxy.#handle(registry, request, response));
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    return proxy;
  }

  /** `localhost:<port>` */
  get host(): string {
    return `localhost:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Downloads of blobs so far. */
  get downloads(): number {
    return this.paths.filter((path) => path.includes('/blobs/')).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  #handle({ host, ca }: Registry, request: IncomingMessage, response: ServerResponse): void {
    const { url = '/', method = 'GET', headers } = request;
    const faults = headers.authorization === undefined ? this.anonymousFaults : this.faults;
    if (headers.authorization !== undefined) {
      this.paths.push(url);
    }
    const fault = [...faults].find(([part]) => url.includes(part))?.[1];
    if (fault !== undefined) {
      this.faultedAtMs = performance.now();
      fault(request, response);
      return;
    }
    const { host: _, connection: _connection, ...forwarded } = headers;
    const outgoing = httpsRequest(`https://${host}${url}`, { method, ca, headers: forwarded }, (incoming) => {
      response.writeHead(incoming.statusCode ?? 502, incoming.headers);
      incoming.pipe(response);
    });
    outgoing.on('error', () => response.destroy());
    request.pipe(outgoing);
  }
}
