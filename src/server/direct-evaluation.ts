// Reviews that the main thread evaluates itself, instead of handing them to a worker: while it has nothing else to do, waking a
// thread and being woken by it takes longer than to evaluate a few expressions.
//
// Nothing of this may hold up others. So only our own code runs here, never a module; by policies of administrators, never those
// that a tenant writes; of reviews that are small, and of buckets that usually take no time. What takes longer than expected is
// thrown away and done by a worker, which can be ended; little of this thread's time may be lost by that.
import type { HostPort } from '../engine/index.ts';
import {
  type LogMessage,
  monotonicNow,
  type NamespacesChange,
  type TableChange,
  type TableEntry,
  type WorkerStart,
} from './evaluation-protocol.ts';
import { ObservationReceiver } from './observations.ts';
import { PolicyEvaluation, type ReviewOutcome } from './policy-evaluation.ts';
import { bucketsOf } from './published-table.ts';
import type { ReviewJob } from './review-job.ts';

/** Largest review: most objects have a tenth of this. Bytes. */
export const MAX_DIRECT_BYTES = 32 * 1024;
/** Longest settings and match of a policy, as JSON: they are compiled here when they are first needed. Characters. */
export const MAX_DIRECT_SETTINGS = 4 * 1024;
/** Reviews of a bucket that usually take longer are left to workers. Milliseconds. */
const MAX_USUAL_MS = 0.5;
/** What takes longer is given up, and done by a worker. Milliseconds. */
const MAX_DIRECT_MS = 2;
/** Of this thread's time, what may be lost with reviews that are given up. */
const LOST_SHARE = 0.02;
/** What may be lost at once; beyond it, workers have everything until the share makes up for it. Milliseconds. */
const MAX_LOST_MS = 100;
/** More than clocks are apart that are read one after the other. Milliseconds. */
const LATER_MS = 0.1;

export interface DirectEvaluationOptions extends Pick<WorkerStart, 'defaultTimeoutSeconds' | 'alwaysAcceptNamespace'> {
  readonly log: (entry: LogMessage) => void;
}

/** Evaluates reviews of buckets whose policies may all be asked here; which these are follows from the table of the workers. */
export class DirectEvaluation {
  /** Numbers observations of its answers. */
  readonly observations = new ObservationReceiver();
  readonly #log: (entry: LogMessage) => void;
  readonly #evaluation: PolicyEvaluation;
  /** Digests of builtin modules. */
  readonly #builtins = new Set<string>();
  /** Buckets of policies that only workers have, by the id of the policy. */
  readonly #elsewhere = new Map<string, readonly string[]>();
  /** How many of those are in a bucket. */
  readonly #excluded = new Map<string, number>();
  /** Buckets of which a policy asked the host, since the table changed. */
  readonly #asking = new Set<string>();
  /** What may be lost with reviews that are given up, as it was {@link #allowedAt}. Milliseconds. */
  #allowance = MAX_LOST_MS;
  #allowedAt = performance.now();
  /** What was logged during the review that is being evaluated. */
  #logged: LogMessage[] = [];
  #isHostAsked = false;
  /** Whether one was evaluated in this turn of the event loop: whatever else arrived in it is to be read first. */
  #isTurnUsed = false;

  constructor({ log, ...options }: DirectEvaluationOptions) {
    this.#log = log;
    this.#evaluation = new PolicyEvaluation({
      ...options,
      hasBuckets: true,
      port: this.#nobody(),
      log: (entry) => this.#logged.push(entry),
      activity: { enter: () => undefined, leave: () => undefined },
    });
  }

  /** Takes a change of the table over. */
  apply(change: TableChange): void {
    const modules = change.modules.filter(({ mode }) => mode === 'builtin');
    for (const { digest } of modules) {
      this.#builtins.add(digest);
    }
    for (const id of [...change.removals, ...change.upserts.map((entry) => entry.id)]) {
      this.#include(id);
    }
    const isHere = change.upserts.map((entry) => this.#isDirect(entry));
    const others = change.upserts.filter((_, index) => isHere[index] === false);
    const taken = {
      modules,
      upserts: change.upserts.filter((_, index) => isHere[index]),
      removals: [...change.removals, ...others.map(({ id }) => id)],
      retired: change.retired,
    };
    // Numbers are for whoever watches from another thread.
    this.#evaluation.apply(taken, []);
    for (const entry of others) {
      this.#exclude(entry);
    }
    for (const digest of change.retired) {
      this.#builtins.delete(digest);
    }
    this.#asking.clear();
  }

  /** Takes labels of namespaces over. */
  follow(change: NamespacesChange): void {
    this.#evaluation.follow(change);
  }

  /** Whether a review may be evaluated here and now. `usualMs`: how long those of its bucket usually take, if that is known. */
  mayTake({ route, target, body, timedOut, namespaceProblem }: ReviewJob, usualMs: number | undefined): boolean {
    return (
      route === 'admit' &&
      !this.#isTurnUsed &&
      usualMs !== undefined &&
      usualMs <= MAX_USUAL_MS &&
      body.length <= MAX_DIRECT_BYTES &&
      timedOut === null &&
      namespaceProblem === null &&
      !this.#excluded.has(target) &&
      !this.#asking.has(target) &&
      this.#allowanceNow() > 0
    );
  }

  /** Undefined: it is for a worker to do; nothing of it was logged. */
  review({
    seq,
    target,
    body,
  }: ReviewJob): Exclude<ReviewOutcome, { readonly type: 'answer' | 'deferred' }> | undefined {
    this.#isTurnUsed = true;
    setImmediate(() => (this.#isTurnUsed = false));
    this.#logged = [];
    this.#isHostAsked = false;
    const began = performance.now();
    const until = began + MAX_DIRECT_MS;
    // Not before it is too late here: else a policy could be told to have had no time.
    const expiresAt = monotonicNow() + MAX_DIRECT_MS + LATER_MS;
    const how = { expiresAt, slow: null, namespaceProblem: null };
    const outcome = this.#evaluation.review(
      [0, seq, 'admit', target, body, null, how],
      () => performance.now() > until,
    );
    if (this.#isHostAsked) {
      this.#asking.add(target);
    }
    if (outcome.type === 'answer' || outcome.type === 'deferred') {
      return undefined;
    }
    if (this.#isHostAsked || performance.now() > until) {
      // Later answers name them by their numbers.
      const observed = outcome.type === 'bucket' ? outcome.answer.observations : [];
      observed.forEach((sent) => this.observations.receive(sent));
      this.#lose(performance.now() - began);
      return undefined;
    }
    for (const entry of this.#logged) {
      this.#log(entry);
    }
    return outcome;
  }

  #allowanceNow(): number {
    return Math.min(MAX_LOST_MS, this.#allowance + (performance.now() - this.#allowedAt) * LOST_SHARE);
  }

  #lose(ms: number): void {
    this.#allowance = this.#allowanceNow() - ms;
    this.#allowedAt = performance.now();
  }

  /**
   * Whether nothing but our own code answers for an entry, by what an administrator wrote, and is ready soon. Nothing that
   * changes objects: patches are made and applied as a whole, whatever they come to.
   */
  #isDirect(entry: TableEntry): boolean {
    const { match } = entry;
    if (match?.namespace !== undefined || match?.isMutating === true) {
      return false;
    }
    if ('failed' in entry) {
      return true;
    }
    const { definition, digests } = entry;
    const uses = definition.kind === 'group' ? definition.members : [definition];
    const texts = [...uses.map(({ settings }) => settings), match ?? {}].map((part) => JSON.stringify(part));
    return (
      texts.join('').length <= MAX_DIRECT_SETTINGS &&
      Object.values(digests).every((digest) => this.#builtins.has(digest)) &&
      uses.every(({ contextAwareResources }) => contextAwareResources.length === 0)
    );
  }

  #exclude(entry: TableEntry): void {
    const buckets = bucketsOf(entry);
    this.#elsewhere.set(entry.id, buckets);
    for (const bucket of buckets) {
      this.#excluded.set(bucket, (this.#excluded.get(bucket) ?? 0) + 1);
    }
  }

  #include(id: string): void {
    for (const bucket of this.#elsewhere.get(id) ?? []) {
      const others = (this.#excluded.get(bucket) ?? 0) - 1;
      if (others > 0) {
        this.#excluded.set(bucket, others);
      } else {
        this.#excluded.delete(bucket);
      }
    }
    this.#elsewhere.delete(id);
  }

  /** Answers no capability: this thread cannot wait. */
  #nobody(): Required<HostPort> {
    const refuse = (): never => {
      this.#isHostAsked = true;
      throw new Error('only workers ask the host');
    };
    return { request: refuse, inventory: refuse, revisionOf: refuse };
  }
}
