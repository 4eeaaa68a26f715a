// What the main thread and an evaluation worker say to each other. Messages are small arrays and plain data: the
// structured clone of a tuple costs less than that of an object with keys.
import type {
  JsonObject,
  MonitoredVerdict,
  ObjectReference,
  ObjectVerdict,
  PolicyDefinition,
  ReviewErrorCode,
} from '../engine/index.ts';
import type { PolicyMatch, GroupVersionResource } from '../resources/index.ts';
import type { CapabilityConnection } from './capabilities/capability-connection.ts';
import type { CompiledPolicyModule } from './compiled-module.ts';
import type { MemoryBudget } from './memory-budget.ts';
import type { LogEntry } from '../log/index.ts';
import type { FailedLookup, WatchedChange } from './watched-objects.ts';
import type { SentObservation } from './observations.ts';

/**
 * The route of a review, which decides which settings of a policy apply to the answer. `admit`: all policies of a bucket that
 * match are evaluated.
 */
export type ReviewRoute = 'validate' | 'audit' | 'validate_raw' | 'admit';

/** How a worker evaluates a review: by its route. `object`: policies judge an object that came by none. */
export type WorkerRoute = ReviewRoute | 'object';

/** An object as it exists. */
export interface ExistingObject {
  readonly object: JsonObject;
  /** Of its kind, in the version of the object. */
  readonly resource: GroupVersionResource;
  /** The object of its namespace, for selectors and parameters. Default: it is looked up. */
  readonly namespace?: JsonObject;
  /** As it was before an update. Default: the object is created. */
  readonly oldObject?: JsonObject;
  /** Who is taken to create it. Default: nobody that policies could know. */
  readonly userInfo?: JsonObject;
  /** The AdmissionReview of a request that was sent, which is judged as it is. Default: one is made of the fields above. */
  readonly review?: Uint8Array;
}

/** An object, and the policies that judge it. */
export interface JudgedObject extends ExistingObject {
  readonly policies: readonly string[];
}

/** The bytes of a review, or an object for the route `object`. */
export type ReviewInput = Uint8Array | JudgedObject;

/** What a worker serves under one policy id: a policy, or the reason why there is none. */
export type TableEntry = {
  readonly id: string;
  /** The requests that it matches in shared buckets; absent: only requests that name it. */
  readonly match?: PolicyMatch;
  /** Buckets of other revisions, which other replicas may serve at the moment: it answers there, too. See PolicyTable.set. */
  readonly alsoIn?: readonly string[];
} & (
  | {
      readonly definition: PolicyDefinition;
      /** Digest of each module that the definition names, by the name that it uses. */
      readonly digests: Readonly<Record<string, string>>;
    }
  | {
      readonly failed: { readonly message: string; readonly failurePolicy: 'Fail' | 'Ignore' };
      /** Whether the policy is still being loaded: requests that name it are answered with 503. */
      readonly isLoading?: boolean;
    }
);

/** A change of the policy table. Workers apply it between two evaluations. */
export interface TableChange {
  readonly upserts: readonly TableEntry[];
  readonly removals: readonly string[];
  /** Compiled modules that upserts need and workers do not have yet, by digest. */
  readonly modules: readonly CompiledPolicyModule[];
  /** Digests of modules that no policy uses any more. */
  readonly retired: readonly string[];
}

/**
 * A review to evaluate. `turn`: its number among the reviews posted to the worker; `target`: a policy id, or a bucket by the
 * route `admit`; empty: several policies judge an object.
 */
export type ReviewMessage = readonly [
  turn: number,
  seq: number,
  route: WorkerRoute,
  target: string,
  input: ReviewInput,
  terms: ReviewTerms,
];

/** Conditions of an evaluation. */
export interface ReviewTerms {
  /** Policies, members (`group/member`) and owners whose policies are answered as timed out; null: none. */
  readonly timedOut: readonly string[] | null;
  /** Of a bucket: when its policies must have answered, see {@link monotonicNow}. */
  readonly expiresAt: number;
  /**
   * Slow owners, see policyOwner: a review that matches a policy of one of them, or a policy of a namespace that was never
   * evaluated in this worker, is deferred as a whole. null: it is not deferred.
   */
  readonly slow: readonly string[] | null;
  /** Objects that were read for this review, and that workers may still not have; null: none. */
  readonly failedLookups: readonly FailedLookup[] | null;
}

/** To a worker. */
export type ToWorker =
  | {
      readonly type: 'table';
      readonly version: number;
      readonly change: TableChange;
      /** Numbers of the policies of `change.upserts` in {@link WorkerActivity}, in their order. */
      readonly numbers: readonly number[];
    }
  | { readonly type: 'watched'; readonly change: WatchedChange }
  | { readonly type: 'reviews'; readonly reviews: readonly ReviewMessage[] };

/** The result of a review. */
export type ReviewResult =
  /** The AdmissionResponse as JSON text. */
  | { readonly kind: 'response'; readonly response: string }
  /** The verdicts of policies on an object; without those of several that have to be asked one by one. */
  | { readonly kind: 'judged'; readonly verdicts: readonly ObjectVerdict[] }
  /** The body is not a valid review. */
  | { readonly kind: 'refused'; readonly code: ReviewErrorCode; readonly message: string }
  /** There is no such policy or bucket. */
  | { readonly kind: 'unknown-target' }
  /** A fault of the engine itself; it is in the log. */
  | { readonly kind: 'failed' };

/**
 * A review is long after this time, see also {@link HeldWorker}: evaluations usually take well under a millisecond. Milliseconds.
 */
export const LONG_REVIEW_MS = 20;

/**
 * A review that held its worker: its policies used more than {@link LONG_REVIEW_MS}, in processor time and while they waited for
 * the host. On a busy machine, all reviews take long, and few hold their worker.
 */
export interface HeldWorker {
  /** The number of the policy that ran last, see ToWorker. */
  readonly policy: number;
  /** From the start of the review to its answer. Milliseconds. */
  readonly ms: number;
  /** Of that, how long its policies waited for the host. Milliseconds. */
  readonly waitedMs: number;
}

/** The answer to a review. */
export interface ReviewAnswer {
  readonly seq: number;
  readonly result: ReviewResult;
  /** One for each evaluation of a policy. */
  readonly observations: readonly SentObservation[];
  /** Time in the policy of each observation; -1 when its code did not run. Milliseconds. */
  readonly times: readonly number[];
  readonly evaluationMs: number;
  /** Absent for others. */
  readonly held?: HeldWorker;
  /** See MonitoredVerdict; absent without any. */
  readonly monitored?: readonly MonitoredVerdict[];
  /** Exceptions that the request uses, by `metadata.uid`; absent without any. */
  readonly uses?: readonly string[];
}

/** From a worker. */
export type FromWorker =
  /** `nativeThreadId`: see threadCpuMs. */
  | { readonly type: 'ready'; readonly nativeThreadId: number | undefined }
  | {
      readonly type: 'applied';
      readonly version: number;
      readonly failures: readonly { id: string; message: string }[];
      /** Whether observations are numbered from 0 after this message, because those of removed policies do not come again. */
      readonly isRenumbered: boolean;
    }
  | { readonly type: 'answer'; readonly answer: ReviewAnswer }
  /**
   * The review is for a policy of a slow owner, or for an untried one, and was not evaluated. `owner`: undefined for a review that
   * names its policy.
   */
  | { readonly type: 'deferred'; readonly seq: number; readonly owner: string | undefined }
  /** The review of a bucket cannot be evaluated before this object is known. */
  | { readonly type: 'unknown-object'; readonly seq: number; readonly object: ObjectReference }
  | { readonly type: 'log'; readonly entry: LogEntry };

/** Given to a worker when it starts. */
export interface WorkerStart {
  /** Where the worker publishes what it is doing, see {@link WorkerActivity}. */
  readonly activity: SharedArrayBuffer;
  /** Where host capabilities are answered. */
  readonly capabilities: CapabilityConnection;
  /** See {@link ValidationTimes}. */
  readonly validationTimes: SharedArrayBuffer;
  /** Whether all host capabilities are answered there, because a session is recorded or replayed. Default: no. */
  readonly isRecorded?: boolean;
  /** Timeout of a policy without one of its own. Seconds. */
  readonly defaultTimeoutSeconds: number;
  /** Requests for objects of this namespace are always allowed. */
  readonly alwaysAcceptNamespace?: string;
  /** Whether there may be reviews of buckets. Default: no, and their code is not loaded. */
  readonly hasBuckets?: boolean;
  /** Default: the memory of instances has no limit. */
  readonly memory?: MemoryBudget;
}

const SEQ = 0;
const MEMBER = 1;
const WITHDRAWN_FROM = 2;
const WITHDRAWN_TO = 3;
const POLICY = 4;
const WAITING = 5;
const NATIVE_ID = 6;
/** One more than is used: times need addresses that are divisible by eight. */
const CELLS = 8;
const DEADLINE_OFFSET = CELLS * Int32Array.BYTES_PER_ELEMENT;
const ACTIVITY_BYTES = DEADLINE_OFFSET + 2 * BigInt64Array.BYTES_PER_ELEMENT;
/** Cells behind the others, which have 64 bits. */
const DEADLINE = 0;
const SINCE = 1;

/** Monotonic milliseconds, the same in all threads of the process. performance.now() starts at 0 in each thread. */
function monotonicMs(): bigint {
  return process.hrtime.bigint() / 1_000_000n;
}

/** The same with microseconds, from the thread's own clock, which needs no BigInt. */
export function monotonicNow(): number {
  return performance.now() + MONOTONIC_OFFSET;
}

/** The difference of {@link monotonicNow} to this thread's performance.now(). Milliseconds. */
export const MONOTONIC_OFFSET: number = monotonicOffset();

/** Reads both clocks a few times, and uses the quickest pair: a thread may be suspended between two reads. */
function monotonicOffset(): number {
  const readings = Array.from({ length: 10 }, () => {
    const before = performance.now();
    const shared = Number(process.hrtime.bigint() / 1_000n) / 1_000;
    return { took: performance.now() - before, offset: shared - before };
  });
  return readings.reduce((one, other) => (other.took < one.took ? other : one)).offset;
}

/** What a worker evaluates. */
export interface Running {
  /** The review. */
  readonly seq: number;
  /** The position of the member in its group; -1 without a group. */
  readonly member: number;
  /** The number of the policy, see ToWorker. */
  readonly policy: number;
  /** When the guest started; {@link monotonicNow}, whole milliseconds. */
  readonly since: number;
}

/**
 * What a worker evaluates, in memory that the main thread can read while the worker is busy: the review, the policy, the member
 * of a group, the start, and the deadline of the guest (0: no guest is running), and whether it waits for the host.
 */
export class WorkerActivity {
  readonly buffer: SharedArrayBuffer;
  readonly #work: Int32Array;
  readonly #times: BigInt64Array;
  #waitingSince = 0;
  #waitedMs = 0;

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(ACTIVITY_BYTES)) {
    this.buffer = buffer;
    this.#work = new Int32Array(buffer, 0, CELLS);
    this.#times = new BigInt64Array(buffer, DEADLINE_OFFSET, 2);
  }

  /** Worker: it has started, with this id of the system; undefined: the system does not tell. */
  started(nativeThreadId: number | undefined): void {
    Atomics.store(this.#work, NATIVE_ID, nativeThreadId ?? 0);
  }

  /** Main thread: the worker's id of the system, if it has started and the system tells. */
  get nativeThreadId(): number | undefined {
    return Atomics.load(this.#work, NATIVE_ID) || undefined;
  }

  /** Worker: a guest starts, with this timeout. */
  enter(seq: number, timeoutMs: number, member: number, policy: number): void {
    Atomics.store(this.#work, SEQ, seq);
    Atomics.store(this.#work, MEMBER, member);
    Atomics.store(this.#work, POLICY, policy);
    const now = monotonicMs();
    Atomics.store(this.#times, SINCE, now);
    Atomics.store(this.#times, DEADLINE, now + BigInt(Math.ceil(timeoutMs)));
  }

  /** Worker: no guest is running any more. */
  leave(): void {
    Atomics.store(this.#times, DEADLINE, 0n);
  }

  /** Worker: it begins or ends to wait for an answer of the host. */
  wait(isWaiting: boolean): void {
    Atomics.store(this.#work, WAITING, isWaiting ? 1 : 0);
    if (isWaiting) {
      this.#waitingSince = performance.now();
    } else {
      this.#waitedMs += performance.now() - this.#waitingSince;
    }
  }

  /** Worker: how long it has waited for the host so far. Milliseconds. */
  get waitedMs(): number {
    return this.#waitedMs;
  }

  /** Main thread: whether the worker waits for the host. */
  get isWaiting(): boolean {
    return Atomics.load(this.#work, WAITING) === 1;
  }

  /**
   * Main thread: withdraws the reviews from one turn to another, which other workers evaluate. Replaces the previous range: a
   * worker that gets new reviews has passed it.
   */
  withdraw(from: number, to: number): void {
    Atomics.store(this.#work, WITHDRAWN_FROM, from);
    Atomics.store(this.#work, WITHDRAWN_TO, to);
  }

  /** Worker: whether a review was withdrawn. Turns count from 1, have 32 bits and wrap around. */
  isWithdrawn(turn: number): boolean {
    const from = Atomics.load(this.#work, WITHDRAWN_FROM);
    const to = Atomics.load(this.#work, WITHDRAWN_TO);
    return ((turn - from) | 0) >= 0 && ((to - turn) | 0) >= 0;
  }

  /** Main thread: the running guest, if any. */
  current(): Running | undefined {
    if (Atomics.load(this.#times, DEADLINE) === 0n) {
      return undefined;
    }
    return {
      seq: Atomics.load(this.#work, SEQ),
      member: Atomics.load(this.#work, MEMBER),
      policy: Atomics.load(this.#work, POLICY),
      since: Number(Atomics.load(this.#times, SINCE)),
    };
  }

  /** Main thread: the same, if the guest is past its deadline. */
  overdue(): Running | undefined {
    const deadline = Atomics.load(this.#times, DEADLINE);
    if (deadline === 0n || monotonicMs() <= deadline) {
      return undefined;
    }
    const current = this.current();
    // Another guest may have started in between; it has a deadline of its own.
    return Atomics.load(this.#times, DEADLINE) === deadline ? current : undefined;
  }
}
