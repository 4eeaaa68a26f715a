// A container of a Pod: a process with probes, which is restarted when it ends.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { SupervisedProcess } from '../supervised-process.ts';
import type { ContainerSpec, ProbeSpec } from './pod.ts';
import { runProbe } from './probe.ts';

/** Delay before the first restart; it doubles with each restart. A kubelet starts with 10 s. Milliseconds. */
const BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 8_000;
/** A container that has run for this time restarts with the first delay again. Milliseconds. */
const STABLE_MS = 30_000;
/** The exit code of a process that SIGKILL ended: 128 + 9. */
const KILLED_CODE = 137;

/** How a container is started. */
export interface ContainerCommand {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

export interface ContainerOptions {
  readonly spec: ContainerSpec;
  readonly command: ContainerCommand;
  readonly address: string;
  readonly port: (port: number | string) => number | undefined;
  readonly restartPolicy: 'Always' | 'OnFailure' | 'Never';
  readonly graceSeconds: number;
  readonly logFile: string;
  /** Called when the status changes. */
  readonly onChange: () => void;
}

export class Container {
  readonly #options: ContainerOptions;
  readonly #stopping = new AbortController();
  #process: SupervisedProcess | undefined;
  #isStarted = false;
  #isReady = false;
  #restarts = 0;
  #lastExitCode: number | undefined;
  #startedAt = new Date();
  #isOver = false;

  constructor(options: ContainerOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.spec.name;
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  get restarts(): number {
    return this.#restarts;
  }

  /** The exit code of the last process. Undefined while the container runs or will be restarted. */
  get exitCode(): number | undefined {
    return this.#isOver ? (this.#lastExitCode ?? 0) : undefined;
  }

  /** The output of all its processes. */
  get log(): string {
    try {
      return readFileSync(this.#options.logFile, 'utf8');
    } catch {
      return '';
    }
  }

  /** The ContainerStatus. */
  get status(): object {
    const { spec } = this.#options;
    const terminated = { exitCode: this.#lastExitCode ?? 0, reason: this.#lastExitCode === 0 ? 'Completed' : 'Error' };
    const isRunning = this.#process !== undefined && this.#process.exit === undefined;
    const waiting = { reason: 'CrashLoopBackOff' };
    const running = { startedAt: this.#startedAt.toISOString().replace(/\.\d+Z$/, 'Z') };
    return {
      name: spec.name,
      image: spec.image,
      imageID: spec.image,
      ready: this.#isReady,
      started: this.#isStarted,
      restartCount: this.#restarts,
      state: this.#isOver ? { terminated } : isRunning ? { running } : { waiting },
      lastState: this.#restarts === 0 ? {} : { terminated },
    };
  }

  /** Runs the container until it is stopped, or ends and is not restarted. */
  async run(): Promise<void> {
    const { restartPolicy } = this.#options;
    let backoffMs = BACKOFF_MS;
    for (;;) {
      const began = performance.now();
      await this.#runOnce();
      if (this.#stopping.signal.aborted || restartPolicy === 'Never') {
        break;
      }
      if (restartPolicy === 'OnFailure' && this.#lastExitCode === 0) {
        break;
      }
      backoffMs = performance.now() - began > STABLE_MS ? BACKOFF_MS : backoffMs;
      this.#options.onChange();
      await sleep(backoffMs, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
      if (this.#stopping.signal.aborted) {
        break;
      }
      backoffMs = Math.min(2 * backoffMs, MAX_BACKOFF_MS);
      this.#restarts += 1;
    }
    this.#isOver = true;
    this.#options.onChange();
  }

  /** Kills its process. The restartPolicy applies. */
  async kill(): Promise<void> {
    await this.#process?.kill();
  }

  /** Suspends its process. Returns the function that resumes it. */
  suspend(): () => void {
    const process = this.#process;
    process?.suspend();
    return () => process?.resume();
  }

  /** Ends the container with SIGTERM, and with SIGKILL after the grace period. It is not restarted. */
  async stop(): Promise<void> {
    const seconds = this.#options.spec.lifecycle?.preStop?.sleep?.seconds ?? 0;
    await sleep(seconds * 1000, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
    this.#stopping.abort();
    await this.#process?.stop();
  }

  /** Ends the container with SIGKILL. It is not restarted. */
  async end(): Promise<void> {
    this.#stopping.abort();
    await this.#process?.kill();
  }

  /** Runs one process until it ends. */
  async #runOnce(): Promise<void> {
    const { spec, command, logFile, graceSeconds, onChange } = this.#options;
    const process = new SupervisedProcess({ ...command, logFile, graceSeconds });
    this.#process = process;
    this.#startedAt = new Date();
    this.#isStarted = spec.startupProbe === undefined;
    this.#isReady = false;
    onChange();
    const ended = new AbortController();
    const probes = this.#probe(process, ended.signal);
    await process.ended;
    ended.abort();
    await probes;
    this.#isReady = false;
    this.#isStarted = false;
    this.#lastExitCode = process.exitCode ?? KILLED_CODE;
    onChange();
  }

  async #probe(process: SupervisedProcess, signal: AbortSignal): Promise<void> {
    const { startupProbe, readinessProbe, livenessProbe } = this.#options.spec;
    const restart = (isGood: boolean): void => {
      if (!isGood) {
        void process.stop();
      }
    };
    if (startupProbe !== undefined) {
      await this.#run(startupProbe, { initial: false, onChange: restart, signal, untilGood: true });
      this.#isStarted = true;
      this.#options.onChange();
    }
    const setReady = (isReady: boolean): void => {
      if (this.#isReady !== isReady && !signal.aborted) {
        this.#isReady = isReady;
        this.#options.onChange();
      }
    };
    if (readinessProbe === undefined) {
      setReady(true);
    }
    await Promise.all([
      readinessProbe && this.#run(readinessProbe, { initial: false, onChange: setReady, signal }),
      livenessProbe && this.#run(livenessProbe, { initial: true, onChange: restart, signal }),
    ]);
  }

  async #run(
    spec: ProbeSpec,
    {
      signal,
      untilGood = false,
      ...rest
    }: {
      readonly initial: boolean;
      readonly onChange: (isGood: boolean) => void;
      readonly signal: AbortSignal;
      readonly untilGood?: boolean;
    },
  ): Promise<void> {
    const { address, spec: container } = this.#options;
    const port = spec.httpGet === undefined ? undefined : this.#options.port(spec.httpGet.port);
    if (port === undefined) {
      throw new Error(
        `container ${container.name}: the node of the tests knows httpGet probes of named or numbered ports only`,
      );
    }
    await runProbe({ ...rest, spec, address, port }, signal, { untilGood });
  }
}
