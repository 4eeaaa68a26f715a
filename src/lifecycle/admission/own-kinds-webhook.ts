import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as SecureServer } from 'node:https';
import type { Logger } from 'pino';
import type { Cluster } from '../../cluster/index.ts';
import { MAX_REVIEW_BYTES } from '../../engine/definition/index.ts';
import { aborted, type Runnable, type RuntimeMetrics, type SharedCaches } from '../../runtime/index.ts';
import {
  BodyBudget,
  createAdmissionServer,
  hostText,
  listen,
  readBody,
  RequestRefused,
  sendError,
  sendJson,
  type TlsFiles,
} from '../../https/index.ts';
import { type CertificateBundle, fixedBundle } from '../certificates/certificate-bundle.ts';
import type { ServiceReachability } from '../policy-servers/reachable-services.ts';
import type { WebhookTarget } from '../webhooks/webhook-object.ts';
import type { PolicyTypeChecks } from '../type-checks/policy-type-checks.ts';
import { errorText } from '../../values/index.ts';
import { AuthorRights } from './author-rights.ts';
import { OWN_KINDS_PATH, ownKindsConfiguration } from './own-kinds-configuration.ts';
import { OwnKindsRegistration } from './own-kinds-registration.ts';
import { parseReview, reviewResponse } from './own-kinds-review.ts';
import { OwnKindsRules, type OwnKindsRulesOptions } from './own-kinds-rules.ts';
import { isOfPolicies, PolicyReviews } from './policy-reviews.ts';
import { TypeWarnings } from './type-warnings.ts';

/** Time for reviews under way when the process ends. Milliseconds. */
const DRAIN_MS = 2_000;

export interface OwnKindsWebhookOptions extends OwnKindsRulesOptions {
  readonly cluster: Cluster;
  readonly caches: SharedCaches;
  /** The namespace of the product, with the revisions. */
  readonly namespace: string;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly tls: TlsFiles;
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
  readonly #rights: AuthorRights;
  readonly #types: TypeWarnings | undefined;
  readonly #budget = new BodyBudget(MAX_REVIEW_BYTES);
  readonly #url = Promise.withResolvers<string>();
  /** Reviews that wait for a turn of the event loop. */
  readonly #waiting: (() => void)[] = [];

  constructor(options: OwnKindsWebhookOptions) {
    this.#options = options;
    this.#log = options.log.child({ component: this.name });
    this.#rules = new OwnKindsRules(options);
    this.#policies = new PolicyReviews(options, this.#log);
    this.#rights = new AuthorRights({ cluster: options.cluster, namespace: options.namespace, log: this.#log });
    this.#types = options.typeChecks && new TypeWarnings(options.typeChecks);
    this.ready = this.#url.promise.then(() => undefined);
    // `start` throws the same error.
    this.ready.catch(() => undefined);
    const { cluster, caches, service, reached, controllerUser, contributed, log, metrics } = options;
    const authorities = typeof options.ca === 'string' ? fixedBundle(options.ca) : options.ca;
    this.registration = new OwnKindsRegistration({
      cluster,
      caches,
      configuration: async () => {
        const url = await this.url;
        const ca = authorities.bundle();
        const target = service === undefined ? { url } : { service };
        return ca === undefined ? undefined : ownKindsConfiguration({ ...target, ca }, controllerUser, contributed);
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
    }
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const refuse = ({ status, message }: RequestRefused): void => {
      this.#log.debug({ status, reason: message }, 'request refused');
      request.resume();
      sendError(response, status, message);
    };
    const refusal = refusalOf(request);
    if (refusal !== undefined) {
      if (refusal.status === 405) {
        response.setHeader('allow', 'POST');
      }
      refuse(refusal);
      return;
    }
    readBody(request, this.#budget, (error, body) => {
      if (error !== undefined) {
        refuse(error);
        return;
      }
      if (!this.#budget.take(body.length, body.length)) {
        refuse(new RequestRefused(503, 'too many reviews are waiting; try again later'));
        return;
      }
      this.#inTurn(() => {
        if (response.destroyed) {
          // The client has disconnected.
          this.#budget.giveBack(body.length);
          return;
        }
        this.#answer(body)
          .then(
            (answer) => sendJson(response, 200, answer),
            (failure: unknown) => refuse(failure instanceof RequestRefused ? failure : this.#failed(failure)),
          )
          .finally(() => this.#budget.giveBack(body.length));
      });
    });
  }

  /**
   * Parses one review in each turn of the event loop: the renewal of the leader election must get time between two large ones.
   */
  #inTurn(review: () => void): void {
    const next = (): void => {
      this.#waiting[0]?.();
      this.#waiting.shift();
      if (this.#waiting.length > 0) {
        setImmediate(next);
      }
    };
    this.#waiting.push(review);
    if (this.#waiting.length === 1) {
      setImmediate(next);
    }
  }

  async #answer(body: Uint8Array): Promise<string> {
    const review = parseReview(body);
    const {
      error: problem,
      rights,
      restored = [],
      warnings,
    } = isOfPolicies(review) ? await this.#policies.validate(review) : this.#rules.validate(review);
    const error = problem ?? (await this.#rights.refusal(review, rights, restored));
    const { kind, namespace, name, uid } = review;
    if (error !== undefined) {
      this.#log.info({ kind, namespace, name, uid, status: error.code }, 'object refused');
    }
    if (error !== undefined || this.#types === undefined) {
      return reviewResponse(review, { ...(error === undefined ? {} : { error }), warnings });
    }
    return reviewResponse(review, { warnings: await this.#types.add(review, warnings) });
  }

  /** Handles unexpected errors, such as a stack overflow by a deeply nested object. */
  #failed(error: unknown): RequestRefused {
    const text = errorText(error);
    this.#log.error({ error: text }, 'review failed');
    return new RequestRefused(500, `the object could not be checked: ${text}`);
  }
}

function refusalOf({ url = '/', method, headers }: IncomingMessage): RequestRefused | undefined {
  const query = url.indexOf('?');
  if ((query === -1 ? url : url.slice(0, query)) !== OWN_KINDS_PATH) {
    return new RequestRefused(404, `no such path: expected ${OWN_KINDS_PATH}`);
  }
  if (method !== 'POST') {
    return new RequestRefused(405, `expected POST, got ${method ?? 'no method'}`);
  }
  const type = headers['content-type'] ?? 'none';
  return /^application\/json\s*(?:;|$)/i.test(type)
    ? undefined
    : new RequestRefused(415, `expected Content-Type: application/json, got ${type}`);
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
