// A thread for work on what users wrote, which may take any time: it is ended at a deadline, and no other work of the process
// waits for it.
import type { Worker } from 'node:worker_threads';
import type { Logger } from '../log/index.ts';
import { CodedError, errorText } from '../values/index.ts';
import { CELL, type FromJobThread, type JobThreadLoaded, type ToJobThread } from './answer-jobs.ts';
import { OwnerQueue } from './owner-queue.ts';
import { threadCpuMs } from './processor-time.ts';
import { startThread } from './start-thread.ts';

/** Jobs that the thread has: one that it runs, and one ahead, so that it does not wait for the main thread to read an answer. */
const MAX_POSTED = 2;
/** How long an idle thread lives: it takes some 20 MB. Milliseconds. */
const IDLE_MS = 60_000;
/** How much longer than its deadline a job may take on a busy machine, when the deadline is one of processor time. */
const MAX_STRETCH = 20;
/** Least time between two looks at the processor time of a job. Milliseconds. */
const LOOK_AGAIN_MS = 10;

export interface JobThreadOptions {
  /** Module of the thread, which calls `answerJobs`. */
  readonly module: URL;
  readonly name: string;
  /** Given to the thread when it starts. */
  readonly workerData: unknown;
  /** Time for one job, without the start of the thread. Milliseconds. */
  readonly deadlineMs: number;
  /** Of processor time, no job is blamed for a busy machine; the system may not tell it. Default: of the clock. */
  readonly deadlineOf?: 'processor time';
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

interface QueuedJob<Job, Answer, Question, Reply> {
  readonly job: Job;
  readonly reply: ((question: Question) => Reply) | undefined;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** A thread that runs. */
interface Running {
  readonly worker: Worker;
  /** Undefined until its module is loaded. */
  loaded: JobThreadLoaded | undefined;
  /** Answers of it that were read. */
  answered: number;
}

/**
 * Runs jobs one after the other in a thread, which starts with the first job. Owners take turns, so that the jobs of one wait for
 * one job of each other owner at most, besides those that the thread has.
 */
export class JobThread<Job, Answer, Question = never, Reply = never> {
  readonly #options: JobThreadOptions;
  readonly #waiting = new OwnerQueue<QueuedJob<Job, Answer, Question, Reply>>();
  /** What the thread has. It runs the first one. */
  #posted: QueuedJob<Job, Answer, Question, Reply>[] = [];
  #running: Running | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #idle: NodeJS.Timeout | undefined;
  #isKept = false;
  #isStopped = false;

  constructor(options: JobThreadOptions) {
    this.#options = options;
  }

  /**
   * Runs a job: a value that can be cloned.
   * @param owner whose job it is, such as a namespace
   * @param reply answers the questions of the job, at once. Default: it has none
   * @throws ThreadError; RangeError or DataCloneError if it cannot be cloned
   */
  async run(job: Job, owner: string, reply?: (question: Question) => Reply): Promise<Answer> {
    if (this.#isStopped) {
      throw new ThreadError('stopped', 'the process is stopping');
    }
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.#waiting.push(owner, { job, reply, resolve, reject });
    this.#next();
    return await promise;
  }

  /** Starts the thread before there is a job, and keeps it without one; or does so no more. */
  keep(isKept: boolean): void {
    this.#isKept = isKept && !this.#isStopped;
    if (this.#isKept) {
      clearTimeout(this.#idle);
      this.#running ??= this.#spawn();
    } else if (this.#posted.length === 0) {
      this.#end();
    }
  }

  /** Ends the thread. Jobs without an answer fail. */
  stop(): void {
    this.#isStopped = true;
    const jobs = [...this.#posted, ...this.#waiting.clear()];
    this.#posted = [];
    this.#end();
    for (const { reject } of jobs) {
      reject(new ThreadError('stopped', 'the process is stopping'));
    }
  }

  /** Posts what the thread has room for. */
  #next(): void {
    while (this.#posted.length < MAX_POSTED) {
      const next = this.#waiting.shift();
      if (next === undefined) {
        return;
      }
      const running = (this.#running ??= this.#spawn());
      try {
        running.worker.postMessage({ job: next.job } satisfies ToJobThread<Job, Reply>);
      } catch (error) {
        // What is nested too deeply cannot be cloned.
        next.reject(error);
        this.#endWhenIdle();
        continue;
      }
      this.#posted.push(next);
      if (this.#posted.length === 1) {
        this.#watch(running);
      }
    }
  }

  /** Ends the first job at its deadline, which begins when the thread is loaded. */
  #watch({ loaded, answered }: Running): void {
    clearTimeout(this.#idle);
    clearTimeout(this.#deadline);
    if (loaded === undefined || this.#posted.length === 0) {
      return;
    }
    const { deadlineMs } = this.#options;
    const began = performance.now();
    const look = (): void => {
      // Then the thread does the next job, and the answer to this one was not read yet.
      const isAnswered = Atomics.load(loaded.cell, CELL.answered) > answered;
      const leftMs = deadlineMs - (isAnswered ? 0 : this.#spentMs(loaded, performance.now() - began));
      if (leftMs <= 0) {
        this.#fail('deadline', 'it took too long');
      } else {
        this.#deadline = setTimeout(look, Math.max(leftMs, LOOK_AGAIN_MS));
      }
    };
    this.#deadline = setTimeout(look, deadlineMs);
  }

  /** How much of its time the first job has spent. */
  #spentMs({ cell, nativeThreadId }: JobThreadLoaded, elapsedMs: number): number {
    const { deadlineMs, deadlineOf } = this.#options;
    if (deadlineOf === undefined || nativeThreadId === undefined || elapsedMs > deadlineMs * MAX_STRETCH) {
      return elapsedMs;
    }
    return (threadCpuMs(nativeThreadId) ?? Infinity) - Atomics.load(cell, CELL.spentMs);
  }

  #spawn(): Running {
    const { module, name, workerData, heapMb, log } = this.#options;
    const worker = startThread(module, { name, workerData, heapMb });
    const running: Running = { worker, loaded: undefined, answered: 0 };
    worker.unref();
    worker.on('message', (message: FromJobThread<Answer, Question>) => {
      if (running === this.#running) {
        this.#received(running, message);
      }
    });
    worker.on('error', (error) => log.warn({ thread: name, error: errorText(error) }, 'thread failed'));
    worker.on('exit', () => {
      if (running === this.#running) {
        this.#fail('ended', 'it used up its memory, or failed');
      }
    });
    return running;
  }

  #received(running: Running, message: FromJobThread<Answer, Question>): void {
    if ('answer' in message) {
      running.answered += 1;
      this.#posted.shift()?.resolve(message.answer);
      this.#watch(running);
      this.#endWhenIdle();
      this.#next();
    } else if ('cell' in message) {
      running.loaded = message;
      this.#watch(running);
    } else if (running.loaded !== undefined) {
      const { cell } = running.loaded;
      const reply = this.#posted[0]?.reply?.(message.question) as Reply;
      running.worker.postMessage({ reply } satisfies ToJobThread<Job, Reply>);
      Atomics.add(cell, CELL.replies, 1);
      Atomics.notify(cell, CELL.replies);
    }
  }

  #endWhenIdle(): void {
    clearTimeout(this.#idle);
    if (this.#posted.length === 0 && !this.#isKept) {
      this.#idle = setTimeout(() => this.#end(), IDLE_MS).unref();
    }
  }

  /** Fails the job that is running. A new thread gets the others. */
  #fail(code: ThreadErrorCode, message: string): void {
    const failed = this.#posted.shift();
    this.#end();
    failed?.reject(new ThreadError(code, message));
    if (this.#posted.length > 0 || (this.#isKept && failed !== undefined)) {
      const running = (this.#running = this.#spawn());
      this.#posted.forEach(({ job }) => running.worker.postMessage({ job } satisfies ToJobThread<Job, Reply>));
    }
    this.#next();
  }

  #end(): void {
    clearTimeout(this.#deadline);
    clearTimeout(this.#idle);
    const ended = this.#running;
    this.#running = undefined;
    void ended?.worker.terminate();
  }
}
