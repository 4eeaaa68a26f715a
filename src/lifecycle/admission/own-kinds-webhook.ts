import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as SecureServer } from 'node:https';
import type { Logger } from 'pino';
import { ApiError, type Cluster } from '../../cluster/index.ts';
import { MAX_REVIEW_BYTES } from '../../engine/definition/index.ts';
import { aborted, type Runnable, type RuntimeMetrics, type SharedCaches } from '../../runtime/index.ts';
import {
  BodyBudget,
  createAdmissionServer,
  hostText,
  listen,
  readBody,
  RequestRefusal,
  sendError,
  sendJson,
  type TlsFiles,
} from '../../https/index.ts';
import { type CertificateBundle, fixedBundle } from '../certificates/certificate-bundle.ts';
import type { ServiceReachability } from '../policy-servers/reachable-services.ts';
import type { WebhookTarget } from '../webhooks/webhook-object.ts';
import type { PolicyTypeChecks } from '../type-checks/policy-type-checks.ts';
import { OwnerQueue } from '../../threads/index.ts';
import { errorText } from '../../values/index.ts';
import { AuthorRights } from './author-rights.ts';
import { CALLERS_PATH } from './caller-proofs.ts';
import { OWN_KINDS_PATH, ownKindsConfiguration } from './own-kinds-configuration.ts';
import { OwnKindsRegistration } from './own-kinds-registration.ts';
import { type OwnKindsReview, parseReview, reviewResponse } from './own-kinds-review.ts';
import { OwnKindsRules, type OwnKindsRulesOptions, type RulesVerdict } from './own-kinds-rules.ts';
import { isOfPolicies, PolicyReviews } from './policy-reviews.ts';
import { ReviewBudget, unitsOfBody } from './review-budget.ts';
import { type ReviewCaller, ReviewCallers } from './review-callers.ts';
import { TypeWarnings } from './type-warnings.ts';

/** Time for reviews under way when the process ends. Milliseconds. */
const DRAIN_MS = 2_000;
/** Memory of all reviews that are received or wait: nine of the largest, in a process of 512 MiB. Bytes. */
const MAX_OWN_KINDS_BYTES = 64 * 1024 * 1024;
/** The part of it for clients that are no API servers, as far as known. Bytes. */
const MAX_STRANGER_BYTES = 16 * 1024 * 1024;
/** Most bytes of a review that proves an address, which holds one small object, and of all of them together. */
const MAX_PROOF_BYTES = 64 * 1024;
const MAX_PROOFS_BYTES = 1024 * 1024;
/** `Retry-After` of 429, with which API servers try again until the webhook's timeout. Seconds. */
const RETRY_AFTER_SECONDS = 1;

export interface OwnKindsWebhookOptions extends OwnKindsRulesOptions {
  readonly cluster: Cluster;
  readonly caches: SharedCaches;
  /** The namespace of the product, with the revisions. */
  readonly namespace: string;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** With CAs for client certificates, only clients with one are answered. */
  readonly tls: TlsFiles;
  /** Addresses and networks of API servers; other clients are refused. Default: see {@link ReviewCallers}. */
  readonly apiServers?: readonly string[] | undefined;
  /** Base URL by which API servers reach the endpoint. Default: https, `host` and the port. */
  readonly url?: string | undefined;
  /** The Service by which API servers reach the endpoint, instead of `url`. */
  readonly service?: Extract<WebhookTarget, { readonly service: unknown }>['service'] | undefined;
  /** Whether API servers reach that Service. Default: always. */
  readonly reached?: ServiceReachability | undefined;
  /** CA certificates of the endpoint, as PEM or as a bundle that may change. */
  readonly ca: string | CertificateBundle;
  /** Compares policies with the kinds of the cluster. Default: they are not compared. */
  readonly typeChecks?: Pick<PolicyTypeChecks, 'check'> | undefined;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics | undefined;
}

/**
 * The validating webhook for our own kinds: an HTTPS endpoint that every controller runs. Only the leader runs its
 * {@link registration}, which writes the webhook configuration.
 */
export class OwnKindsWebhook implements Runnable {
  readonly name = 'own-kinds-webhook';
  /** Resolves when the endpoint listens. */
  readonly ready: Promise<void>;
  readonly registration: OwnKindsRegistration;
  readonly #options: OwnKindsWebhookOptions;
  readonly #log: Logger;
  readonly #rules: OwnKindsRules;
  readonly #policies: PolicyReviews;
  /** For clients that are no API servers, as far as known: a thread of their own, for which API servers never wait. */
  readonly #strangersPolicies: PolicyReviews;
  readonly #callers: ReviewCallers;
  readonly #budget = new ReviewBudget();
  readonly #rights: AuthorRights;
  readonly #types: TypeWarnings | undefined;
  readonly #bytes = new BodyBudget(MAX_REVIEW_BYTES, MAX_OWN_KINDS_BYTES);
  readonly #strangersBytes = new BodyBudget(MAX_REVIEW_BYTES, MAX_STRANGER_BYTES);
  readonly #proofBytes = new BodyBudget(MAX_PROOF_BYTES, MAX_PROOFS_BYTES);
  readonly #url = Promise.withResolvers<string>();
  /** Reviews that wait for a turn of the event loop, by caller. */
  readonly #waiting = new OwnerQueue<() => void>();
  #isTurnPlanned = false;

  constructor(options: OwnKindsWebhookOptions) {
    this.#options = options;
    this.#log = options.log.child({ component: this.name });
    this.#rules = new OwnKindsRules(options);
    this.#policies = new PolicyReviews(options, this.#log);
    this.#strangersPolicies = new PolicyReviews(options, this.#log);
    this.#callers = new ReviewCallers({
      cluster: options.cluster,
      namespace: options.namespace,
      hasClientCertificates: (options.tls.clientCaFiles ?? []).length > 0,
      apiServers: options.apiServers,
      log: this.#log,
    });
    const { cluster, namespace } = options;
    this.#rights = new AuthorRights({ cluster, namespace, budget: this.#budget, log: this.#log });
    this.#types = options.typeChecks && new TypeWarnings(options.typeChecks);
    this.ready = this.#url.promise.then(() => undefined);
    // `start` throws the same error.
    this.ready.catch(() => undefined);
    const { caches, service, reached, controllerUser, contributed, guarded, log, metrics } = options;
    const authorities = typeof options.ca === 'string' ? fixedBundle(options.ca) : options.ca;
    this.registration = new OwnKindsRegistration({
      cluster,
      caches,
      configuration: async () => {
        const url = await this.url;
        const ca = authorities.bundle();
        const target = service === undefined ? { url } : { service };
        return ca === undefined
          ? undefined
          : ownKindsConfiguration({ ...target, ca }, controllerUser, contributed, guarded);
      },
      isReachable: () => service === undefined || reached === undefined || reached.isReachable(service.name),
      subscribe: (listener) => {
        const ends = [authorities.subscribe(listener), reached?.subscribe(listener)];
        return () => ends.forEach((end) => end?.());
      },
      log,
      metrics,
    });
  }

  /** Base URL by which API servers reach the endpoint; resolves when it listens. */
  get url(): Promise<string> {
    return this.#url.promise;
  }

  /** @throws HttpsError 'tls-invalid', 'port-busy' */
  async start(signal: AbortSignal): Promise<void> {
    const { tls, host, port } = this.#options;
    const { server, tls: watched } = await createAdmissionServer({
      handler: (request, response) => this.#handle(request, response),
      tls,
      timeouts: undefined,
      log: this.#log,
    }).catch((error: unknown) => {
      this.#url.reject(error);
      throw error;
    });
    try {
      const bound = await listen(server, port, host);
      // As when file descriptors run out. The server keeps listening.
      server.on('error', (error) => this.#log.error({ error: error.message }, 'connection not accepted'));
      this.#url.resolve(this.#options.url ?? `https://${hostText(host)}:${bound}`);
      await aborted(signal);
    } catch (error) {
      this.#url.reject(error);
      throw error;
    } finally {
      watched?.stop();
      await close(server);
      this.#policies.stop();
      this.#strangersPolicies.stop();
    }
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const refuse = ({ status, message }: RequestRefusal): void => {
      this.#log.debug({ status, reason: message }, 'request refused');
      request.resume();
      if (status === 405) {
        response.setHeader('allow', 'POST');
      } else if (status === 429) {
        response.setHeader('retry-after', RETRY_AFTER_SECONDS);
      }
      sendError(response, status, message);
    };
    const refusal = refusalOf(request);
    if (refusal !== undefined) {
      refuse(refusal);
      return;
    }
    const answer = pathOf(request) === CALLERS_PATH ? this.#proof(request, response) : this.#review(request, response);
    answer.then(
      (answer) => (answer === undefined ? undefined : sendJson(response, 200, answer)),
      (failure: unknown) => refuse(failure instanceof RequestRefusal ? failure : this.#failed(failure)),
    );
  }

  /** Takes a review that proves the address of an API server. */
  async #proof(request: IncomingMessage, response: ServerResponse): Promise<string> {
    // The next call may reach another controller: each learns of its own ones only.
    response.setHeader('connection', 'close');
    const address = request.socket.remoteAddress ?? '';
    this.#budget.takeOfAddress({ address, isApiServer: false }, 1);
    const review = parseReview(await bodyOf(request, this.#proofBytes));
    this.#callers.receiveProof(address, review);
    return reviewResponse(review, { warnings: [] });
  }

  /** @returns undefined if the client has disconnected */
  async #review(request: IncomingMessage, response: ServerResponse): Promise<string | undefined> {
    const caller = await this.#callers.find(request.socket.remoteAddress ?? '');
    if (caller === undefined) {
      throw new RequestRefusal(403, 'this address is not one of --webhook-api-servers');
    }
    this.#budget.takeOfAddress(caller, 1);
    const bytes = caller.isApiServer ? this.#bytes : this.#strangersBytes;
    const body = await bodyOf(request, bytes);
    if (!bytes.take(body.length, body.length)) {
      throw new RequestRefusal(503, 'too many reviews are waiting; try again later');
    }
    try {
      this.#budget.takeOfAddress(caller, unitsOfBody(body.length));
      const end = this.#budget.begin(caller);
      try {
        await this.#turn(caller);
        return response.destroyed ? undefined : await this.#answer(body, caller);
      } finally {
        end();
      }
    } finally {
      bytes.giveBack(body.length);
    }
  }

  /**
   * Parses one review in each turn of the event loop: the renewal of the leader election must get time between two large ones. The
   * reviews of an address wait for one of each other address at most.
   */
  #turn({ address }: ReviewCaller): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(address, resolve);
    this.#planTurn();
    return promise;
  }

  #planTurn(): void {
    if (this.#isTurnPlanned || this.#waiting.length === 0) {
      return;
    }
    this.#isTurnPlanned = true;
    setImmediate(() => {
      this.#isTurnPlanned = false;
      this.#waiting.shift()?.();
      this.#planTurn();
    });
  }

  async #answer(body: Uint8Array, caller: ReviewCaller): Promise<string> {
    const review = parseReview(body);
    const { kind, namespace, name, uid, username } = review;
    const units = 1 + unitsOfBody(body.length);
    if (!this.#budget.takeOfUser(caller, username, units)) {
      return reviewResponse(review, { error: tooManyWrites(review), warnings: [] });
    }
    const { error: problem, rights, restored = [], warnings } = await this.#validate(review, caller);
    const error = problem ?? (await this.#rights.refusal(review, rights, restored, caller));
    if (error !== undefined) {
      this.#log.info({ kind, namespace, name, uid, status: error.code }, 'object refused');
    }
    if (error !== undefined || this.#types === undefined || !caller.isApiServer) {
      return reviewResponse(review, { ...(error === undefined ? {} : { error }), warnings });
    }
    return reviewResponse(review, { warnings: await this.#types.add(review, warnings) });
  }

  /** Clients that are no API servers, as far as known, are told what is wrong with the object alone, and nothing of the cluster. */
  async #validate(review: OwnKindsReview, { address, isApiServer }: ReviewCaller): Promise<RulesVerdict> {
    if (!isOfPolicies(review)) {
      const verdict = this.#rules.validate(review);
      return isApiServer ? verdict : { ...verdict, warnings: [] };
    }
    if (isApiServer) {
      return await this.#policies.validate(review, review.namespace);
    }
    const alone = await this.#strangersPolicies.validate(review, address, 'object alone');
    const verdict = alone.error === undefined ? await this.#strangersPolicies.validate(review, address) : alone;
    return {
      ...verdict,
      ...(verdict.error === alone.error ? {} : { error: serverRefusal(review) }),
      warnings: alone.warnings,
    };
  }

  /** Handles unexpected errors, such as a stack overflow by a deeply nested object. */
  #failed(error: unknown): RequestRefusal {
    this.#log.error({ error: errorText(error) }, 'review failed');
    return new RequestRefusal(500, 'the object could not be checked: the log of the controller says why');
  }
}

function pathOf({ url = '/' }: IncomingMessage): string {
  const query = url.indexOf('?');
  return query === -1 ? url : url.slice(0, query);
}

function refusalOf(request: IncomingMessage): RequestRefusal | undefined {
  const { method, headers } = request;
  if (![OWN_KINDS_PATH, CALLERS_PATH].includes(pathOf(request))) {
    return new RequestRefusal(404, `no such path: expected ${OWN_KINDS_PATH}`);
  }
  if (method !== 'POST') {
    return new RequestRefusal(405, `expected POST, got ${method ?? 'no method'}`);
  }
  const type = headers['content-type'] ?? 'none';
  return /^application\/json\s*(?:;|$)/i.test(type)
    ? undefined
    : new RequestRefusal(415, `expected Content-Type: application/json, got ${type}`);
}

function bodyOf(request: IncomingMessage, budget: BodyBudget): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    if (request.destroyed) {
      reject(new RequestRefusal(400, 'the request ended before its body was complete'));
      return;
    }
    readBody(request, budget, (error, body) => (error === undefined ? resolve(body) : reject(error)));
  });
}

function tooManyWrites({ group, kind, name, username }: OwnKindsReview): ApiError {
  const text = `${kind}.${group} "${name}" was not accepted, because user "${username}" writes more than can be checked. Try again later`;
  return new ApiError(429, 'TooManyRequests', text, {
    name,
    group,
    kind,
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}

/** Says the same whatever the PolicyServer does not allow. */
function serverRefusal({ group, kind, name }: OwnKindsReview): ApiError {
  const text = `${kind}.${group} "${name}" is forbidden: its PolicyServer does not allow it. What it does not allow is told to known API servers only: see --webhook-api-servers of the controller`;
  return new ApiError(403, 'Forbidden', text, { name, group, kind });
}

/** Closes a server after its pending responses, or after {@link DRAIN_MS}. */
async function close(server: Server | SecureServer): Promise<void> {
  if (!server.listening) {
    return;
  }
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  server.closeIdleConnections();
  const cut = setTimeout(() => server.closeAllConnections(), DRAIN_MS);
  await promise;
  clearTimeout(cut);
}
