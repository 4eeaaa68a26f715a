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
  type Observation,
  type PolicyOptions,
  readReview,
  type Review,
  ReviewError,
  type Verdict,
} from '../../engine/index.ts';
import { admissionResponse, withHttpCode } from '../admission-response.ts';
import type { CompiledPolicyModule } from '../loading/compiled-module.ts';
import {
  type FromWorker,
  monotonicNow,
  type NamespacesChange,
  type ReviewMessage,
  type ReviewResult,
  type ReviewTerms,
  type Route,
  type TableChange,
  type TableEntry,
  type WorkerActivity,
  type WorkerStart,
} from '../evaluation-protocol.ts';
import type { LogEntry } from '../../log/index.ts';
import { errorText } from '../../values/index.ts';
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
export type ReviewOutcome = Extract<FromWorker, { readonly type: 'answer' | 'deferred' | 'namespace-unknown' }>;

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

  /** Evaluates a review by one policy, or by all of a bucket that it is for. Synchronous. */
  review([, seq, route, target, body, terms]: ReviewMessage): ReviewOutcome {
    const started = performance.now();
    const clock = new PolicyClock();
    const answered = (result: ReviewResult, observations: readonly Observation[] = []): ReviewOutcome => ({
      type: 'answer',
      answer: {
        seq,
        result,
        observations: observations.map((observation) => this.#observations.send(observation)),
        times: clock.timesOf(observations),
        evaluationMs: performance.now() - started,
      },
    });
    this.#questions.begin(terms.namespaceProblem);
    try {
      const review = readReview(route === 'admit' ? 'validate' : route, body);
      const decided = this.#decide(route, target, review, { terms, seq, clock });
      const { unanswered } = this.#questions;
      if (unanswered !== undefined && terms.namespaceProblem === null) {
        return { type: 'namespace-unknown', seq, namespace: unanswered };
      }
      if (decided === 'deferred') {
        return { type: 'deferred', seq };
      }
      return decided === 'unknown-target'
        ? answered({ kind: 'unknown-target' })
        : answered({ kind: 'response', response: responseText(route, review, decided.verdict) }, decided.observations);
    } catch (error) {
      if (error instanceof ReviewError) {
        return answered({ kind: 'refused', code: error.code, message: error.message });
      }
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.#options.log({ policy: target, level: 'error', message: 'the engine failed', fields: { error: text } });
      return answered({ kind: 'failed' });
    }
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
      const message = errorText(error);
      const { id, mode, failurePolicy } = entry.definition;
      failures.push({ id, message });
      return createFailedPolicy({ id, message, mode, failurePolicy }, this.#options);
    }
  }

  #decide(route: Route, target: string, review: Review, { terms, seq, clock }: EvaluationScope): Decided {
    const { timedOut, slow, expiresAt } = terms;
    const judgeOptions = {
      ...(timedOut === null ? {} : { timedOut: new Set(timedOut) }),
      onUnitStart: (id: string, timeoutMs: number, member: number): void => {
        const policy = member < 0 ? id : id.slice(0, id.indexOf('/'));
        const isGuest = member !== MATCH_CONDITIONS;
        this.#questions.isGuestRunning = isGuest;
        // Policies that are asked by name have their own limit only.
        const leftMs = route === 'admit' ? timeToEvaluate(expiresAt - monotonicNow()) : Infinity;
        this.#activity.enter(seq, Math.min(timeoutMs, leftMs), member, this.#numbers.get(policy) ?? 0);
        clock.start(isGuest ? policy : undefined);
      },
      onUnitEnd: (): void => {
        this.#activity.leave();
        this.#questions.isGuestRunning = false;
        clock.stop();
      },
    };
    if (route !== 'admit') {
      const policy = this.#policies.get(target);
      if (policy === undefined) {
        return 'unknown-target';
      }
      const { verdict, observation } = evaluate(policy, review, { route, ...judgeOptions });
      return { verdict, observations: [observation] };
    }
    if (this.#buckets === undefined || this.#table === undefined) {
      throw new Error('expected to be told at the start that there are reviews of buckets');
    }
    const admission = this.#buckets.admit(this.#table, target, review, {
      ...judgeOptions,
      ...(slow === null ? {} : { slow: new Set(slow) }),
      deadlineMs: expiresAt - monotonicNow(),
    });
    switch (admission.kind) {
      case 'deferred':
        return 'deferred';
      case 'unknown-bucket':
        return 'unknown-target';
      default:
        return admission;
    }
  }
}

/** What one evaluation belongs to. */
interface EvaluationScope {
  readonly terms: ReviewTerms;
  readonly seq: number;
  readonly clock: PolicyClock;
}

/** What policies decided, or why they did not. */
type Decided =
  | { readonly verdict: Verdict; readonly observations: readonly Observation[] }
  | 'deferred'
  | 'unknown-target';

/** Time spent in the code of each policy. */
class PolicyClock {
  readonly #ms = new Map<string, number>();
  #policy: string | undefined;
  #startedAt = 0;

  /** Undefined: what runs is no code of a policy. */
  start(policy: string | undefined): void {
    this.#policy = policy;
    this.#startedAt = performance.now();
  }

  stop(): void {
    if (this.#policy !== undefined) {
      this.#ms.set(this.#policy, (this.#ms.get(this.#policy) ?? 0) + performance.now() - this.#startedAt);
    }
  }

  /** For each observation; -1 when no code of its policy ran. A policy that was asked twice has its time shared out. */
  timesOf(observations: readonly Observation[]): number[] {
    return observations.map(({ policy }) => {
      const ms = this.#ms.get(policy);
      return ms === undefined ? -1 : ms / observations.filter((other) => other.policy === policy).length;
    });
  }
}

function responseText(route: Route, { uid }: Review, verdict: Verdict): string {
  // Only API servers make the code the status of their own answer.
  return JSON.stringify(admissionResponse(uid, route === 'validate_raw' ? verdict : withHttpCode(verdict)));
}

/** How long a policy may take, of the time that is left for the review. */
function timeToEvaluate(leftMs: number): number {
  return Math.max(leftMs - SECOND_TRY_MS, leftMs / 2, 0);
}
