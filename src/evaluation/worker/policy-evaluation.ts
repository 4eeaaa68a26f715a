// Evaluates reviews in a worker, one at a time: read, decide, encode.
import {
  boundedVerdict,
  creationOf,
  ExceptionTable,
  type Observation,
  type ObjectLookup,
  ObjectReview,
  readReview,
  type Review,
  ReviewError,
  updateOf,
  type ValidationBudget,
  type Verdict,
} from '../../engine/index.ts';
import type { HostPort, PolicyLog } from '../../engine/capabilities/index.ts';
import { admissionResponse, withHttpCode } from '../admission-response.ts';
import {
  type WorkerRoute,
  type FromWorker,
  type HeldWorker,
  LONG_REVIEW_MS,
  monotonicNow,
  type ExistingObject,
  type ReviewInput,
  type ReviewAnswer,
  type ReviewMessage,
  type ReviewResult,
  type TableChange,
  type WorkerActivity,
  type WorkerStart,
} from '../evaluation-protocol.ts';
import type { LogEntry } from '../../log/index.ts';
import { valueAt } from '../../values/index.ts';
import { applyExceptions, isOfExceptions } from '../published-exceptions.ts';
import { type WatchedChange, WatchedObjects } from '../watched-objects.ts';
import { decideReview, judgeTogether } from './decide-review.ts';
import { ObservationSender } from '../observations.ts';
import { ReviewActivity } from './review-activity.ts';
import { WorkerPolicies } from './worker-policies.ts';

type Applied = Extract<FromWorker, { readonly type: 'applied' }>;

/** The message to the pool after a review. */
export type ReviewOutcome = Extract<FromWorker, { readonly type: 'answer' | 'deferred' | 'unknown-object' }>;

export interface PolicyEvaluationOptions extends Pick<
  WorkerStart,
  'defaultTimeoutSeconds' | 'alwaysAcceptNamespace' | 'hasBuckets' | 'memory'
> {
  /** Answers host capabilities. */
  readonly port: Required<HostPort>;
  /** Default: none. */
  readonly validationBudget?: ValidationBudget;
  readonly log: (entry: LogEntry) => void;
  /** Where the running policy is published. */
  readonly activity: Pick<WorkerActivity, 'enter' | 'leave' | 'waitedMs'>;
}

/** Evaluates reviews by the policies of this thread. */
export class PolicyEvaluation {
  readonly policies: WorkerPolicies;
  readonly watched = new WatchedObjects();
  readonly #exceptions = new ExceptionTable();
  readonly #log: PolicyLog;
  readonly #activity: PolicyEvaluationOptions['activity'];
  readonly #observations = new ObservationSender();

  constructor(options: PolicyEvaluationOptions) {
    const {
      port,
      validationBudget,
      log,
      activity,
      defaultTimeoutSeconds,
      alwaysAcceptNamespace,
      hasBuckets = false,
      memory,
    } = options;
    this.#activity = activity;
    this.#log = ({ policy, level, message, fields }) => log({ level, message, fields: { policy, ...fields } });
    this.policies = new WorkerPolicies(
      {
        port,
        log: this.#log,
        defaultTimeoutSeconds,
        exceptions: this.#exceptions,
        ...(alwaysAcceptNamespace === undefined ? {} : { alwaysAcceptNamespace }),
        ...(validationBudget === undefined ? {} : { validationBudget }),
      },
      hasBuckets,
      memory,
    );
  }

  /** Applies a change of the table, and forgets the observations of policies that are gone. */
  apply(change: TableChange, numbers: readonly number[]): Omit<Applied, 'type' | 'version'> {
    const isRenumbered = change.removals.length > 0;
    if (isRenumbered) {
      this.#observations.clear();
    }
    return { failures: this.policies.apply(change, numbers), isRenumbered };
  }

  /** Takes over what the main thread publishes. */
  applyWatched(change: WatchedChange): void {
    if (isOfExceptions(change)) {
      applyExceptions(this.#exceptions, change);
    } else {
      this.watched.apply(change);
    }
  }

  /** Number of observations that are known to the pool. */
  get numberedObservations(): number {
    return this.#observations.size;
  }

  /** Evaluates a review by one policy, or by the policies of a bucket that it matches. Synchronous. */
  review([, seq, route, target, input, terms]: ReviewMessage): ReviewOutcome {
    const startedAt = performance.now();
    const cpuBefore = process.threadCpuUsage();
    const waitedBefore = this.#activity.waitedMs;
    const activity = new ReviewActivity({
      seq,
      // Only reviews of buckets have a deadline besides the policy's own.
      leftMs: () => (route === 'admit' ? terms.expiresAt - monotonicNow() : Infinity),
      activity: this.#activity,
      numberOf: (policy) => this.policies.numberOf(policy),
    });
    const heldWorker = (ms: number): HeldWorker | undefined => {
      const { user, system } = process.threadCpuUsage(cpuBefore);
      const waitedMs = this.#activity.waitedMs - waitedBefore;
      const isHeld = (user + system) / 1_000 + waitedMs > LONG_REVIEW_MS;
      return isHeld ? { policy: activity.lastPolicy, ms, waitedMs } : undefined;
    };
    const answer = (
      result: ReviewResult,
      observations: readonly Observation[] = [],
      { monitored = [], uses = [] }: Pick<ReviewAnswer, 'monitored' | 'uses'> = {},
    ): ReviewOutcome => {
      // The instances that its policies dropped are part of what the review costs.
      this.policies.collectGarbage();
      this.policies.noteTried(observations);
      const evaluationMs = performance.now() - startedAt;
      const held = evaluationMs > LONG_REVIEW_MS ? heldWorker(evaluationMs) : undefined;
      return {
        type: 'answer',
        answer: {
          seq,
          result,
          observations: observations.map((observation) => this.#observations.send(observation)),
          times: activity.timesOf(observations),
          evaluationMs,
          ...(held === undefined ? {} : { held }),
          ...(monitored.length === 0 ? {} : { monitored }),
          ...(uses.length === 0 ? {} : { uses }),
        },
      };
    };
    try {
      const review = readInput(route, input);
      const watched = terms.failedLookups === null ? this.watched : this.watched.after(terms.failedLookups);
      const objects = input instanceof Uint8Array ? watched : withNamespace(watched, input);
      const together = input instanceof Uint8Array || target !== '' ? undefined : input.policies;
      const { onUnitStart, onUnitEnd } = activity;
      const request = { review, route, target, terms, objects, onUnitStart, onUnitEnd };
      const decision =
        together === undefined ? decideReview(this.policies, request) : judgeTogether(this.policies, together, request);
      switch (decision.kind) {
        case 'verdict':
          return answer(responseOf(route, review, decision.verdict), decision.observations, decision);
        case 'judged':
          return answer({ kind: 'judged', verdicts: decision.verdicts }, decision.observations);
        case 'unknown-target':
          return answer({ kind: 'unknown-target' });
        case 'deferred':
          return { type: 'deferred', seq, owner: decision.owner };
        case 'unknown-object':
          return { type: 'unknown-object', seq, object: decision.object };
        default:
          return decision satisfies never;
      }
    } catch (error) {
      return answer(this.#failure(error, target));
    }
  }

  #failure(error: unknown, target: string): ReviewResult {
    if (error instanceof ReviewError) {
      return { kind: 'refused', code: error.code, message: error.message };
    }
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#log({ policy: target, level: 'error', message: 'the engine failed', fields: { error: text } });
    return { kind: 'failed' };
  }
}

/** @throws ReviewError */
function readInput(route: WorkerRoute, input: ReviewInput): Review {
  if (input instanceof Uint8Array) {
    return readReview(route === 'validate_raw' ? route : 'validate', input);
  }
  const { object, oldObject, resource, userInfo, review } = input;
  if (review !== undefined) {
    return readReview('validate', review);
  }
  return new ObjectReview(
    oldObject === undefined ? creationOf(object, resource, userInfo) : updateOf(object, oldObject, resource),
  );
}

/** A lookup that knows the namespace of an object. */
function withNamespace(objects: ObjectLookup, { object, namespace }: ExistingObject): ObjectLookup {
  return namespace === undefined
    ? objects
    : {
        find: (wanted) =>
          wanted.apiVersion === 'v1' &&
          wanted.kind === 'Namespace' &&
          wanted.name === valueAt(object, 'metadata', 'namespace')
            ? { state: 'found', object: namespace }
            : objects.find(wanted),
      };
}

function responseOf(route: WorkerRoute, { uid }: Review, verdict: Verdict): ReviewResult {
  // An API server uses the code as the status of its own response. Raw requests do not come from one.
  const bounded = boundedVerdict(verdict);
  const response = admissionResponse(uid, route === 'validate_raw' ? bounded : withHttpCode(bounded));
  return { kind: 'response', response: JSON.stringify(response) };
}
