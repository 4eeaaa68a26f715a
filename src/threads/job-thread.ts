// A thread for work on what users wrote, which may take any time: it is ended at a deadline, and no other work of the process
// waits for it.
import type { Transferable, Worker } from 'node:worker_threads';
import type { Logger } from '../log/index.ts';
import { CodedError, errorText } from '../values/index.ts';
import { OwnerQueue } from './owner-queue.ts';
import { threadCpuMs } from './processor-time.ts';
import { startThread } from './start-thread.ts';

/** How long an idle thread lives: it takes some 20 MB. Milliseconds. */
const IDLE_MS = 60_000;
/** How much longer than its deadline a job may take on a busy machine, when the deadline is one of processor time. */
const MAX_STRETCH = 20;
/** Least time between two looks at the processor time of a job. Milliseconds. */
const LOOK_AGAIN_MS = 10;

export interface JobThreadOptions {
  /**
   * Module of the thread. It sends one message when it is loaded, and one in answer to each message. With its `nativeThreadId` as
   * the first message, the deadline is one of processor time: no job is blamed for a busy machine.
   */
  readonly module: URL;
  readonly name: string;
  /** Given to the thread when it starts. */
  readonly workerData: unknown;
  /** Time for one job, without the start of the thread. Milliseconds. */
  readonly deadlineMs: number;
  /** Memory of the thread. Megabytes. */
  readonly heapMb: number;
  readonly log: Logger;
}

export type ThreadErrorCode =
  /** The job took longer than the deadline. */
  | 'deadline'
  /** The thread ended during the job: it used up its memory, or failed. */
  | 'ended'
  /** The thread was stopped. */
  | 'stopped';

/** Why a job has no answer. */
export class ThreadError extends CodedError<ThreadErrorCode> {
  override readonly name = 'ThreadError';
}

interface QueuedJob<Job, Answer> {
  readonly job: Job;
  readonly transfer: readonly Transferable[];
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Runs jobs one after the other in a thread, which starts with the first job. Owners take turns, so that the jobs of one wait for
 * one job of each other owner at most.
 */
export class JobThread<Job, Answer> {
  readonly #options: JobThreadOptions;
  readonly #waiting = new OwnerQueue<QueuedJob<Job, Answer>>();
  #worker: Worker | undefined;
  #isLoaded = false;
  /** Undefined: deadlines are those of a clock. */
  #nativeThreadId: number | undefined;
  #running: QueuedJob<Job, Answer> | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #idle: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: JobThreadOptions) {
    this.#options = options;
  }

  /**
   * Runs a job: a value that can be cloned.
   * @param owner whose job it is, such as a namespace
   * @param transfer what the thread gets instead of a copy of it
   * @throws ThreadError; RangeError or DataCloneError if it cannot be cloned
   */
  async run(job: Job, owner: string, transfer: readonly Transferable[] = []): Promise<Answer> {
    if (this.#isStopped) {
      throw new ThreadError('stopped', 'the process is stopping');
    }
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.#waiting.push(owner, { job, transfer, resolve, reject });
    this.#next();
    return await promise;
  }

  /** Ends the thread. Jobs without an answer fail. */
  stop(): void {
    this.#isStopped = true;
    const jobs = [...(this.#running === undefined ? [] : [this.#running]), ...this.#waiting.clear()];
    this.#running = undefined;
    this.#end();
    for (const { reject } of jobs) {
      reject(new ThreadError('stopped', 'the process is stopping'));
    }
  }

  #next(): void {
    const next = this.#running === undefined ? this.#waiting.shift() : undefined;
    if (next !== undefined) {
      this.#start(next);
    }
  }

  #start(next: QueuedJob<Job, Answer>): void {
    clearTimeout(this.#idle);
    const isNew = this.#worker === undefined;
    this.#worker ??= this.#spawn();
    try {
      this.#worker.postMessage(next.job, next.transfer);
    } catch (error) {
      // What is nested too deeply cannot be cloned.
      next.reject(error);
      this.#endWhenIdle();
      setImmediate(() => this.#next());
      return;
    }
    this.#running = next;
    if (!isNew && this.#isLoaded) {
      this.#watch();
    }
  }

  #watch(): void {
    const { deadlineMs } = this.#options;
    const id = this.#nativeThreadId;
    const began = id === undefined ? undefined : threadCpuMs(id);
    const last = performance.now() + deadlineMs * MAX_STRETCH;
    const look = (): void => {
      const spent = id === undefined ? undefined : threadCpuMs(id);
      const left = began === undefined || spent === undefined ? 0 : began + deadlineMs - spent;
      if (left <= 0 || performance.now() > last) {
        this.#fail('deadline', 'it took too long');
      } else {
        this.#deadline = setTimeout(look, Math.max(left, LOOK_AGAIN_MS));
      }
    };
    this.#deadline = setTimeout(look, deadlineMs);
  }

  #spawn(): Worker {
    const { module, name, workerData, heapMb, log } = this.#options;
    this.#isLoaded = false;
    this.#nativeThreadId = undefined;
    const worker = startThread(module, { name, workerData, heapMb });
    worker.unref();
    worker.on('message', (message: unknown) => {
      if (worker !== this.#worker) {
        // It was ended.
      } else if (this.#isLoaded) {
        this.#answered(message as Answer);
      } else {
        this.#isLoaded = true;
        this.#nativeThreadId = typeof message === 'number' ? message : undefined;
        if (this.#running !== undefined) {
          this.#watch();
        }
      }
    });
    worker.on('error', (error) => log.warn({ thread: name, error: errorText(error) }, 'thread failed'));
    worker.on('exit', () => {
      if (worker === this.#worker) {
        this.#fail('ended', 'it used up its memory, or failed');
      }
    });
    return worker;
  }

  #answered(answer: Answer): void {
    clearTimeout(this.#deadline);
    const running = this.#running;
    this.#running = undefined;
    running?.resolve(answer);
    this.#endWhenIdle();
    this.#next();
  }

  #endWhenIdle(): void {
    this.#idle = setTimeout(() => this.#end(), IDLE_MS).unref();
  }

  /** Fails the job that is running. The next one gets a new thread. */
  #fail(code: ThreadErrorCode, message: string): void {
    const running = this.#running;
    this.#running = undefined;
    this.#end();
    running?.reject(new ThreadError(code, message));
    this.#next();
  }

  #end(): void {
    clearTimeout(this.#deadline);
    clearTimeout(this.#idle);
    const ended = this.#worker;
    this.#worker = undefined;
    void ended?.terminate();
  }
}
