import { readFileSync } from 'node:fs';
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { request } from 'node:https';
import type { RequestOptions } from 'node:https';
import { createInterface } from 'node:readline';
import { CONTROL_NAME } from '../replica-protocol.ts';
import type { ReplicaMessage } from '../replica-protocol.ts';

/** Certificate and CA of a caller; PEM files. */
export interface Caller {
  readonly certFile?: string;
  readonly keyFile?: string;
  readonly caFile: string;
}

/** Calls control ports on this machine. */
export class ControlCaller {
  readonly #port: number;
  readonly #tls: RequestOptions;

  constructor(port: number, { certFile, keyFile, caFile }: Caller) {
    this.#port = port;
    this.#tls = {
      ca: readFileSync(caFile),
      servername: CONTROL_NAME,
      ...(certFile === undefined ? {} : { cert: readFileSync(certFile) }),
      ...(keyFile === undefined ? {} : { key: readFileSync(keyFile) }),
    };
  }

  /** Resolves with the response once its headers have arrived. */
  open(path: string, options: RequestOptions = {}, body?: string | Uint8Array): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    request({ host: '127.0.0.1', port: this.#port, path, agent: false, ...this.#tls, ...options })
      .once('response', resolve)
      .on('error', reject)
      .end(body);
    return promise;
  }

  async call(path: string, options: RequestOptions = {}, body?: string | Uint8Array): Promise<CallAnswer> {
    const response = await this.open(path, options, body);
    const chunks: Buffer[] = [];
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk);
    }
    return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) };
  }

  /** Sends JSON to /prevalidate. */
  prevalidate(
    body: unknown,
    options: Omit<RequestOptions, 'headers'> & { readonly headers?: OutgoingHttpHeaders } = {},
  ): Promise<CallAnswer> {
    const text = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
    const headers = { 'content-type': 'application/json', ...options.headers };
    return this.call('/prevalidate', { method: 'POST', ...options, headers }, text);
  }

  async stream(): Promise<ReceivedStream> {
    return new ReceivedStream(await this.open('/stream'));
  }
}

export interface CallAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

/** A stream as a controller reads it. */
class ReceivedStream {
  readonly response: IncomingMessage;
  readonly #lines: AsyncIterator<string>;

  constructor(response: IncomingMessage) {
    this.response = response;
    this.#lines = createInterface({ input: response })[Symbol.asyncIterator]();
    response.on('error', () => undefined);
  }

  /** The next message; undefined after the end of the stream. */
  async any(): Promise<ReplicaMessage | undefined> {
    const next = await this.#lines.next();
    return next.done === true ? undefined : (JSON.parse(next.value) as ReplicaMessage);
  }

  /** The next message that is not a heartbeat. */
  async next(): Promise<ReplicaMessage | undefined> {
    for (;;) {
      const message = await this.any();
      if (message?.type !== 'alive') {
        return message;
      }
    }
  }

  /** The next report. */
  async report(): Promise<ReplicaMessage & { type: 'report' }> {
    const message = await this.next();
    if (message?.type !== 'report') {
      throw new Error(`expected a report, got ${JSON.stringify(message)}`);
    }
    return message;
  }

  /** Reads to the end. */
  async rest(): Promise<void> {
    while ((await this.any()) !== undefined) {
      // Reads until the end.
    }
  }

  close(): void {
    this.response.destroy();
  }
}
