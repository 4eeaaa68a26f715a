// What the main thread and an evaluation worker say to each other. Messages are small arrays and plain data: the
// structured clone of a tuple costs less than that of an object with keys.
import type { PolicyDefinition } from '../engine/index.ts';
import type { CapabilityConnection } from './capability-connection.ts';
import type { CompiledPolicyModule } from './compiled-module.ts';
import type { SentObservation } from './observations.ts';

/** Which route a review came in by; it decides how much of a policy's settings for answers applies. */
export type Route = 'validate' | 'audit' | 'validate_raw';

/** What a worker serves under one policy id: a policy, or the reason why there is none. */
export type TableEntry =
  | {
      readonly id: string;
      readonly definition: PolicyDefinition;
      /** Digest of each module that the definition names, by the name that it uses. */
      readonly digests: Readonly<Record<string, string>>;
    }
  | { readonly id: string; readonly failed: { readonly message: string; readonly failurePolicy: 'Fail' | 'Ignore' } };

/** A change of the policy table. Workers apply it between two evaluations. */
export interface TableChange {
  readonly upserts: readonly TableEntry[];
  readonly removals: readonly string[];
  /** Compiled modules that upserts need and that the workers have not been given yet, by digest. */
  readonly modules: readonly CompiledPolicyModule[];
  /** Digests of modules that no policy uses any more. */
  readonly retired: readonly string[];
}

/**
 * A review to evaluate: the how-many-eth that its worker is given, number, route, policy id, body, ids of policies and
 * members that must be answered as timed out.
 */
export type ReviewMessage = readonly [
  turn: number,
  seq: number,
  route: Route,
  policy: string,
  body: Uint8Array,
  timedOut: readonly string[] | null,
];

/** To a worker. */
export type ToWorker =
  | { readonly type: 'table'; readonly version: number; readonly change: TableChange }
  | { readonly type: 'reviews'; readonly reviews: readonly ReviewMessage[] };

/** The answer to one review: HTTP status, body, what metrics need, and the time that its evaluation took. */
export type AnswerMessage = readonly [
  seq: number,
  status: number,
  body: string,
  observation: SentObservation,
  evaluationMs: number,
];

/** A line that a worker wants logged; the main thread owns the log. */
export interface LogMessage {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** From a worker. */
export type FromWorker =
  | { readonly type: 'ready' }
  | {
      readonly type: 'applied';
      readonly version: number;
      readonly failures: readonly { id: string; message: string }[];
    }
  | { readonly type: 'answer'; readonly answer: AnswerMessage }
  | { readonly type: 'log'; readonly entry: LogMessage };

/** Given to a worker when it starts. */
export interface WorkerStart {
  /** Where the worker publishes what it is doing, see {@link WorkerActivity}. */
  readonly activity: SharedArrayBuffer;
  /** Where host capabilities are answered. */
  readonly capabilities: CapabilityConnection;
  /** How long a policy may take unless it says otherwise. Seconds. */
  readonly defaultTimeoutSeconds: number;
  /** Requests for objects of this namespace are always allowed. */
  readonly alwaysAcceptNamespace?: string;
}

const SEQ = 0;
const MEMBER = 1;
const TAKEN_FROM = 2;
const TAKEN_TO = 3;
const DEADLINE_OFFSET = 16;
const ACTIVITY_BYTES = 24;

/** Monotonic milliseconds that all threads of the process agree on (performance.now() starts anew in each thread). */
function monotonicMs(): bigint {
  return process.hrtime.bigint() / 1_000_000n;
}

/**
 * What a worker is doing, in memory that the main thread can read while the worker is busy: the review, the member of
 * a group (-1: not a group's), and the moment by which the guest must answer (0: no guest is running).
 */
export class WorkerActivity {
  readonly buffer: SharedArrayBuffer;
  readonly #work: Int32Array;
  readonly #deadline: BigInt64Array;

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(ACTIVITY_BYTES)) {
    this.buffer = buffer;
    this.#work = new Int32Array(buffer, 0, 4);
    this.#deadline = new BigInt64Array(buffer, DEADLINE_OFFSET, 1);
  }

  /** Worker: a guest starts, and has this long. */
  enter(seq: number, timeoutMs: number, member: number): void {
    Atomics.store(this.#work, SEQ, seq);
    Atomics.store(this.#work, MEMBER, member);
    Atomics.store(this.#deadline, 0, monotonicMs() + BigInt(Math.ceil(timeoutMs)));
  }

  /** Worker: no guest is running any more. */
  leave(): void {
    Atomics.store(this.#deadline, 0, 0n);
  }

  /**
   * Main thread: the worker need not begin with what it was given from this turn to that one, it is evaluated elsewhere.
   * Replaces the range before, which a worker that is given more has passed.
   */
  takeBack(from: number, to: number): void {
    Atomics.store(this.#work, TAKEN_FROM, from);
    Atomics.store(this.#work, TAKEN_TO, to);
  }

  /** Worker: whether a review that it was given is not its own any more. Turns count from 1, have 32 bits and go round. */
  isTakenBack(turn: number): boolean {
    const from = Atomics.load(this.#work, TAKEN_FROM);
    const to = Atomics.load(this.#work, TAKEN_TO);
    return ((turn - from) | 0) >= 0 && ((to - turn) | 0) >= 0;
  }

  /** Main thread: the review and member whose guest runs, if one does. */
  current(): { readonly seq: number; readonly member: number } | undefined {
    if (Atomics.load(this.#deadline, 0) === 0n) {
      return undefined;
    }
    return { seq: Atomics.load(this.#work, SEQ), member: Atomics.load(this.#work, MEMBER) };
  }

  /** Main thread: the same, if the guest is past its deadline. */
  overdue(): { readonly seq: number; readonly member: number } | undefined {
    const deadline = Atomics.load(this.#deadline, 0);
    if (deadline === 0n || monotonicMs() <= deadline) {
      return undefined;
    }
    const current = this.current();
    // Another guest may have started in between; it has a deadline of its own.
    return Atomics.load(this.#deadline, 0) === deadline ? current : undefined;
  }
}
