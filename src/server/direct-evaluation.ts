// Reviews that the main thread evaluates itself, instead of handing them to a worker: while it has nothing else to do, waking a
// thread and being woken by it takes longer than to evaluate a few expressions.
//
// Nothing of this may hold up others. So modules run here only by little fuel, where that bounds what they do, and for
// administrators, as expressions; for tenants only the Pod Security Standards, and expressions of which every step counts; on
// reviews that are small, and of buckets that usually take no time. Which policies of a bucket a review is for is looked at here all the same: often it is for none that a
// worker has to evaluate. What takes longer than expected, or fails, is thrown away and done by a worker, which can be ended; little
// of this thread's time may be lost by that.
import { FUEL_PER_SECOND, type HostPort, type Observation } from '../engine/index.ts';
import type { PolicyMatch } from '../resources/index.ts';
import { CallEnded } from '../wasm/index.ts';
import { DirectBuckets } from './direct-buckets.ts';
import { DirectModules, lengthOf, MAX_DIRECT_SETTINGS } from './direct-modules.ts';
import {
  type LogMessage,
  MONOTONIC_OFFSET,
  type NamespacesChange,
  type TableChange,
  type TableEntry,
  type WorkerStart,
} from './evaluation-protocol.ts';
import { ObservationReceiver } from './observations.ts';
import { PolicyEvaluation, type ReviewOutcome } from './policy-evaluation.ts';
import { bucketsOf, sharedBucketsOf } from './published-table.ts';
import type { ReviewJob } from './review-job.ts';

/** Largest review: most objects have a tenth of this. Bytes. */
export const MAX_DIRECT_BYTES = 32 * 1024;
/**
 * Largest answer of a module: reading it, and making a patch of it, cannot be interrupted. It may hold the object of the largest
 * review twice over. Bytes.
 */
export const MAX_DIRECT_ANSWER_BYTES = 64 * 1024;
/** Reviews of a bucket that usually take longer are left to workers. Milliseconds. */
const MAX_USUAL_MS = 0.5;
/** What takes longer is given up, and done by a worker. Milliseconds. */
const MAX_DIRECT_MS = 2;
/** What starting an instance of a module may use up: most use a hundredth of it. */
const MAX_START_FUEL = (MAX_DIRECT_MS / 1_000) * FUEL_PER_SECOND['kubewarden-wapc'];
/** Of this thread's time, what may be lost with reviews that are given up, or turn out to be for workers. */
const LOST_SHARE = 0.02;
/** What may be lost at once; beyond it, workers have everything until the share makes up for it. Milliseconds. */
const MAX_LOST_MS = 100;
/** Units of work that an expression may do, or begin, about as many as fit into that time: see the evaluator's Frame. */
const MAX_DIRECT_WORK = 200_000;
/** So much later a policy has no time left: who gives it up is this thread. Milliseconds. */
const LATER_MS = 0.1;

/** Matches whatever its bucket is asked about. */
const EVERYTHING: Pick<PolicyMatch, 'rules' | 'namespaceSelector' | 'objectSelector'> = {
  rules: [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'], scope: '*' }],
  namespaceSelector: {},
  objectSelector: {},
};

export interface DirectEvaluationOptions extends Pick<WorkerStart, 'defaultTimeoutSeconds' | 'alwaysAcceptNamespace'> {
  readonly log: (entry: LogMessage) => void;
}

/** Evaluates reviews by policies that may be asked here; which these are follows from the table of the workers. */
export class DirectEvaluation {
  /** Numbers observations of its answers. */
  readonly observations = new ObservationReceiver();
  readonly #log: (entry: LogMessage) => void;
  readonly #evaluation: PolicyEvaluation;
  readonly #modules: DirectModules;
  readonly #buckets = new DirectBuckets();
  /** Ids of policies of which this thread knows only what they are for. */
  readonly #elsewhere = new Set<string>();
  /** Buckets of which a policy asked the host, since the table changed. */
  readonly #asking = new Set<string>();
  /** What may be lost, as it was {@link #allowedAt}. Milliseconds. */
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
      answerBytes: MAX_DIRECT_ANSWER_BYTES,
      initFuel: MAX_START_FUEL,
      elsewhere: this.#elsewhere,
      port: this.#nobody(),
      log: (entry) => this.#logged.push(entry),
      activity: { enter: () => undefined, leave: () => undefined },
    });
    this.#modules = new DirectModules(this.#evaluation);
  }

  /** Takes a change of the table over. */
  apply(change: TableChange): void {
    this.#modules.add(change.modules);
    for (const id of change.removals) {
      this.#buckets.delete(id);
      this.#elsewhere.delete(id);
    }
    const upserts = change.upserts.flatMap((entry) => this.#entryHere(entry) ?? []);
    // Of some of the upserts nothing comes in here: what was there before goes.
    const removals = [...change.removals, ...change.upserts.map(({ id }) => id)];
    const taken = { modules: [], upserts, removals, retired: change.retired };
    // Numbers are for whoever watches from another thread.
    this.#evaluation.apply(taken, []);
    this.#modules.delete(change.retired);
    this.#asking.clear();
  }

  /** Takes labels of namespaces over. */
  follow(change: NamespacesChange): void {
    this.#evaluation.follow(change);
  }

  /** Whether a review may be evaluated here and now. */
  mayTake({ route, target, body, timedOut, namespaceProblem }: ReviewJob): boolean {
    if (route !== 'admit') {
      return false;
    }
    const bucket = this.#buckets.get(target);
    const usualMs = bucket?.usualMs;
    return (
      bucket?.isOpen === true &&
      usualMs !== undefined &&
      usualMs <= MAX_USUAL_MS &&
      !this.#isTurnUsed &&
      body.length <= MAX_DIRECT_BYTES &&
      timedOut === null &&
      namespaceProblem === null &&
      !this.#asking.has(target) &&
      this.#allowanceNow() > 0
    );
  }

  /** A review of a bucket was answered, here or by a worker. Those that could not be evaluated here do not count. */
  took({ target, body }: ReviewJob, observations: readonly (Observation | null)[], evaluationMs: number): void {
    const isElsewhere = observations.some((one) => one !== null && this.#elsewhere.has(one.policy));
    if (!isElsewhere && body.length <= MAX_DIRECT_BYTES) {
      // However long one took that was given up here: others of its bucket are not to be kept away for that.
      this.#buckets.get(target)?.took(Math.min(evaluationMs, MAX_DIRECT_MS));
    }
  }

  /**
   * Undefined: it is for a worker to do; nothing of it was logged. {@link endTurn} is to be called afterwards. `slow`: policies that
   * are for workers just now.
   */
  review(
    { seq, target, body }: ReviewJob,
    slow: readonly string[] | null = null,
  ): Exclude<ReviewOutcome, { readonly type: 'answer' | 'deferred' }> | undefined {
    const bucket = this.#buckets.get(target);
    if (bucket?.isUnseen() === true) {
      return undefined;
    }
    this.#isTurnUsed = true;
    this.#logged = [];
    this.#isHostAsked = false;
    const began = performance.now();
    const until = began + MAX_DIRECT_MS;
    const how = { expiresAt: until + MONOTONIC_OFFSET + LATER_MS, slow, namespaceProblem: null };
    let isGivenUp = false;
    const outcome = this.#evaluation.review([0, seq, 'admit', target, body, null, how], (work) => {
      isGivenUp ||= work > MAX_DIRECT_WORK || performance.now() > until;
      return isGivenUp;
    });
    if (this.#isHostAsked) {
      this.#asking.add(target);
    }
    const isDeferred = outcome.type === 'answer' || outcome.type === 'deferred';
    if (isDeferred || isGivenUp || this.#isHostAsked || performance.now() > until) {
      // Later answers name them by their numbers.
      const observed = outcome.type === 'bucket' ? outcome.answer.observations : [];
      observed.forEach((sent) => this.observations.receive(sent));
      bucket?.missed();
      this.#lose(performance.now() - began);
      return undefined;
    }
    bucket?.found();
    for (const entry of this.#logged) {
      this.#log(entry);
    }
    return outcome;
  }

  /** Nothing is evaluated here any more before all that has arrived was read. */
  endTurn(): void {
    setImmediate(() => (this.#isTurnUsed = false));
  }

  #allowanceNow(): number {
    return Math.min(MAX_LOST_MS, this.#allowance + (performance.now() - this.#allowedAt) * LOST_SHARE);
  }

  #lose(ms: number): void {
    this.#allowance = this.#allowanceNow() - ms;
    this.#allowedAt = performance.now();
  }

  /** What this thread has of an entry: all of it, or what it is for, for a policy that only workers evaluate; or nothing. */
  #entryHere(entry: TableEntry): TableEntry | undefined {
    const { id, match, alsoIn } = entry;
    const shared = sharedBucketsOf(entry);
    const length = lengthOf(match);
    this.#elsewhere.delete(id);
    const isLong = length > MAX_DIRECT_SETTINGS;
    if (match === undefined || (isLong && match.namespace === undefined)) {
      this.#buckets.set(id, { open: [], closed: shared });
      return undefined;
    }
    const here = isLong ? undefined : this.#modules.entryOf(entry, length);
    if (here !== undefined) {
      this.#buckets.set(id, { open: bucketsOf(entry), closed: [] });
      return here;
    }
    // Where API servers ask for it alone, nearly all that they ask is for it.
    this.#buckets.set(id, { open: shared, closed: [] });
    if (shared.length === 0) {
      return undefined;
    }
    this.#elsewhere.add(id);
    return {
      id,
      failed: { message: 'only workers evaluate it', failurePolicy: 'Fail' },
      // Its conditions are for them, too. A tenant's long list of rules closes the bucket to that tenant only.
      match: { ...match, ...(isLong ? EVERYTHING : {}), matchConditions: [] },
      ...(alsoIn === undefined ? {} : { alsoIn }),
    };
  }

  /** Answers no capability: this thread cannot wait. */
  #nobody(): Required<HostPort> {
    const refuse = (): never => {
      this.#isHostAsked = true;
      throw new CallEnded('only workers ask the host');
    };
    return { request: refuse, inventory: refuse, revisionOf: refuse };
  }
}
