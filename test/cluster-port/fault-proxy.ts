// A proxy in front of a real API server that simulates faults of networks and servers: resets, stalls, losses, delays
// and error responses.
import { readFileSync } from 'node:fs';
import { createServer as createHttpsServer, Agent, request as httpsRequest } from 'node:https';
import type { Server as HttpsServer } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import type { AddressInfo, Server as TcpServer, Socket } from 'node:net';
import { createLoopbackCertificate } from '../cluster/loopback-certificate.ts';
import { resetSocket } from '../cluster/reset-socket.ts';

/** The active fault. */
export type Fault =
  /** Existing and new connections are reset. */
  | { readonly kind: 'cut' }
  /** Bytes are held in both directions on all connections, and delivered when the fault ends. */
  | { readonly kind: 'freeze' }
  /** Existing and new connections stay open, but never deliver another byte, not even after the fault. */
  | { readonly kind: 'half-open' }
  /** Bytes are delayed and slow. */
  | { readonly kind: 'slow'; readonly bytesPerSecond: number; readonly delayMs: number }
  /** Requests get this status; running watches are cut. */
  | { readonly kind: 'status'; readonly status: 429 | 500 | 503 };

/** Numbers of requests by type. */
export interface RequestCounts {
  /** First pages of lists. */
  readonly lists: number;
  readonly watches: number;
}

/** The two sockets of a forwarded connection. */
interface Link {
  readonly client: Socket;
  readonly inner: Socket;
  /** Lost: no bytes are forwarded any more. */
  dead: boolean;
  /** Delayed bytes, which later ones must not overtake. */
  delayed: number;
}

/** A forwarded watch. */
interface Stream {
  readonly response: ServerResponse;
  isAtLineEnd: boolean;
}

/** Limit of the remaining delay when slowness ends. Milliseconds. */
const MAX_DELAY_MS = 500;

const EXPIRED = {
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message: 'too old resource version: 1 (2)',
  reason: 'Expired',
  code: 410,
};

/**
 * Terminates TLS with its own certificate, so that it can read requests and send error responses. A plain TCP forwarder in front of
 * it simulates faults of the network.
 */
export class FaultProxy implements AsyncDisposable {
  /** PEM of its certificate. */
  readonly ca: string;
  readonly #upstream: URL;
  readonly #agent: Agent;
  readonly #https: HttpsServer;
  readonly #tcp: TcpServer;
  readonly #links = new Set<Link>();
  readonly #streams = new Set<Stream>();
  #fault: Fault | undefined;
  #lists = 0;
  #watches = 0;

  private constructor(upstream: string, upstreamCa: string, own: { cert: string; key: string }) {
    this.ca = own.cert;
    this.#upstream = new URL(upstream);
    this.#agent = new Agent({ keepAlive: true, ca: upstreamCa });
    this.#https = createHttpsServer(own, (request, response) => this.#forward(request, response));
    this.#tcp = createTcpServer({ pauseOnConnect: true }, (socket) => this.#carry(socket));
  }

  /** Starts a proxy on a free port. */
  static async start(server: { readonly url: string; readonly caFile: string }): Promise<FaultProxy> {
    const proxy = new FaultProxy(server.url, readFileSync(server.caFile, 'utf8'), await createLoopbackCertificate());
    for (const one of [proxy.#https, proxy.#tcp]) {
      await new Promise<void>((resolve) => {
        one.listen(0, '127.0.0.1', resolve);
      });
    }
    return proxy;
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#tcp.address() as AddressInfo).port}`;
  }

  get counts(): RequestCounts {
    return { lists: this.#lists, watches: this.#watches };
  }

  /** Replaces the active fault. */
  inject(fault: Fault): void {
    this.heal();
    this.#fault = fault;
    switch (fault.kind) {
      case 'cut':
        this.#links.forEach((link) => resetSocket(link.client));
        break;
      case 'half-open':
        this.#links.forEach((link) => (link.dead = true));
        this.#pauseAll();
        break;
      case 'freeze':
        this.#pauseAll();
        break;
      case 'status':
        this.#streams.forEach(({ response }) => response.destroy());
        break;
      case 'slow':
        break;
    }
  }

  /** Ends the fault; lost connections stay lost. */
  heal(): void {
    this.#fault = undefined;
    for (const link of this.#links) {
      // Delayed bytes continue when they are due.
      if (!link.dead && link.delayed === 0) {
        link.client.resume();
        link.inner.resume();
      }
    }
  }

  /** Sends an expired error (410) to each running watch. Returns their number. */
  expireWatches(): number {
    const streams = [...this.#streams];
    streams.forEach((stream) => this.#expire(stream));
    return streams.length;
  }

  async stop(): Promise<void> {
    this.#links.forEach(({ client, inner }) => {
      client.destroy();
      inner.destroy();
    });
    this.#agent.destroy();
    this.#https.closeAllConnections();
    await Promise.all(
      [this.#https, this.#tcp].map(
        (one) =>
          new Promise<void>((resolve) => {
            one.close(() => resolve());
          }),
      ),
    );
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #pauseAll(): void {
    for (const { client, inner } of this.#links) {
      client.pause();
      inner.pause();
    }
  }

  #carry(client: Socket): void {
    if (this.#fault?.kind === 'cut') {
      resetSocket(client);
      return;
    }
    const inner = connect((this.#https.address() as AddressInfo).port, '127.0.0.1');
    const link: Link = { client, inner, dead: this.#fault?.kind === 'half-open', delayed: 0 };
    this.#links.add(link);
    for (const [from, to] of [
      [client, inner],
      [inner, client],
    ] as const) {
      from.setNoDelay(true);
      from.on('data', (bytes: Buffer) => this.#pass(link, from, to, bytes));
      from.on('error', () => undefined);
      from.on('end', () => to.end());
      from.on('close', () => {
        to.destroy();
        this.#links.delete(link);
      });
    }
    if (this.#isHeld(link)) {
      inner.pause();
    } else {
      client.resume();
    }
  }

  #isHeld(link: Link): boolean {
    return link.dead || this.#fault?.kind === 'freeze' || this.#fault?.kind === 'half-open';
  }

  #pass(link: Link, from: Socket, to: Socket, bytes: Buffer): void {
    if (this.#fault?.kind === 'slow') {
      const { delayMs, bytesPerSecond } = this.#fault;
      from.pause();
      link.delayed += 1;
      setTimeout(
        () => {
          link.delayed -= 1;
          to.write(bytes);
          if (!this.#isHeld(link)) {
            from.resume();
          }
        },
        Math.min(MAX_DELAY_MS, delayMs + (bytes.length / bytesPerSecond) * 1000),
      );
      return;
    }
    if (!to.write(bytes)) {
      from.pause();
      to.once('drain', () => {
        if (!this.#isHeld(link)) {
          from.resume();
        }
      });
    }
  }

  #forward(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', this.#upstream);
    const isWatch = request.method === 'GET' && url.searchParams.get('watch') === 'true';
    if (this.#fault?.kind === 'status') {
      refuse(response, this.#fault.status);
      return;
    }
    if (isWatch) {
      this.#watches += 1;
    } else if (request.method === 'GET' && url.searchParams.has('limit') && !url.searchParams.has('continue')) {
      this.#lists += 1;
    }
    const outgoing = httpsRequest(
      url,
      { method: request.method, headers: request.headers, agent: this.#agent },
      (incoming) => {
        response.writeHead(incoming.statusCode ?? 502, incoming.headers);
        if (isWatch && incoming.statusCode === 200) {
          this.#stream(incoming, response);
        } else {
          incoming.pipe(response);
        }
        // A close of one side closes the other.
        incoming.on('error', () => response.destroy());
      },
    );
    outgoing.on('error', () => response.destroy());
    response.on('close', () => outgoing.destroy());
    request.pipe(outgoing);
  }

  #stream(incoming: IncomingMessage, response: ServerResponse): void {
    const stream: Stream = { response, isAtLineEnd: true };
    this.#streams.add(stream);
    response.on('close', () => this.#streams.delete(stream));
    response.flushHeaders();
    incoming.on('data', (bytes: Buffer) => {
      if (response.writableEnded || response.destroyed) {
        return;
      }
      if (!response.write(bytes)) {
        incoming.pause();
        response.once('drain', () => incoming.resume());
      }
      stream.isAtLineEnd = bytes.at(-1) === 0x0a;
    });
    incoming.on('end', () => response.end());
  }

  #expire(stream: Stream): void {
    const { response } = stream;
    if (response.writableEnded || response.destroyed) {
      return;
    }
    if (stream.isAtLineEnd) {
      this.#streams.delete(stream);
      response.end(`${JSON.stringify({ type: 'ERROR', object: EXPIRED })}\n`);
    } else {
      // In the middle of an event, whose end is still on the way.
      setTimeout(() => this.#expire(stream), 5);
    }
  }
}

function refuse(response: ServerResponse, status: 429 | 500 | 503): void {
  const reason = { 429: 'TooManyRequests', 500: 'InternalError', 503: 'ServiceUnavailable' }[status];
  response.writeHead(status, {
    'content-type': 'application/json',
    ...(status === 500 ? {} : { 'retry-after': '1' }),
  });
  response.end(
    JSON.stringify({
      kind: 'Status',
      apiVersion: 'v1',
      status: 'Failure',
      message: 'on purpose',
      reason,
      code: status,
    }),
  );
}
