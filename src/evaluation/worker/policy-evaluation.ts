// The policies of one thread, and what evaluates reviews by them, one at a time.
import {
  createFailedPolicy,
  createGuest,
  createPolicy,
  evaluate,
  type HostPort,
  type LoadedPolicy,
  loadBuckets,
  MATCH_CONDITIONS,
  type PolicyGuest,
  type PolicyOptions,
  unknownPolicy,
} from '../../engine/index.ts';
import type { CompiledPolicyModule } from '../loading/compiled-module.ts';
import {
  type AnswerMessage,
  type BucketReview,
  type FromWorker,
  monotonicNow,
  type NamespacesChange,
  type ReviewMessage,
  type TableChange,
  type TableEntry,
  type WorkerActivity,
  type WorkerStart,
} from '../evaluation-protocol.ts';
import type { LogEntry } from '../../log/index.ts';
import { NamespaceQuestions } from './namespace-questions.ts';
import { ObservationSender } from './observations.ts';

/**
 * Kept of the time of a bucket's review for evaluating it once more without the policy that had to be cut off: two pauses of
 * the watchdog, and as long as all its policies usually take by far. Milliseconds.
 */
const SECOND_TRY_MS = 250;

/** An entry that was found good by the loader, and could not be taken up. */
export interface ApplyFailure {
  readonly id: string;
  readonly message: string;
}

/** What came of a review. */
export type ReviewOutcome = Extract<
  FromWorker,
  { readonly type: 'answer' | 'bucket' | 'deferred' | 'namespace-unknown' }
>;

export interface PolicyEvaluationOptions extends Pick<
  WorkerStart,
  'defaultTimeoutSeconds' | 'alwaysAcceptNamespace' | 'hasBuckets'
> {
  /** Answers host capabilities. */
  readonly port: Required<HostPort>;
  readonly log: (entry: LogEntry) => void;
  /** Told what runs. */
  readonly activity: Pick<WorkerActivity, 'enter' | 'leave'>;
}

export class PolicyEvaluation {
  readonly #options: PolicyOptions;
  readonly #activity: PolicyEvaluationOptions['activity'];
  readonly #modules = new Map<string, CompiledPolicyModule>();
  /** One guest per module, shared by all policies that use it. */
  readonly #guests = new Map<string, PolicyGuest>();
  readonly #observations = new ObservationSender();
  readonly #questions: NamespaceQuestions;
  readonly #policies = new Map<string, LoadedPolicy>();
  readonly #buckets: ReturnType<typeof loadBuckets> | undefined;
  /** The same policies by bucket. */
  readonly #table: InstanceType<ReturnType<typeof loadBuckets>['PolicyTable']> | undefined;
  /** What policies are called in the activity, by id. */
  readonly #numbers = new Map<string, number>();

  constructor(options: PolicyEvaluationOptions) {
    const { port, log, activity, defaultTimeoutSeconds, alwaysAcceptNamespace, hasBuckets } = options;
    this.#activity = activity;
    this.#options = {
      port,
      log: ({ policy, level, message, fields }) => log({ level, message, fields: { policy, ...fields } }),
      defaultTimeoutSeconds,
      ...(alwaysAcceptNamespace === undefined ? {} : { alwaysAcceptNamespace }),
    };
    this.#questions = new NamespaceQuestions(port);
    this.#buckets = hasBuckets === true ? loadBuckets() : undefined;
    this.#table = this.#buckets && new this.#buckets.PolicyTable({ ...this.#options, port: this.#questions });
  }

  /** Takes a change of the table over. `ofUpserts`: the numbers of its upserts, in their order. What could not be taken up. */
  apply(change: TableChange, ofUpserts: readonly number[]): readonly ApplyFailure[] {
    const failures: ApplyFailure[] = [];
    change.modules.forEach((module) => this.#prepare(module));
    for (const id of change.removals) {
      this.#policies.delete(id);
      this.#table?.delete(id);
      this.#numbers.delete(id);
    }
    for (const [index, entry] of change.upserts.entries()) {
      const policy = this.#loaded(entry, failures);
      this.#policies.set(entry.id, policy);
      this.#table?.set(policy, entry.match, entry.alsoIn);
      this.#numbers.set(entry.id, ofUpserts[index] ?? 0);
    }
    for (const digest of change.retired) {
      this.#modules.delete(digest);
      this.#guests.delete(digest);
    }
    return failures;
  }

  /** Takes labels of namespaces over. */
  follow({ isAll, namespaces }: NamespacesChange): void {
    const known = this.#table?.namespaces;
    if (isAll) {
      known?.replace(namespaces.flatMap(([name, labels]) => (labels === undefined ? [] : [[name, labels]])));
      return;
    }
    for (const [name, labels] of namespaces) {
      if (labels === undefined) {
        known?.delete(name);
      } else {
        known?.set(name, labels);
      }
    }
  }

  /** Evaluates a review by a policy, or by all of a bucket that it is for. Synchronous. */
  review(message: ReviewMessage): ReviewOutcome {
    const how = message[6];
    return how === undefined ? { type: 'answer', answer: this.#byPolicy(message) } : this.#byBucket(message, how);
  }

  /** Instantiates a module ahead of the change that uses it. The first entry that uses it reports why it cannot be. */
  #prepare(module: CompiledPolicyModule): void {
    this.#modules.set(module.digest, module);
    try {
      this.#guestOf(module.digest);
    } catch {
      // Reported by #loaded.
    }
  }

  #guestOf(digest: string | undefined): PolicyGuest {
    const known = this.#guests.get(digest ?? '');
    if (known !== undefined) {
      return known;
    }
    const module = this.#modules.get(digest ?? '');
    if (module === undefined) {
      throw new Error(`the module ${digest ?? ''} was not handed over`);
    }
    const guest = createGuest(module);
    this.#guests.set(module.digest, guest);
    return guest;
  }

  /** What answers for an entry. One that cannot be taken up, although the loader could, answers as failed. */
  #loaded(entry: TableEntry, failures: ApplyFailure[]): LoadedPolicy {
    if ('failed' in entry) {
      return createFailedPolicy({ id: entry.id, ...entry.failed }, this.#options);
    }
    try {
      return createPolicy(entry.definition, (reference) => this.#guestOf(entry.digests[reference]), this.#options);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const { id, mode, failurePolicy } = entry.definition;
      failures.push({ id, message });
      return createFailedPolicy({ id, message, mode, failurePolicy }, this.#options);
    }
  }

  #byPolicy([, seq, route, id, body, timedOut]: ReviewMessage): AnswerMessage {
    if (route === 'admit') {
      throw new Error('expected how the review of a bucket is to be dealt with');
    }
    const started = performance.now();
    const policy = this.#policies.get(id);
    if (policy === undefined) {
      const { status, body: text } = unknownPolicy(id);
      return [seq, status, text, null, 0];
    }
    const evaluation = evaluate(policy, body, {
      route,
      ...(timedOut === null ? {} : { timedOut: new Set(timedOut) }),
      entering: (_id, timeoutMs, member) => this.#activity.enter(seq, timeoutMs, member),
      leaving: () => this.#activity.leave(),
    });
    const { status, body: answer, observation } = evaluation;
    return [seq, status, answer, this.#observations.send(observation), performance.now() - started];
  }

  #byBucket([, seq, , bucket, body, timedOut]: ReviewMessage, how: BucketReview): ReviewOutcome {
    if (this.#buckets === undefined || this.#table === undefined) {
      throw new Error('expected to be told at the start that there are reviews of buckets');
    }
    const started = performance.now();
    const questions = this.#questions;
    /** Time in each policy that was asked, by its id. Milliseconds. */
    const times = new Map<string, number>();
    let asked = '';
    let isGuest = false;
    let enteredAt = 0;
    questions.begin(how.namespaceProblem);
    const admission = this.#buckets.admit(this.#table, bucket, body, {
      ...(timedOut === null ? {} : { timedOut: new Set(timedOut) }),
      ...(how.slow === null ? {} : { slow: new Set(how.slow) }),
      deadlineMs: how.expiresAt - monotonicNow(),
      entering: (id, timeoutMs, member) => {
        asked = member < 0 ? id : id.slice(0, id.indexOf('/'));
        isGuest = member !== MATCH_CONDITIONS;
        questions.isGuestRunning = isGuest;
        const leftMs = how.expiresAt - monotonicNow();
        this.#activity.enter(seq, Math.min(timeoutMs, timeToEvaluate(leftMs)), member, this.#numbers.get(asked));
        enteredAt = performance.now();
      },
      leaving: () => {
        this.#activity.leave();
        questions.isGuestRunning = false;
        if (isGuest) {
          times.set(asked, (times.get(asked) ?? 0) + performance.now() - enteredAt);
        }
      },
    });
    const { unanswered } = questions;
    if (unanswered !== undefined && how.namespaceProblem === null) {
      return { type: 'namespace-unknown', seq, namespace: unanswered };
    }
    if (admission.deferred === true) {
      return { type: 'deferred', seq };
    }
    const { status, body: text, observations: observed } = admission;
    const answer = {
      seq,
      status,
      body: text,
      observations: observed.map((observation) => this.#observations.send(observation)),
      times: observed.map(({ policy }) => {
        // One that changed the object, or saw it changed, may have been asked twice.
        const ms = times.get(policy);
        return ms === undefined ? -1 : ms / observed.filter((other) => other.policy === policy).length;
      }),
      evaluationMs: performance.now() - started,
    };
    return { type: 'bucket', answer };
  }
}

/** How long a policy may take, of the time that is left for the review. */
function timeToEvaluate(leftMs: number): number {
  return Math.max(leftMs - SECOND_TRY_MS, leftMs / 2, 0);
}
