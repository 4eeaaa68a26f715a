// The main thread's side of running modules: starts the thread, answers it, and ends it when a guest does not end.
import { join } from 'node:path';
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import { AsyncCapabilities, type PolicyLogEntry } from '../../engine/index.ts';
import { cacheFolder } from '../cache-folder.ts';
import { CliError } from '../errors.ts';
import { errorText } from '../../values/index.ts';
import type {
  CapabilityReply,
  FromModuleThread,
  GuestStage,
  JobResults,
  ModuleJob,
  ModuleThreadStart,
  SuiteAnswer,
} from './module-job.ts';

/** JavaScript heap of the thread; guests' memory is bounded elsewhere. */
const THREAD_HEAP_MB = 512;

/** A guest was still running when its time was over. */
export class GuestOverdue extends CliError {
  readonly stage: GuestStage;
  /** The policy, or `group/member`. */
  readonly unit: string;

  constructor(stage: GuestStage, unit: string, timeoutMs: number) {
    super(`${unit} did not end while it was ${stage}: expected at most ${timeoutMs / 1_000} s`, {
      hint: 'Does it loop for ever? If it is only slow, give it longer with --timeout SECONDS.',
    });
    this.stage = stage;
    this.unit = unit;
  }
}

/** The thread itself came to an end: its memory ran out, or worse. It cannot be asked again. */
export class ThreadFailed extends CliError {}

/** Whom the runner tells of what happens meanwhile. */
interface RunnerEvents {
  readonly onLog?: (entry: PolicyLogEntry) => void;
  /** A question of a suite was answered. */
  readonly onAnswer?: (index: number, answer: SuiteAnswer, durationMs: number) => void;
}

/** Runs jobs in a thread, one at a time. The thread starts at once, so that it is there when the job is. */
export class ModuleRunner implements AsyncDisposable {
  readonly #capabilities = new AsyncCapabilities();
  readonly #events: RunnerEvents;
  readonly #asked = new Set<string>();
  #thread: { readonly worker: Worker; readonly answers: MessagePort; readonly answered: Int32Array };

  constructor(events: RunnerEvents = {}) {
    this.#events = events;
    this.#thread = spawn();
  }

  /** Kubernetes capabilities that were asked for and could not be answered. */
  get unanswered(): readonly string[] {
    return [...this.#asked];
  }

  /**
   * Does a job.
   * @throws GuestOverdue when a guest was ended at its deadline; CliError for everything else
   */
  async perform<Job extends ModuleJob>(job: Job): Promise<JobResults[Job['task']]> {
    const { worker } = this.#thread;
    const { promise, resolve, reject } = Promise.withResolvers<JobResults[Job['task']]>();
    let deadline: NodeJS.Timeout | undefined;
    let stage = '';
    const onMessage = (message: FromModuleThread): void => {
      switch (message.type) {
        case 'guest':
          clearTimeout(deadline);
          stage = `${message.unit} failed while it was ${message.stage}: `;
          deadline = setTimeout(() => {
            this.#replace();
            reject(new GuestOverdue(message.stage, message.unit, message.timeoutMs));
          }, message.timeoutMs);
          break;
        case 'log':
          this.#events.onLog?.(message.entry);
          break;
        case 'answer':
          clearTimeout(deadline);
          this.#events.onAnswer?.(message.index, message.answer, message.durationMs);
          break;
        case 'ask':
          void this.#answer(message.capability, message.payload);
          break;
        case 'done':
          resolve(message.result as JobResults[Job['task']]);
          break;
        case 'failed':
          reject(
            new CliError(
              message.failure.code === 'settings-refused'
                ? message.failure.message
                : `${stage}${message.failure.message}`,
            ),
          );
          break;
        default:
          message satisfies never;
      }
    };
    const onError = (error: unknown): void => reject(threadError(error));
    const onExit = (): void => reject(new ThreadFailed('the thread that runs the module ended before it was done'));
    worker.on('message', onMessage).on('error', onError).on('exit', onExit);
    worker.postMessage(job);
    try {
      return await promise;
    } finally {
      clearTimeout(deadline);
      // One by one: a worker that loses all listeners at once, its own among them, is never heard again.
      worker.off('message', onMessage).off('error', onError).off('exit', onExit);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#thread.worker.terminate();
    this.#thread.answers.close();
  }

  #replace(): void {
    void this[Symbol.asyncDispose]();
    this.#thread = spawn();
  }

  async #answer(capability: string, payload: string): Promise<void> {
    const { answers, answered } = this.#thread;
    const reply = await this.#reply(capability, payload);
    answers.postMessage(reply);
    Atomics.store(answered, 0, 1);
    Atomics.notify(answered, 0);
  }

  async #reply(capability: string, payload: string): Promise<CapabilityReply> {
    if (capability.startsWith('kubernetes/')) {
      this.#asked.add(capability);
      return { error: `no cluster is there to answer ${capability}` };
    }
    try {
      return { payload: await this.#capabilities.answer(capability, payload) };
    } catch (error) {
      return { error: errorText(error) };
    }
  }
}

function spawn(): { worker: Worker; answers: MessagePort; answered: Int32Array } {
  const { port1, port2 } = new MessageChannel();
  const buffer = new SharedArrayBuffer(4);
  const start: ModuleThreadStart = { compileCache: join(cacheFolder(), 'node'), answers: port2, answered: buffer };
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const worker = new Worker(new URL(`./module-thread.${extension}`, import.meta.url), {
    workerData: start,
    transferList: [port2],
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: THREAD_HEAP_MB },
  });
  // Errors of a thread that is being ended concern nobody; while it does a job, there is another listener.
  worker.on('error', () => undefined);
  return { worker, answers: port1, answered: new Int32Array(buffer) };
}

function threadError(error: unknown): ThreadFailed {
  const isMemory = error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
  return new ThreadFailed(
    isMemory
      ? `the module needs too much memory: expected at most ${THREAD_HEAP_MB} MiB beside its own`
      : `the thread that runs the module failed: ${errorText(error)}`,
    { cause: error },
  );
}
