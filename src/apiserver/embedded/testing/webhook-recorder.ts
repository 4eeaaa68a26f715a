// A webhook server that records AdmissionReviews. A test scripts its responses by path.
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { Server } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { selfSigned } from './self-signed.ts';
import type { SelfSigned } from './self-signed.ts';

export type Review = { readonly apiVersion: string; readonly kind: string; readonly request: Record<string, unknown> };

/** Computes the response: a whole body, or the fields of `response` besides the uid. */
export type Behaviour = (review: Review) => Answer | Promise<Answer>;

interface Answer {
  readonly response?: Readonly<Record<string, unknown>>;
  readonly body?: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Closes the connection. */
  readonly hangsUp?: boolean;
  /** Never responds. */
  readonly isSilent?: boolean;
}

/** A received review. */
export interface Recorded {
  readonly path: string;
  readonly query: string;
  readonly review: Review;
}

export class WebhookRecorder implements AsyncDisposable {
  readonly certificate: SelfSigned;
  readonly recorded: Recorded[] = [];
  readonly #server: Server;
  readonly #behaviours: Readonly<Record<string, Behaviour>>;

  private constructor(certificate: SelfSigned, behaviours: Readonly<Record<string, Behaviour>>) {
    this.certificate = certificate;
    this.#behaviours = behaviours;
    this.#server = createServer(certificate, (request, response) => void this.#answer(request, response));
  }

  /**
   * Starts the server.
   * @param behaviours by the first path segment; reviews at other paths are allowed
   * @param names of the certificate, besides `localhost`
   */
  static async start(
    behaviours: Readonly<Record<string, Behaviour>> = {},
    names: readonly string[] = [],
  ): Promise<WebhookRecorder> {
    const recorder = new WebhookRecorder(await selfSigned(names), behaviours);
    recorder.#server.listen(0, '127.0.0.1');
    await once(recorder.#server, 'listening');
    return recorder;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  url(path: string): string {
    return `https://127.0.0.1:${this.port}/${path}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) {
      chunks.push(chunk);
    }
    const review = JSON.parse(Buffer.concat(chunks).toString()) as Review;
    const url = new URL(request.url ?? '/', 'https://localhost');
    this.recorded.push({ path: url.pathname, query: url.search, review });
    const name = url.pathname.split('/')[1] ?? '';
    const answer = (await this.#behaviours[name]?.(review)) ?? { response: { allowed: true } };
    if (answer.hangsUp === true) {
      request.socket.destroy();
      return;
    }
    if (answer.isSilent === true) {
      return;
    }
    const { apiVersion, kind } = review;
    const good = JSON.stringify({ apiVersion, kind, response: { uid: review.request.uid, ...answer.response } });
    outgoing.writeHead(answer.status ?? 200, { 'content-type': 'application/json', ...answer.headers });
    outgoing.end(answer.body ?? good);
  }
}
