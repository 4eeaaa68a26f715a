// Continuous reviews, through the API server and directly to each replica, while a policy changes.
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { labelOf, type RolloutLab } from './rollout-lab.ts';
import { configMapReview } from './config-map-review.ts';

/** The result of a review. Times are those of `performance.now()`. */
export interface Verdict {
  /** `api-server`, or the name of a replica. */
  readonly via: string;
  readonly sentAt: number;
  readonly receivedAt: number;
  /** The label in the rejection; `admitted`; or the error. */
  readonly what: string;
}

export interface StreamOptions {
  /** Parallel streams to the API server and to each replica. Default: 1. */
  readonly width?: number;
  /** Interval of reviews in a stream. Milliseconds. Default: 5. */
  readonly pauseMs?: number;
  /** Further reviews per second directly to replicas in turn, without waiting for responses. Default: none. */
  readonly perSecond?: number;
  /** Only through the API server. Default: also directly to replicas. */
  readonly isApiServerOnly?: boolean;
  /** Called with each verdict. */
  readonly onVerdict?: (verdict: Verdict) => void;
}

/** The requests that the policies of the scenarios match: they are cluster-wide and do not mutate. */
const PATH = '/admit/validating.fail.equivalent.cluster.v1?timeout=10s';
/** Interval for scenarios of many seconds, most of which processes need to start. Milliseconds. */
export const RELAXED_PAUSE_MS = 50;
/** Connections to one replica: as many as a few API servers have. */
const MAX_SOCKETS = 64;
/** Interval of checks whether more reviews are due. Milliseconds. */
const PACE_MS = 2;

/** Sends reviews of an object that every version of the policy rejects. */
export class ReviewStream implements AsyncDisposable {
  readonly verdicts: Verdict[] = [];
  readonly #lab: RolloutLab;
  readonly #policy: string;
  readonly #options: StreamOptions;
  readonly #agent: Agent;
  readonly #body: (name: string) => string;
  readonly #running: Promise<unknown>;
  #isOver = false;

  constructor(lab: RolloutLab, policy: string, options: StreamOptions = {}) {
    this.#lab = lab;
    this.#policy = policy;
    this.#options = options;
    this.#agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS, ca: readFileSync(lab.certificates.caFile) });
    this.#body = reviewBody(policy);
    const width = options.width ?? 1;
    const viaApiServer = Array.from({ length: width }, () => this.#send('api-server', () => this.#viaApiServer()));
    const direct =
      options.isApiServerOnly === true
        ? []
        : lab.replicas.flatMap((replica) =>
            Array.from({ length: width }, () => this.#send(replica.name, () => this.#directly(replica.admission))),
          );
    const paced = options.perSecond === undefined ? [] : [this.#pace(options.perSecond)];
    this.#running = Promise.all([...viaApiServer, ...direct, ...paced]);
    lab.signal.addEventListener('abort', () => this.#abandon(), { once: true });
  }

  /** Verdicts with none of these labels. */
  other(...labels: readonly string[]): readonly Verdict[] {
    return this.verdicts.filter(({ what }) => !labels.includes(what));
  }

  async end(): Promise<readonly Verdict[]> {
    this.#isOver = true;
    await this.#running;
    this.#abandon();
    return this.verdicts;
  }

  /** Ends it without the reviews that are under way. */
  #abandon(): void {
    this.#isOver = true;
    this.#agent.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  async #send(via: string, send: () => Promise<string>): Promise<void> {
    while (!this.#isOver) {
      await this.#sendOnce(via, send);
      await sleep(this.#options.pauseMs ?? 5);
    }
  }

  async #sendOnce(via: string, send: () => Promise<string>): Promise<void> {
    const sentAt = performance.now();
    const what = await send();
    const verdict = { via, sentAt, receivedAt: performance.now(), what };
    this.verdicts.push(verdict);
    this.#options.onVerdict?.(verdict);
  }

  async #pace(perSecond: number): Promise<void> {
    const { replicas } = this.#lab;
    const began = performance.now();
    const underWay = new Set<Promise<void>>();
    let sent = 0;
    while (!this.#isOver) {
      const due = Math.floor(((performance.now() - began) * perSecond) / 1000);
      for (; sent < due; sent += 1) {
        const replica = replicas[sent % replicas.length];
        if (replica !== undefined) {
          const review = this.#sendOnce(replica.name, () => this.#directly(replica.admission));
          underWay.add(review);
          void review.finally(() => underWay.delete(review));
        }
      }
      await sleep(PACE_MS);
    }
    await Promise.all(underWay);
  }

  async #viaApiServer(): Promise<string> {
    const refusal = await this.#lab.refusal(this.#policy);
    return refusal === undefined ? 'admitted' : (labelOf(refusal) ?? refusal);
  }

  #directly(admission: string): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>();
    const url = new URL(PATH, admission);
    const headers = { 'content-type': 'application/json' };
    const post = request(url, { agent: this.#agent, method: 'POST', headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('error', (error) => resolve(`failed: ${error.message}`));
      response.on('end', () => {
        if (response.statusCode !== 200) {
          resolve(`failed: ${response.statusCode} ${text}`);
          return;
        }
        const answer = JSON.parse(text) as { response: { allowed: boolean; status?: { message?: string } } };
        const message = answer.response.status?.message;
        resolve(answer.response.allowed ? 'admitted' : (labelOf(message) ?? `rejected: ${message}`));
      });
    });
    post.on('error', (error) => resolve(`failed: ${error.message}`));
    post.end(this.#body('probe'));
    return promise;
  }
}

function reviewBody(namespace: string): (name: string) => string {
  let count = 0;
  return (name) => {
    count += 1;
    return configMapReview({ count, namespace, name, username: 'lab' });
  };
}
