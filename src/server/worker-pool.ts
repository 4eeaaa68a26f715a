// The evaluation workers: threads that hold the policy table and evaluate one review at a time. The pool keeps every
// review's bytes until its answer is there, so that a worker can be ended at any moment without losing a request.
import { Worker } from 'node:worker_threads';
import type { Observation } from '../engine/index.ts';
import type { CapabilityConnection } from './capability-connection.ts';
import { ServerError } from './errors.ts';
import {
  type AnswerMessage,
  type FromWorker,
  type LogMessage,
  type ReviewMessage,
  type Route,
  type TableChange,
  type TableEntry,
  type ToWorker,
  WorkerActivity,
  type WorkerStart,
} from './evaluation-protocol.ts';
import { ObservationReceiver } from './observations.ts';

/** How often the pool looks for guests past their deadline. Milliseconds. */
export const WATCHDOG_INTERVAL_MS = 25;
/**
 * When every worker has been busy this long while others wait, the policies that hold them are moved to the slow
 * lane: long against an evaluation (well under a millisecond), short against a webhook timeout (seconds). Milliseconds.
 */
export const HOLD_LIMIT_MS = 100;
/** How long a policy stays in the slow lane, where all such policies together leave one worker free. Milliseconds. */
export const SLOW_LANE_MS = 60_000;
/**
 * Reviews that wait or run at once. At the API server's largest request (3 MiB) this bounds memory only together with
 * {@link MAX_HELD_BYTES}; alone it bounds the time that a new request would wait.
 */
export const MAX_HELD_REVIEWS = 20_000;
/** Bytes of bodies that wait or run at once: room for 36 reviews of the largest size, or 50,000 ordinary ones. */
export const MAX_HELD_BYTES = 256 * 1024 * 1024;
/** How often one review is tried when workers end under it; then it is answered as if its policy had timed out. */
export const MAX_TRIES = 2;
/**
 * Work handed to a worker at once, by the time that its policies took before: enough that a message carries several
 * reviews under load and no worker waits for its next one, little enough that nobody notices who is in front. A policy
 * that takes longer, or is not known yet, is handed out alone. Milliseconds.
 */
export const WORK_AHEAD_MS = 0.5;
/**
 * A worker that has less than this before it is given more work before another one is woken: waking a thread takes as
 * long as an evaluation or two, on both sides. Milliseconds.
 */
export const WORTH_WAKING_MS = 0.1;
/** A worker that is on one review for longer than this gets no more, and gives back what it has behind it. Milliseconds. */
export const STUCK_MS = 20;
/** Reviews handed to a worker at once, however quick their policies are. */
export const REVIEWS_AHEAD = 8;
/** Weight of the newest evaluation in a policy's usual time: follows a change within some ten evaluations. */
const USUAL_WEIGHT = 0.2;
/** How long the pool waits before it replaces a worker that ended before it was ready. Milliseconds. */
export const START_RETRY_MS = 1_000;
/** JavaScript heap of one worker: tables of thousands of policies need tens of MiB. Guests' memory is bounded elsewhere. */
export const WORKER_HEAP_MB = 512;
/**
 * Space for new objects in one worker. V8's default (48 MiB) would be most of what a small server uses; a review leaves
 * some tens of KiB behind, so this is still hundreds of reviews between two collections.
 */
export const WORKER_YOUNG_HEAP_MB = 12;

/** The answer to one review. Times in milliseconds. */
export interface Answer {
  readonly status: number;
  readonly body: string;
  /** The same object for all answers of a worker that are counted alike. */
  readonly observation: Observation | null;
  /** Time spent in the policy. */
  readonly evaluationMs: number;
  /** Time from submission to answer. */
  readonly totalMs: number;
}

/** What the pool needs, and whom it tells. */
export interface WorkerPoolOptions {
  readonly size: number;
  readonly start: Omit<WorkerStart, 'activity' | 'capabilities'>;
  /** A connection to whatever answers host capabilities, one for each worker. */
  readonly connectCapabilities: () => CapabilityConnection;
  readonly log: (entry: LogMessage) => void;
  /** A guest used up its time or its fuel, or ended its worker. */
  readonly onTimeout?: (policy: string) => void;
  /** A worker ended and is replaced. */
  readonly onRestart?: (reason: RestartReason) => void;
  /** A worker could not take up a policy that the loader had found good. */
  readonly onApplyFailure?: (id: string, message: string) => void;
}

/** Why a worker was replaced. */
export type RestartReason = 'timeout' | 'crash' | 'held' | 'renewed';

interface Job {
  readonly seq: number;
  readonly route: Route;
  readonly policy: string;
  readonly body: Uint8Array;
  readonly submittedAt: number;
  /** When whoever asked has stopped waiting for the answer. */
  readonly expiresAt: number;
  readonly done: (answer: Answer) => void;
  /** How long the policy usually takes, as known when the job was handed out. Milliseconds. */
  expectedMs: number;
  timedOut: string[] | null;
  tries: number;
  /** The how-many-eth it is that its worker was given. */
  turn: number;
}

interface Member {
  worker: Worker;
  activity: WorkerActivity;
  observations: ObservationReceiver;
  /** In the order in which the worker evaluates them. */
  jobs: Job[];
  /** Handed to the worker with the next message. */
  outbox: ReviewMessage[];
  /** The last review's turn, see ReviewMessage. */
  turn: number;
  /** The table version that it has told of. */
  version: number;
  /** When the job at the front was handed over or came to the front. */
  busySince: number;
  ready: boolean;
  ending: boolean;
}

/** The review that a worker is on: the one that it says, or the one that it was given first. */
function runningJob({ activity, jobs }: Member): Job | undefined {
  const seq = activity.current()?.seq;
  return jobs.find((job) => job.seq === seq) ?? jobs[0];
}

/** How long a worker will be busy with what it was given. Milliseconds. */
function workAhead({ jobs }: Member): number {
  return jobs.reduce((sum, { expectedMs }) => sum + expectedMs, 0);
}

/** Threads that evaluate reviews against one policy table. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #members: Member[] = [];
  readonly #table = new Map<string, TableEntry>();
  readonly #modules = new Map<string, TableChange['modules'][number]>();
  readonly #slowUntil = new Map<string, number>();
  /** How long each policy usually takes. Milliseconds. */
  readonly #usualMs = new Map<string, number>();
  #parked: Job[] = [];
  #queue: Job[] = [];
  #queueHead = 0;
  #seq = 0;
  #heldReviews = 0;
  #heldBytes = 0;
  #version = 0;
  /** End the wait for workers to start. */
  readonly #starting: (() => void)[] = [];
  readonly #awaitingVersion: { readonly version: number; readonly resolve: () => void }[] = [];
  #watchdog: NodeJS.Timeout | undefined;
  #watchedAt = 0;
  #dispatching: NodeJS.Immediate | undefined;
  #stopped = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
  }

  /** Starts the workers; resolves when each is ready, or when they are ended. */
  async start(): Promise<void> {
    this.#watchdog = setInterval(() => this.#watch(), WATCHDOG_INTERVAL_MS);
    this.#watchdog.unref();
    await Promise.all(
      Array.from({ length: this.#options.size }, () => {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#members.push(this.#spawn(resolve));
        this.#starting.push(resolve);
        return promise;
      }),
    );
  }

  /** Reviews that wait for a worker. */
  get waiting(): number {
    return this.#queue.length - this.#queueHead + this.#parked.length;
  }

  /** Reviews that were submitted and are not answered. */
  get held(): number {
    return this.#heldReviews;
  }

  /** Whether a policy is in the table. */
  has(id: string): boolean {
    return this.#table.has(id);
  }

  /**
   * Evaluates a review; `done` is called once. A review of a slow policy that has found no free worker after
   * `patienceMs` is answered as if its policy had timed out.
   * @throws ServerError 'overloaded' when too many reviews are held already, 'stopping' after stop().
   */
  submit(route: Route, policy: string, body: Uint8Array, patienceMs: number, done: (answer: Answer) => void): void {
    if (this.#stopped) {
      throw new ServerError('stopping', 'the policy server is stopping');
    }
    if (this.#heldReviews >= MAX_HELD_REVIEWS || this.#heldBytes + body.length > MAX_HELD_BYTES) {
      throw new ServerError('overloaded', `${this.#heldReviews} reviews are waiting already; try again later`);
    }
    this.#heldReviews += 1;
    this.#heldBytes += body.length;
    // Sequence numbers live in a 32-bit cell of shared memory.
    this.#seq = this.#seq === 0x7fff_ffff ? 1 : this.#seq + 1;
    const submittedAt = performance.now();
    const expiresAt = submittedAt + patienceMs;
    const job: Job = {
      seq: this.#seq,
      route,
      policy,
      body,
      done,
      timedOut: null,
      tries: 0,
      turn: 0,
      expectedMs: 0,
      submittedAt,
      expiresAt,
    };
    this.#queue.push(job);
    this.#dispatchSoon();
  }

  /**
   * Changes the table of every worker. Reviews submitted before may still be evaluated with the old table; reviews
   * submitted afterwards never are, because a worker's messages arrive in order. Resolves when all have changed over.
   */
  publish(change: TableChange): Promise<void> {
    for (const digest of change.retired) {
      this.#modules.delete(digest);
    }
    for (const module of change.modules) {
      this.#modules.set(module.digest, module);
    }
    for (const id of change.removals) {
      this.#table.delete(id);
      this.#slowUntil.delete(id);
      this.#usualMs.delete(id);
    }
    for (const entry of change.upserts) {
      this.#table.set(entry.id, entry);
      // What an older version did is not held against a new one.
      this.#slowUntil.delete(entry.id);
      this.#usualMs.delete(entry.id);
    }
    this.#version += 1;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#awaitingVersion.push({ version: this.#version, resolve });
    for (const member of this.#members) {
      this.#send(member, { type: 'table', version: this.#version, change });
    }
    return promise;
  }

  /** Replaces every worker: what they were started with is no longer good. Reviews under way are evaluated anew. */
  renew(): void {
    for (const member of this.#members) {
      this.#end(member, 'renewed');
    }
    this.#dispatchSoon();
  }

  /** Ends all workers. Reviews still held are not answered. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#watchdog);
    clearImmediate(this.#dispatching);
    await Promise.all(this.#members.map((member) => member.worker.terminate()));
    for (const resolve of [...this.#starting, ...this.#awaitingVersion.map((one) => one.resolve)]) {
      resolve();
    }
  }

  #spawn(onReady: () => void): Member {
    const activity = new WorkerActivity();
    const capabilities = this.#options.connectCapabilities();
    const workerData: WorkerStart = { ...this.#options.start, activity: activity.buffer, capabilities };
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const worker = new Worker(new URL(`./evaluation-worker.${extension}`, import.meta.url), {
      name: 'evaluation',
      workerData,
      transferList: [capabilities.port],
      // Workers get no environment and no flags of ours: nothing that they run has a use for them.
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: WORKER_HEAP_MB, maxYoungGenerationSizeMb: WORKER_YOUNG_HEAP_MB },
    });
    const member: Member = {
      worker,
      activity,
      observations: new ObservationReceiver(),
      jobs: [],
      outbox: [],
      turn: 0,
      version: 0,
      busySince: 0,
      ready: false,
      ending: false,
    };
    worker.on('message', (message: FromWorker) => this.#receive(member, message, onReady));
    worker.on('error', (error) =>
      this.#options.log({ level: 'error', message: 'evaluation worker failed', fields: { error: error.message } }),
    );
    worker.on('exit', () => this.#exited(member));
    return member;
  }

  #send(member: Member, message: ToWorker): void {
    // A worker that has ended takes no messages; its replacement starts from the whole table.
    member.worker.postMessage(message);
  }

  #receive(member: Member, message: FromWorker, onReady: () => void): void {
    switch (message.type) {
      case 'answer':
        this.#answered(member, message.answer);
        this.#dispatchSoon();
        break;
      case 'log':
        this.#options.log(message.entry);
        break;
      case 'applied': {
        for (const failure of message.failures) {
          this.#options.onApplyFailure?.(failure.id, failure.message);
        }
        member.version = message.version;
        this.#versionReached();
        break;
      }
      case 'ready':
        member.ready = true;
        onReady();
        this.#dispatchSoon();
        break;
      default:
        message satisfies never;
    }
  }

  /** Tells those who wait for a table version that every worker has it. */
  #versionReached(): void {
    const reached = Math.min(...this.#members.map(({ version }) => version));
    while (this.#awaitingVersion[0] !== undefined && this.#awaitingVersion[0].version <= reached) {
      this.#awaitingVersion.shift()?.resolve();
    }
  }

  #answered(member: Member, [seq, status, body, sentObservation, evaluationMs]: AnswerMessage): void {
    const observation = member.observations.receive(sentObservation);
    const index = member.jobs.findIndex((job) => job.seq === seq);
    const job = member.jobs[index];
    if (job === undefined || member.ending) {
      // The job was given to another worker, when this one was ended or stuck; the answer is on its way from there.
      return;
    }
    member.jobs.splice(index, 1);
    const now = performance.now();
    member.busySince = now;
    if (job.timedOut === null && this.#table.has(job.policy)) {
      // What is answered without asking the policy says nothing of it.
      const usual = this.#usualMs.get(job.policy) ?? evaluationMs;
      this.#usualMs.set(job.policy, usual + (evaluationMs - usual) * USUAL_WEIGHT);
    }
    this.#release(job);
    if (observation?.outcome === 'timeout' && job.timedOut === null) {
      // Cut off by its fuel, before the deadline: told like the others.
      this.#slowUntil.set(job.policy, now + SLOW_LANE_MS);
      this.#options.onTimeout?.(job.policy);
    }
    job.done({ status, body, observation, evaluationMs, totalMs: now - job.submittedAt });
  }

  #release(job: Job): void {
    this.#heldReviews -= 1;
    this.#heldBytes -= job.body.length;
  }

  /** Dispatches once all that has arrived by now is in the queue, so that a message carries as many reviews as it may. */
  #dispatchSoon(): void {
    this.#dispatching ??= setImmediate(() => {
      this.#dispatching = undefined;
      this.#dispatch();
    });
  }

  /**
   * Hands waiting reviews to workers: first so much to those that are awake, and then to the others, that waking the next
   * one is worth it; then one to each in turn, until each has as much as it may be ahead.
   */
  #dispatch(): void {
    if (this.#slowUntil.size > 0) {
      this.#unpark();
    }
    for (const isAwake of [true, false]) {
      for (const member of this.#members) {
        if (member.jobs.length > 0 === isAwake && this.#mayTake(member)) {
          this.#fill(member, WORTH_WAKING_MS);
        }
      }
    }
    for (let ahead = 0; ahead < REVIEWS_AHEAD && this.#queueHead < this.#queue.length; ahead += 1) {
      for (const member of this.#members) {
        const job = member.jobs.length <= ahead && this.#mayTake(member) ? this.#next(member) : undefined;
        if (job !== undefined) {
          this.#hand(member, job);
        }
      }
    }
    if (this.#queueHead === this.#queue.length && this.#queueHead > 0) {
      this.#queue = [];
      this.#queueHead = 0;
    }
    for (const member of this.#members) {
      if (member.outbox.length > 0) {
        this.#send(member, { type: 'reviews', reviews: member.outbox });
        member.outbox = [];
      }
    }
  }

  #mayTake(member: Member): boolean {
    const { ready, ending, jobs, busySince } = member;
    const isStuck =
      jobs.length > 0 && (performance.now() - busySince > STUCK_MS || jobs.some(({ policy }) => this.#isSlow(policy)));
    return ready && !ending && !isStuck && workAhead(member) < WORK_AHEAD_MS;
  }

  /** Hands waiting reviews to a worker until it has this much before it. */
  #fill(member: Member, ms: number): void {
    while (member.jobs.length < REVIEWS_AHEAD && workAhead(member) < ms) {
      const job = this.#next(member);
      if (job === undefined) {
        return;
      }
      this.#hand(member, job);
    }
  }

  /** The first waiting review that the worker may take now; those of the slow lane are put aside while it is full. */
  #next(member: Member): Job | undefined {
    while (this.#queueHead < this.#queue.length) {
      const job = this.#queue[this.#queueHead];
      if (job === undefined) {
        break;
      }
      job.expectedMs = this.#usualMs.get(job.policy) ?? WORK_AHEAD_MS;
      if (job.timedOut === null && job.expiresAt <= performance.now()) {
        // Nobody waits for a verdict any more.
        job.timedOut = [job.policy];
        this.#options.onTimeout?.(job.policy);
      }
      const isSlow = job.timedOut === null && this.#isSlow(job.policy);
      if (!isSlow && member.jobs.length > 0 && job.expectedMs >= WORK_AHEAD_MS) {
        return undefined;
      }
      this.#advance();
      if (isSlow && (member.jobs.length > 0 || !this.#slowLaneHasRoom())) {
        this.#parked.push(job);
        continue;
      }
      return job;
    }
    return undefined;
  }

  #advance(): void {
    this.#queueHead += 1;
    if (this.#queueHead > 1024 && this.#queueHead * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#queueHead);
      this.#queueHead = 0;
    }
  }

  #hand(member: Member, job: Job): void {
    if (member.jobs.length === 0) {
      member.busySince = performance.now();
    }
    member.jobs.push(job);
    member.turn = (member.turn + 1) | 0;
    job.turn = member.turn;
    member.outbox.push([member.turn, job.seq, job.route, job.policy, job.body, job.timedOut]);
  }

  #isSlow(policy: string): boolean {
    if (this.#slowUntil.size === 0) {
      return false;
    }
    const until = this.#slowUntil.get(policy);
    if (until === undefined) {
      return false;
    }
    if (until < performance.now()) {
      this.#slowUntil.delete(policy);
      return false;
    }
    return true;
  }

  #slowLaneHasRoom(): boolean {
    const running = this.#members.filter(({ jobs }) => jobs.some((job) => this.#isSlow(job.policy))).length;
    // A worker that is being replaced is not the one that is left free.
    const able = this.#members.filter(({ ready, ending }) => ready && !ending).length;
    return running < (this.#members.length === 1 ? 1 : able - 1);
  }

  #unpark(): void {
    while (this.#parked.length > 0 && this.#slowLaneHasRoom()) {
      const idle = this.#members.find((member) => member.ready && !member.ending && member.jobs.length === 0);
      const job = idle && this.#parked.shift();
      if (idle === undefined || job === undefined) {
        return;
      }
      this.#hand(idle, job);
    }
  }

  #watch(): void {
    for (const member of this.#members) {
      const overdue = member.activity.overdue();
      if (overdue !== undefined && !member.ending) {
        // Not found: the review was taken back and is evaluated elsewhere, see takeBack().
        const job = member.jobs.find(({ seq }) => seq === overdue.seq);
        if (job !== undefined) {
          this.#markTimedOut(job, overdue.member);
        }
        this.#end(member, 'timeout');
      }
    }
    const now = performance.now();
    // After a pause of this thread, the answers of workers that look stuck are waiting to be read.
    if (now - this.#watchedAt < 2 * WATCHDOG_INTERVAL_MS) {
      this.#takeBack();
      this.#freeAWorker();
    }
    this.#watchedAt = now;
    this.#giveUpParked();
    this.#dispatchSoon();
  }

  /** Reviews that waited in the slow lane for as long as anybody waits for them get their policy's timeout answer. */
  #giveUpParked(): void {
    const now = performance.now();
    const expired = this.#parked.filter(({ expiresAt }) => expiresAt <= now);
    if (expired.length > 0) {
      this.#parked = this.#parked.filter(({ expiresAt }) => expiresAt > now);
      for (const job of expired) {
        this.#markTimedOut(job, -1);
        this.#queue.push(job);
      }
    }
  }

  /** Takes back what waits in a worker behind a review that takes unexpectedly long; late answers to it are ignored. */
  #takeBack(): void {
    const now = performance.now();
    for (const member of this.#members) {
      if (member.jobs.length > 1 && now - member.busySince > STUCK_MS) {
        const running = runningJob(member);
        const behind = member.jobs.filter((job) => job !== running);
        member.jobs = running === undefined ? [] : [running];
        member.activity.takeBack(((running?.turn ?? 0) + 1) | 0, member.turn);
        this.#queue.splice(this.#queueHead, 0, ...behind);
      }
    }
  }

  #markTimedOut(job: Job, memberIndex: number): void {
    const entry = this.#table.get(job.policy);
    const group =
      entry !== undefined && 'definition' in entry && entry.definition.kind === 'group' ? entry.definition : undefined;
    const culprit = group?.members[memberIndex]?.name;
    job.timedOut = [...(job.timedOut ?? []), culprit === undefined ? job.policy : `${job.policy}/${culprit}`];
    this.#slowUntil.set(job.policy, performance.now() + SLOW_LANE_MS);
    this.#options.onTimeout?.(job.policy);
  }

  /** When every worker has been held for long and others wait: the holders go to the slow lane, and one gives way. */
  #freeAWorker(): void {
    const now = performance.now();
    const busy = this.#members.filter(({ jobs, ending }) => jobs.length > 0 && !ending);
    if (
      this.#members.length < 2 ||
      busy.length < this.#members.length ||
      busy.some(({ busySince }) => now - busySince < HOLD_LIMIT_MS)
    ) {
      return;
    }
    const holders = new Set(busy.map((member) => runningJob(member)?.policy));
    const others = [...this.#queue.slice(this.#queueHead), ...busy.flatMap(({ jobs }) => jobs.slice(1))];
    if (!others.some(({ policy }) => !holders.has(policy))) {
      return;
    }
    for (const policy of holders) {
      if (policy !== undefined) {
        this.#slowUntil.set(policy, now + SLOW_LANE_MS);
      }
    }
    const latest = busy.toSorted((a, b) => b.busySince - a.busySince)[0];
    if (latest !== undefined) {
      this.#end(latest, 'held');
    }
  }

  /** Ends a worker in the middle of its work; its reviews go back to the front of the queue, a new worker starts. */
  #end(member: Member, reason: RestartReason): void {
    if (member.ending) {
      return;
    }
    member.ending = true;
    this.#options.onRestart?.(reason);
    const jobs = member.jobs;
    member.jobs = [];
    member.outbox = [];
    this.#queue.splice(this.#queueHead, 0, ...jobs);
    this.#replace(member);
    void member.worker.terminate();
  }

  /** A worker ended on its own: out of memory, or a fault of ours. What it was evaluating is tried once more. */
  #exited(member: Member): void {
    if (member.ending || this.#stopped) {
      return;
    }
    const job = runningJob(member);
    if (job !== undefined) {
      job.tries += 1;
      if (job.tries >= MAX_TRIES) {
        this.#markTimedOut(job, -1);
      }
    }
    if (member.ready) {
      this.#end(member, 'crash');
    } else {
      // One that cannot even start would not start at once again either.
      setTimeout(() => this.#end(member, 'crash'), START_RETRY_MS).unref();
    }
  }

  #replace(member: Member): void {
    const index = this.#members.indexOf(member);
    if (index === -1 || this.#stopped) {
      return;
    }
    const fresh = this.#spawn(() => undefined);
    this.#members[index] = fresh;
    this.#send(fresh, {
      type: 'table',
      version: this.#version,
      change: { upserts: [...this.#table.values()], removals: [], modules: [...this.#modules.values()], retired: [] },
    });
  }
}
