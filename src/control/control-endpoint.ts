// The control port of a replica: HTTPS for controllers and other replicas, with client certificates.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { MAX_REVIEW_BYTES } from '../engine/definition/index.ts';
import { BodyBudget, readBody, RequestRefusal, sendJson } from '../https/index.ts';
import type { Logger } from '../log/index.ts';
import { ControlListener } from './control-listener.ts';
import type { ControlListenerOptions } from './control-listener.ts';
import { ControlModules } from './control-modules.ts';
import { CONTROLLER_CONTROL_NAME, type ControlPeer } from './control-names.ts';
import { parseControlTarget, parsePrevalidation } from './control-request.ts';
import type { ControlTarget } from './control-request.ts';
import { ControlStream, STALLED_MS } from './control-stream.ts';
import { CONTROL_PROTOCOL } from './replica-protocol.ts';
import type { PrevalidationRequest, PrevalidationResult } from './replica-protocol.ts';
import type { ReportSource } from './report-source.ts';
import type { UseSource } from './use-source.ts';

/** Parallel streams: a few controllers, and connections that are not closed yet. A further one ends the oldest. */
export const MAX_STREAMS = 16;
/**
 * Parallel pre-validations, including those that wait for slow sources. Their bodies count against the same budget as
 * reviews.
 */
export const MAX_REPLICA_PREVALIDATIONS = 128;
/** Time limit of a pre-validation: a download, compiling and checking. Milliseconds. */
const PREVALIDATION_TIMEOUT_MS = 180_000;
export interface ControlEndpointOptions extends Omit<ControlListenerOptions, 'answer'> {
  /** `metadata.name` of the PolicyServerReplica. */
  readonly replica: string;
  /** Its PolicyServer: replicas of others get no modules. */
  readonly policyServer: string;
  /** Version of Portcullis. */
  readonly version: string;
  readonly reports: ReportSource;
  /** Default: uses of exceptions are not counted. */
  readonly uses?: UseSource;
  /** May reject with {@link RequestRefusal}, or with the reason of the signal when it is aborted. */
  readonly prevalidate: (request: PrevalidationRequest, signal: AbortSignal) => Promise<PrevalidationResult>;
  /** The verified module of a digest; undefined if it is not in the cache. */
  readonly readModule: (digest: string) => Promise<Uint8Array | undefined>;
  /** A controller that does not read for this long is disconnected. Milliseconds. Default: {@link STALLED_MS}. */
  readonly stalledMs?: number;
}

/** The control port. See docs/control-port.md. */
export class ControlEndpoint {
  readonly #options: ControlEndpointOptions;
  readonly #log: Logger;
  readonly #modules: ControlModules;
  readonly #budget = new BodyBudget(MAX_REVIEW_BYTES);
  readonly #instance = randomUUID();
  /** Oldest first. */
  readonly #streams = new Set<ControlStream>();
  readonly #stopped = new AbortController();
  readonly #listener: ControlListener;
  #prevalidations = 0;

  constructor(options: ControlEndpointOptions) {
    this.#options = options;
    this.#log = options.log;
    this.#modules = new ControlModules(options.readModule);
    const { host, port, tls, log } = options;
    this.#listener = new ControlListener({
      host,
      port,
      tls,
      answer: (request, response, peer) => this.#answer(request, response, peer),
      log,
    });
  }

  /**
   * Starts listening. Resolves with the port.
   * @throws HttpsError 'port-busy', 'tls-invalid'
   */
  async start(): Promise<number> {
    return await this.#listener.start();
  }

  /** Ends the streams and rejects further requests. */
  async stop(): Promise<void> {
    this.#stopped.abort(new RequestRefusal(503, 'the replica is stopping'));
    const stopped = this.#listener.stop();
    for (const stream of this.#streams) {
      stream.end();
    }
    await stopped;
  }

  async #answer(request: IncomingMessage, response: ServerResponse, peer: ControlPeer): Promise<void> {
    const target = parseControlTarget(request.method, request.url);
    this.#requireRight(target, peer);
    switch (target.route) {
      case 'stream':
        request.resume();
        this.#stream(response);
        break;
      case 'prevalidate':
        await this.#prevalidate(request, response);
        break;
      case 'modules':
        request.resume();
        await this.#modules.send(target.digest, response);
        break;
      default:
        target satisfies never;
    }
  }

  /** Replicas only get modules, and only those of their own PolicyServer. */
  #requireRight({ route }: ControlTarget, { isController, policyServers }: ControlPeer): void {
    const { policyServer } = this.#options;
    if (isController || (route === 'modules' && policyServers.includes(policyServer))) {
      return;
    }
    throw new RequestRefusal(
      403,
      route === 'modules'
        ? `this is for PolicyServer ${policyServer}, and the certificate has no name that says so`
        : `this is for controllers, and the certificate is not for ${CONTROLLER_CONTROL_NAME}`,
    );
  }

  #stream(response: ServerResponse): void {
    const [oldest] = this.#streams;
    if (oldest !== undefined && this.#streams.size >= MAX_STREAMS) {
      this.#log.warn({ streams: this.#streams.size }, 'too many controller streams, the oldest is ended');
      this.#streams.delete(oldest);
      oldest.destroy();
    }
    const { replica, version, reports, uses, stalledMs = STALLED_MS } = this.#options;
    const hello = { type: 'hello', protocol: CONTROL_PROTOCOL, replica, instance: this.#instance, version } as const;
    const stream = new ControlStream(response, hello, { reports, uses, stalledMs });
    this.#streams.add(stream);
    response.once('close', () => this.#streams.delete(stream));
  }

  async #prevalidate(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const type = request.headers['content-type'] ?? 'none';
    if (!/^application\/json\s*(?:;|$)/i.test(type)) {
      throw new RequestRefusal(415, 'expected Content-Type: application/json');
    }
    if (this.#prevalidations >= MAX_REPLICA_PREVALIDATIONS) {
      throw new RequestRefusal(503, `${MAX_REPLICA_PREVALIDATIONS} pre-validations are running; try again`);
    }
    this.#prevalidations += 1;
    let limit: NodeJS.Timeout | undefined;
    try {
      const policy = parsePrevalidation(await this.#body(request));
      const ended = new AbortController();
      response.once('close', () => ended.abort(new RequestRefusal(503, 'the caller has closed the connection')));
      limit = setTimeout(() => ended.abort(timedOut()), PREVALIDATION_TIMEOUT_MS);
      const signal = AbortSignal.any([ended.signal, this.#stopped.signal]);
      const result = await this.#options.prevalidate(policy, signal);
      if (!response.destroyed) {
        sendJson(response, 200, JSON.stringify(result));
      }
    } finally {
      clearTimeout(limit);
      this.#prevalidations -= 1;
    }
  }

  #body(request: IncomingMessage): Promise<Uint8Array> {
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
    readBody(request, this.#budget, (error, body) => (error === undefined ? resolve(body) : reject(error)));
    return promise;
  }
}

function timedOut(): RequestRefusal {
  return new RequestRefusal(
    503,
    `the pre-validation did not end within ${PREVALIDATION_TIMEOUT_MS / 1000} s; try again`,
  );
}
