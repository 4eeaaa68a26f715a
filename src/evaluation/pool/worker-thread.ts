// One worker of the pool: its thread, and the reviews that it has.
import type { Worker } from 'node:worker_threads';
import type { CapabilityConnection } from '../capabilities/capability-connection.ts';
import {
  type FromWorker,
  type ReviewMessage,
  type ReviewTerms,
  type Running,
  type ToWorker,
  WorkerActivity,
  type WorkerStart,
} from '../evaluation-protocol.ts';
import { ObservationReceiver } from '../observations.ts';
import type { ReviewJob } from './review-job.ts';
import { endThread, runInBackground, startThread, threadCpuMs } from '../../threads/index.ts';

/** JavaScript heap of one worker: tables of thousands of policies need tens of MiB. Guests' memory is bounded elsewhere. */
const WORKER_HEAP_MB = 512;

/** Callbacks of a worker. */
export interface WorkerListener {
  received(worker: WorkerThread, message: FromWorker): void;
  failed(error: Error): void;
  exited(worker: WorkerThread): void;
}

/** An evaluation thread, and the reviews that it has. */
export class WorkerThread {
  readonly observations = new ObservationReceiver();
  /** Number of the last change of the table that it applied. */
  version = 0;
  /** When the job at the front was handed over or came to the front. */
  busySince = 0;
  isReady = false;
  isEnding = false;
  #isBackground = false;
  /** The system's id of its thread; undefined until it is ready, or where the system does not tell. */
  #nativeThreadId: number | undefined;
  readonly #worker: Worker;
  readonly #activity = new WorkerActivity();
  /** In the order in which the worker evaluates them. */
  #jobs: ReviewJob[] = [];
  /** Reviews to post with the next message. */
  #outbox: ReviewMessage[] = [];
  /** The last review's turn, see ReviewMessage. */
  #turn = 0;

  constructor(
    start: Omit<WorkerStart, 'activity' | 'capabilities'>,
    capabilities: CapabilityConnection,
    listener: WorkerListener,
  ) {
    const workerData: WorkerStart = { ...start, activity: this.#activity.buffer, capabilities };
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    this.#worker = startThread(new URL(`../worker/evaluation-worker.${extension}`, import.meta.url), {
      name: 'evaluation',
      workerData,
      transferList: [capabilities.port],
      heapMb: WORKER_HEAP_MB,
    });
    this.#worker.on('message', (message: FromWorker) => listener.received(this, message));
    this.#worker.on('error', (error) => listener.failed(error));
    this.#worker.on('exit', () => listener.exited(this));
  }

  /** Unanswered reviews, in the order of evaluation. */
  get jobs(): readonly ReviewJob[] {
    return this.#jobs;
  }

  /** Notes that its thread has started. */
  ready(nativeThreadId: number | undefined): void {
    this.isReady = true;
    this.#nativeThreadId = nativeThreadId;
    if (this.#isBackground) {
      runInBackground(nativeThreadId);
    }
  }

  /** Lets its thread give way to others, from its start on. */
  moveToBackground(): void {
    this.#isBackground = true;
    if (this.isReady) {
      runInBackground(this.#nativeThreadId);
    }
  }

  /** Whether its thread gives way to others, so that it is for reviews that take long. */
  get isBackground(): boolean {
    return this.#isBackground;
  }

  /** Whether it takes work. */
  get isAble(): boolean {
    return this.isReady && !this.isEnding;
  }

  /** Expected time for its reviews. Milliseconds. */
  get workAheadMs(): number {
    return this.#jobs.reduce((sum, { expectedMs }) => sum + expectedMs, 0);
  }

  /** What runs in it. */
  get running(): Running | undefined {
    return this.#activity.current();
  }

  /** The same, if that is past its deadline. */
  get overdue(): Running | undefined {
    return this.#activity.overdue();
  }

  /** Whether it waits for an answer of the host. */
  get isWaiting(): boolean {
    return this.#activity.isWaiting;
  }

  /**
   * Its processor time so far; undefined when it has ended. Milliseconds. From the system where that tells: the thread itself
   * answers only after native code, and the first write to 125 MiB of memory takes up to 0.7 s.
   */
  async cpuMs(): Promise<number | undefined> {
    const known = this.#nativeThreadId === undefined ? undefined : threadCpuMs(this.#nativeThreadId);
    return known ?? (await this.#askCpuMs());
  }

  async #askCpuMs(): Promise<number | undefined> {
    try {
      const { user, system } = await this.#worker.cpuUsage();
      return (user + system) / 1_000;
    } catch {
      return undefined;
    }
  }

  /** The review that runs, or that will run next. */
  get runningJob(): ReviewJob | undefined {
    const seq = this.running?.seq;
    return this.#jobs.find((job) => job.seq === seq) ?? this.#jobs[0];
  }

  /** A worker that has ended takes no messages; its replacement starts from the whole table. */
  send(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  /** Gives it a review, with the next {@link flush}. */
  hand(job: ReviewJob, terms: ReviewTerms): void {
    if (this.#jobs.length === 0) {
      this.busySince = performance.now();
    }
    this.#jobs.push(job);
    this.#turn = (this.#turn + 1) | 0;
    job.turn = this.#turn;
    const { turn, seq, route, target, input } = job;
    this.#outbox.push([turn, seq, route, target, input, terms]);
  }

  flush(): void {
    if (this.#outbox.length > 0) {
      this.send({ type: 'reviews', reviews: this.#outbox });
      this.#outbox = [];
    }
  }

  /**
   * Removes an answered review. Undefined: the worker was ended or stuck, and another one answers it.
   */
  take(seq: number): ReviewJob | undefined {
    const index = this.#jobs.findIndex((job) => job.seq === seq);
    if (index === -1 || this.isEnding) {
      return undefined;
    }
    const [job] = this.#jobs.splice(index, 1);
    this.busySince = performance.now();
    return job;
  }

  /** Removes the reviews behind the one that runs; late answers to them are ignored. */
  withdraw(): readonly ReviewJob[] {
    const running = this.runningJob;
    const behind = this.#jobs.filter((job) => job !== running);
    this.#jobs = running === undefined ? [] : [running];
    this.#activity.withdraw(((running?.turn ?? 0) + 1) | 0, this.#turn);
    return behind;
  }

  /** Ends the thread at once. Returns its reviews. */
  end(): readonly ReviewJob[] {
    this.isEnding = true;
    const jobs = this.#jobs;
    this.#jobs = [];
    this.#outbox = [];
    void this.terminate();
    return jobs;
  }

  async terminate(): Promise<void> {
    await endThread(this.#worker);
  }
}
