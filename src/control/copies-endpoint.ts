// The control port of a controller: copies of modules for the replicas of their PolicyServer, and what there is for controllers.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { RequestRefusal, sendJson } from '../https/index.ts';
import { COPIES_WAIT_MS, type CopiesReport } from './copies-report.ts';
import { ControlListener } from './control-listener.ts';
import type { ControlListenerOptions } from './control-listener.ts';
import { CONTROLLER_CONTROL_NAME, type ControlPeer } from './control-names.ts';

/** Modules that are sent at the same time. Each takes a few MiB of memory. */
const MAX_COPIES_SENT = 16;
/** Time limit of sending a module; replicas give up earlier. Milliseconds. */
const SEND_TIMEOUT_MS = 30_000;
/** Controllers that wait for a change: a few, and those that have ended without closing their connection. */
const MAX_WAITING = 16;

/** A module that can be sent. */
export interface SentCopy {
  /** Bytes. */
  readonly size: number;
  /** Fails before its end if the copy is damaged. */
  readonly content: AsyncIterable<Uint8Array>;
}

/** The copies of a controller. */
export interface CopySource {
  /** The copy that belongs to one of the PolicyServers. */
  find(policyServers: readonly string[], digest: string): SentCopy | undefined;
  report(): CopiesReport;
  /** Calls the listener after each change of the report. Returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void;
}

export interface CopiesEndpointOptions extends Omit<ControlListenerOptions, 'answer'> {
  readonly source: CopySource;
}

/**
 * `GET /modules/{digest}` for replicas, by the PolicyServer of their certificate; `GET /copies?after={version}` for controllers,
 * which waits for a change. See docs/control-port.md.
 */
export class CopiesEndpoint {
  readonly #source: CopySource;
  readonly #listener: ControlListener;
  readonly #stopped = new AbortController();
  #sent = 0;
  #waiting = 0;

  constructor({ source, ...options }: CopiesEndpointOptions) {
    this.#source = source;
    this.#listener = new ControlListener({
      ...options,
      answer: (request, response, peer) => this.#answer(request, response, peer),
    });
  }

  /**
   * Starts listening. Resolves with the port.
   * @throws HttpsError 'port-busy', 'tls-invalid'
   */
  async start(): Promise<number> {
    return await this.#listener.start();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#listener.stop();
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    { isController, policyServers }: ControlPeer,
  ): Promise<void> {
    request.resume();
    const url = URL.parse(request.url ?? '', 'https://localhost');
    const digest = /^\/modules\/(sha256:[0-9a-f]{64})$/.exec(url?.pathname ?? '')?.[1];
    if (request.method !== 'GET' || (digest === undefined && url?.pathname !== '/copies')) {
      throw new RequestRefusal(404, 'no such path: expected GET /modules/{digest} or /copies');
    }
    if (digest !== undefined) {
      await this.#send(policyServers, digest, response);
    } else if (!isController) {
      throw new RequestRefusal(
        403,
        `this is for controllers, and the certificate is not for ${CONTROLLER_CONTROL_NAME}`,
      );
    } else {
      await this.#report(url?.searchParams.get('after') ?? '', response);
    }
  }

  async #send(policyServers: readonly string[], digest: string, response: ServerResponse): Promise<void> {
    if (policyServers.length === 0) {
      throw new RequestRefusal(403, 'copies belong to PolicyServers, and the certificate names none');
    }
    if (this.#sent >= MAX_COPIES_SENT) {
      throw new RequestRefusal(503, 'too many modules are being sent; try again');
    }
    const copy = this.#source.find(policyServers, digest);
    if (copy === undefined) {
      throw new RequestRefusal(404, 'the controller has no copy of the module for this PolicyServer');
    }
    this.#sent += 1;
    try {
      response.writeHead(200, { 'content-type': 'application/wasm', 'content-length': copy.size });
      const signal = AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(SEND_TIMEOUT_MS)]);
      await pipeline(Readable.from(copy.content, { objectMode: false }), response, { signal });
    } finally {
      this.#sent -= 1;
    }
  }

  async #report(after: string, response: ServerResponse): Promise<void> {
    if (this.#waiting >= MAX_WAITING) {
      throw new RequestRefusal(503, 'too many controllers wait for changes; try again');
    }
    this.#waiting += 1;
    try {
      await this.#changed(after, response);
    } finally {
      this.#waiting -= 1;
    }
    const report = this.#source.report();
    if (report.version === after) {
      response.writeHead(204).end();
    } else {
      sendJson(response, 200, JSON.stringify(report));
    }
  }

  /** Resolves when the version is another one, after some time, or when the caller has gone. */
  async #changed(after: string, response: ServerResponse): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const check = (): void => (this.#source.report().version === after ? undefined : resolve());
    const unsubscribe = this.#source.subscribe(check);
    const limit = setTimeout(resolve, COPIES_WAIT_MS);
    response.once('close', resolve);
    this.#stopped.signal.addEventListener('abort', () => resolve(), { once: true });
    check();
    await promise;
    clearTimeout(limit);
    unsubscribe();
  }
}
