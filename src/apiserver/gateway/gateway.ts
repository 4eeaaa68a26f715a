// Serves an embedded cluster over the Kubernetes API, for kubectl and other clients.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import { ApiError, ClusterError } from '../../cluster/index.ts';
import type { Authenticator } from '../embedded/authentication/authenticator.ts';
import { impersonationOf } from '../embedded/authentication/impersonation.ts';
import { forbidden } from '../embedded/authorization/forbidden.ts';
import type { UserInfo } from '../embedded/request/request.ts';
import { notServed } from '../not-served.ts';
import type { ResourceDefinition } from '../resource-definition.ts';
import { errorAnswer, send, setCommonHeaders, setWarnings } from './answer.ts';
import type { GatewayAnswer } from './answer.ts';
import { EventLines } from './event-lines.ts';
import { EventTurns } from './event-turns.ts';
import { createGatewayServer, listen } from './gateway-server.ts';
import type { GatewayTls } from './gateway-server.ts';
import { negotiate } from './negotiation.ts';
import type { Representation } from './negotiation.ts';
import { pageNotFound, PathRequests } from './path-request.ts';
import { RequestLimit } from './request-limit.ts';
import { isWatchRequest } from './request-options.ts';
import { attributesOf, MAX_URL_BYTES, parseTarget, verbOf } from './request-target.ts';
import type { PathTarget, ResourceTarget } from './request-target.ts';
import { answerResource, checkServed, watchResource } from './resource-request.ts';
import type { ResourceRequest } from './resource-request.ts';
import type { ServedCluster } from './served-cluster.ts';
import { includeObjectOf, printerOf } from './table.ts';
import { UnreadAnswers } from './unread-answers.ts';
import type { UnreadAnswerLimits } from './unread-answers.ts';
import { UnreadEvents } from './unread-events.ts';
import { sendWatch } from './watch-stream.ts';

/** Concurrent requests, watches excluded. Their bodies take at most 200 × 3 MiB. */
const MAX_REQUESTS = 200;
/** Of these, those of one user, half: requests that wait for a webhook of one user leave room for those of others. */
const MAX_REQUESTS_OF_USER = 100;
/**
 * Requests that wait until others have ended: refusing one costs as much as a small one, and its client comes again a second later.
 * Node has read 64 KiB of each at most.
 */
const MAX_WAITING_REQUESTS = 1_000;
/** Of these, those of one user: as many as an API server keeps of one flow, six queues of 50. */
const MAX_WAITING_REQUESTS_OF_USER = 300;
/** Concurrent watches. A user with kubectl, the console and all controllers has about fifty. */
const MAX_WATCHES = 2_000;
/** Of these, those of one user: five times what one with kubectl, the console and all controllers has. */
const MAX_WATCHES_OF_USER = 250;
/** How long a stopping gateway waits for requests in flight. Milliseconds. */
const DEFAULT_DRAIN_MS = 10_000;
/** How often a stopping gateway closes idle connections. Milliseconds. */
const DRAIN_CHECK_MS = 10;

/** Verbs whose request has an object or a patch as its body. */
const WITH_BODY: ReadonlySet<string> = new Set(['create', 'update', 'patch']);

/** Subresources of pods that a kubelet serves. */
const NODE_SUBRESOURCES: ReadonlySet<string> = new Set(['attach', 'exec', 'log', 'portforward', 'proxy']);

/** The log record of a request. */
export interface RequestRecord {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Undefined for requests that were not authenticated. */
  readonly user: string | undefined;
  readonly status: number;
  readonly durationMs: number;
}

/** Options of a {@link Gateway}. */
export interface GatewayOptions {
  readonly cluster: ServedCluster;
  /** Authenticates requests. */
  readonly authenticator: Pick<Authenticator, 'authenticate'>;
  readonly tls: GatewayTls;
  /** Called after each response, and at the end of each watch. Default: nothing. */
  readonly onRequest?: (record: RequestRecord) => void;
  /** Called for internal errors. Default: nothing. */
  readonly onError?: (error: unknown, method: string, path: string) => void;
  /** Time limit for clients of watches that do not read. Milliseconds. Default: 30,000. */
  readonly slowWatcherMs?: number;
  /** Default: {@link MAX_WATCHES}. */
  readonly maxWatches?: number;
  /** Default: {@link MAX_WATCHES_OF_USER}. */
  readonly maxWatchesOfUser?: number;
  /** Bytes of unread events of watches. Default: {@link MAX_UNREAD_BYTES}. */
  readonly maxUnreadBytes?: number;
  /** Default: {@link MAX_UNREAD_ANSWERS} and {@link MAX_UNREAD_ANSWERS_OF_USER}. */
  readonly unreadAnswers?: UnreadAnswerLimits;
  /** How long {@link Gateway.stop} waits for requests. Milliseconds. Default: 10,000. */
  readonly drainMs?: number;
  /** Milliseconds since 1970. Default: the system's clock. */
  readonly now?: () => number;
}

/** The address of a gateway. */
export interface GatewayAddress {
  /** `https://127.0.0.1:6443` */
  readonly url: string;
  readonly port: number;
}

/** The HTTPS server of an embedded cluster. */
export class Gateway {
  readonly #options: GatewayOptions;
  readonly #server: Server;
  readonly #paths: PathRequests;
  readonly #stopping = new AbortController();
  readonly #now: () => number;
  readonly #requests = new RequestLimit('requests', {
    all: MAX_REQUESTS,
    ofUser: MAX_REQUESTS_OF_USER,
    waiting: { all: MAX_WAITING_REQUESTS, ofUser: MAX_WAITING_REQUESTS_OF_USER },
  });
  readonly #watches: RequestLimit;
  readonly #unread: UnreadEvents;
  readonly #unreadAnswers: UnreadAnswers;
  readonly #lines = new EventLines();
  readonly #turns = new EventTurns();
  #stopped: Promise<void> | undefined;

  constructor(options: GatewayOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    const { maxWatches = MAX_WATCHES, maxWatchesOfUser = MAX_WATCHES_OF_USER } = options;
    this.#watches = new RequestLimit('watches', { all: maxWatches, ofUser: maxWatchesOfUser });
    this.#unread = new UnreadEvents(options.maxUnreadBytes);
    this.#unreadAnswers = new UnreadAnswers(options.unreadAnswers);
    this.#paths = new PathRequests(
      () => options.cluster.definitions(),
      () => !this.#stopping.signal.aborted,
    );
    this.#server = createGatewayServer(options.tls, (request, response) => void this.#handle(request, response));
  }

  /**
   * Starts listening.
   * @param at Port 0 selects a free port. The default host is the loopback address.
   * @throws ClusterError 'port-busy'.
   */
  async start(at: { readonly port: number; readonly host?: string }): Promise<GatewayAddress> {
    const { port, host = '127.0.0.1' } = at;
    const bound = await listen(this.#server, port, host);
    return { url: `https://${host.includes(':') ? `[${host}]` : host}:${bound}`, port: bound };
  }

  /** Closes the port, ends watches, and waits for requests in flight. Idempotent. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    this.#stopping.abort(new Error('the gateway stops'));
    if (!this.#server.listening) {
      return;
    }
    const closed = new Promise<void>((done) => this.#server.close(() => done()));
    const end = performance.now() + (this.#options.drainMs ?? DEFAULT_DRAIN_MS);
    while (this.#requests.count + this.#watches.count > 0 && performance.now() < end) {
      await sleep(DRAIN_CHECK_MS);
    }
    this.#server.closeAllConnections();
    await closed;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const started = performance.now();
    const call: Call = { request, response, user: undefined, representation: undefined };
    const url = request.url ?? '/';
    const queryStart = url.indexOf('?');
    const path = queryStart === -1 ? url : url.slice(0, queryStart);
    const clientGone = new AbortController();
    response.once('close', () => {
      // `close` also follows a complete response.
      if (!response.writableFinished) {
        clientGone.abort(new Error('the client has gone'));
      }
    });
    setCommonHeaders(response);
    if (this.#stopping.signal.aborted) {
      response.setHeader('connection', 'close');
    }
    try {
      await this.#answer(
        call,
        path,
        new URLSearchParams(queryStart === -1 ? '' : url.slice(queryStart + 1)),
        clientGone.signal,
      );
    } catch (error) {
      await this.#refuse(call, path, error).catch(() => response.destroy());
    }
    this.#options.onRequest?.({
      method: request.method ?? '',
      path: path.slice(0, MAX_URL_BYTES),
      user: call.user?.username,
      status: response.statusCode,
      durationMs: performance.now() - started,
    });
  }

  async #refuse({ request, response, representation }: Call, path: string, error: unknown): Promise<void> {
    if (response.headersSent) {
      response.destroy();
      return;
    }
    if (response.destroyed) {
      return;
    }
    if (!(error instanceof ApiError)) {
      this.#options.onError?.(error, request.method ?? '', path);
    }
    const refusal = error instanceof ApiError ? error : ApiError.internal(internalMessage(error), error);
    if (!request.complete && refusal.code === 413) {
      response.setHeader('connection', 'close');
      request.resume();
    }
    const format = representation?.format ?? 'json';
    await send(request, response, errorAnswer(refusal), {
      format,
      as: undefined,
      version: 'v1',
      isPretty: representation?.isPretty ?? false,
    });
  }

  async #answer(call: Call, path: string, query: URLSearchParams, clientGone: AbortSignal): Promise<void> {
    const { request, response } = call;
    if ((request.url ?? '').length > MAX_URL_BYTES) {
      throw new ApiError(414, 'BadRequest', `expected a URL of at most ${MAX_URL_BYTES} bytes`);
    }
    const target = parseTarget(path);
    if (target === undefined) {
      throw ApiError.badRequest('the path of the URL is malformed');
    }
    call.user = this.#authenticated(request);
    if (target.kind === 'path') {
      await this.#requests.run(call.user, () => this.#answerPath(call, target, query), clientGone);
      return;
    }
    const isWatch = request.method === 'GET' && target.name === undefined && isWatchRequest(query);
    const definition = this.#definitionOf(target);
    if (definition === undefined) {
      this.#authorize(call, target, isWatch);
      await send(request, response, this.#unknownResource(target));
      return;
    }
    const representation = negotiate(request.headers, query, isWatch);
    call.representation = representation;
    const verb = verbOf(request.method ?? '', target, isWatch);
    checkServed(target, definition, verb);
    if (WITH_BODY.has(verb ?? '')) {
      // The cluster authorizes again. Authorizing first leaves the bodies of unauthorized requests unread.
      this.#authorize(call, target, isWatch);
    }
    const { deprecation } = definition;
    const warnings: string[] = deprecation === undefined ? [] : [deprecation];
    const resourceRequest: ResourceRequest = {
      request,
      target,
      query,
      definition,
      cluster: this.#options.cluster.as(call.user),
      state: this.#options.cluster.state,
      form: {
        representation,
        printer: printerOf(definition, target.subresource),
        includeObject: representation.as === 'Table' ? includeObjectOf(query) : 'Metadata',
      },
      signal: clientGone,
      onWarning: (text) => warnings.push(text),
      now: this.#now(),
    };
    if (isWatch) {
      setWarnings(response, warnings);
      await this.#watches.run(call.user, () => this.#watch(call, resourceRequest));
      return;
    }
    const run = async (): Promise<void> => {
      let answer: GatewayAnswer;
      try {
        answer = await answerResource(resourceRequest, verb ?? '');
      } finally {
        // A failed request may have warnings, too.
        setWarnings(response, warnings);
      }
      await send(request, response, answer, representation, this.#holder(call));
    };
    await this.#requests.run(call.user, run, clientGone);
  }

  /** @throws ApiError 401 for credentials that are not valid, 403 for an impersonation that is not allowed. */
  #authenticated(request: IncomingMessage): UserInfo {
    const socket = request.socket as TLSSocket;
    return this.#options.authenticator.authenticate({
      authorization: request.headers.authorization,
      certificate: socket.authorized ? socket.getPeerCertificate() : undefined,
      impersonation: impersonationOf(request.headersDistinct),
    });
  }

  async #answerPath(call: Call, target: PathTarget, query: URLSearchParams): Promise<void> {
    this.#authorize(call, target, false);
    const answer = this.#paths.answer(target.path, query, call.request);
    await send(call.request, call.response, answer, undefined, this.#holder(call));
  }

  /** Counts the body of an answer until the client has read it. */
  #holder({ user, response }: Call): (bytes: number) => void {
    return (bytes) => this.#unreadAnswers.hold(user, response, bytes);
  }

  /** @throws ApiError 403 */
  #authorize({ user, request }: Call, target: PathTarget | ResourceTarget, isWatch: boolean): void {
    if (user === undefined) {
      throw new ApiError(401, 'Unauthorized', 'Unauthorized');
    }
    const attributes = attributesOf(user, request.method ?? '', target, isWatch);
    const decision = this.#options.cluster.authorizer.authorize(attributes);
    if (!decision.allowed) {
      throw forbidden(attributes, decision.reason);
    }
  }

  #definitionOf({ group, version, resource, subresource }: ResourceTarget): ResourceDefinition | undefined {
    const needsNode = group === '' && resource === 'pods' && NODE_SUBRESOURCES.has(subresource?.split('/', 1)[0] ?? '');
    return needsNode
      ? undefined
      : this.#options.cluster
          .definitions()
          .find(
            (candidate) =>
              candidate.resource === resource && candidate.group === group && candidate.version === version,
          );
  }

  #unknownResource({ group, version, resource, subresource }: ResourceTarget): GatewayAnswer {
    const definitions = this.#options.cluster.definitions();
    if (group === '' && resource === 'pods' && subresource !== undefined) {
      const message = `this cluster runs no pods: there is no ${subresource.split('/', 1)[0]} of them`;
      return errorAnswer(new ApiError(404, 'NotFound', message, {}));
    }
    const isGroup = group === '' || definitions.some((known) => known.group === group && known.version === version);
    return isGroup ? errorAnswer(notServed()) : pageNotFound();
  }

  async #watch({ response, user }: Call, request: ResourceRequest): Promise<void> {
    const signal = AbortSignal.any([request.signal, this.#stopping.signal]);
    const { definition, form } = request;
    const { slowWatcherMs } = this.#options;
    const timing = slowWatcherMs === undefined ? {} : { slowWatcherMs };
    const shared = { lines: this.#lines, turns: this.#turns, unread: this.#unread, now: this.#now };
    const stream = { response, user: user?.username ?? '', definition, form, ...shared, signal, ...timing };
    const end = await sendWatch(stream, watchResource({ ...request, signal }));
    if (end === 'client-slow') {
      response.destroy();
    } else {
      response.end();
    }
  }
}

/** A request in progress. */
interface Call {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  user: UserInfo | undefined;
  representation: Representation | undefined;
}

/** The message of an internal error. Only a ClusterError has a message for clients. */
function internalMessage(error: unknown): string {
  return error instanceof ClusterError ? error.message : 'the request failed; the log of the server says why';
}
