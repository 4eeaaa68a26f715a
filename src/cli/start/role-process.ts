// A process of `start` with one role, which is started again when it ends.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../log/index.ts';
import { runInBackground } from '../../threads/index.ts';
import { CliError } from '../errors.ts';
import type { Facts, Refusal, Report } from '../supervised.ts';

/** Pauses before a start: the first one, each next one twice as long, and the longest. Milliseconds. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;
/** A process that worked so long starts again as if it had never failed. Milliseconds. */
const STEADY_MS = 30_000;
/** How long a process may take to stop: a policy server finishes its requests. Milliseconds. */
const STOP_MS = 20_000;
/** Variables that are defaults of flags in containers: `start` has flags of its own. */
const CONTAINER_VARIABLE = /^(?:KUBEWARDEN_|PORTCULLIS_METRICS_|POD_|NODE_NAME$)/;

/** What a process does: a command of this program. */
export interface Role {
  /** For its lines in the output. */
  readonly name: string;
  readonly args: readonly string[];
  /** Whether it gives way to the others; in a cluster it has a machine, or a limit, of its own. */
  readonly isBackground?: boolean;
}

export class RoleProcess {
  readonly #role: Role;
  readonly #log: Logger;
  readonly #stopping = new AbortController();
  readonly #ready = Promise.withResolvers<Facts>();
  #child: ChildProcess | undefined;
  #running: Promise<void> | undefined;
  #refusal: Refusal | undefined;
  #readyAt: number | undefined;
  #hasWorked = false;
  #failures = 0;

  constructor(role: Role, log: Logger) {
    this.#role = role;
    this.#log = log;
  }

  /** Starts it. Resolves when it works, with what it says then. @throws CliError when it refuses to start */
  start(): Promise<Facts> {
    this.#running = this.#keepRunning();
    return this.#ready.promise;
  }

  /** From now on it is not started again. */
  leave(): void {
    this.#stopping.abort();
  }

  /** Ends it. */
  async stop(): Promise<void> {
    this.leave();
    const child = this.#child;
    child?.kill('SIGTERM');
    const patience = setTimeout(() => child?.kill('SIGKILL'), STOP_MS);
    await this.#running;
    clearTimeout(patience);
  }

  async #keepRunning(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const how = await this.#run();
      if (signal.aborted) {
        return;
      }
      if (!this.#hasWorked && this.#refusal !== undefined) {
        const { message, ...options } = this.#refusal;
        this.#ready.reject(new CliError(message, options));
        return;
      }
      const pauseMs = this.#pauseMs();
      const why = this.#refusal === undefined ? {} : { error: this.#refusal.message };
      this.#log.error({ role: this.#role.name, ended: how, ...why, pauseMs }, 'a process ended, it is started again');
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Runs a process until it ends; resolves with its signal or exit code. */
  async #run(): Promise<string> {
    const { name, args, isBackground = false } = this.#role;
    this.#refusal = undefined;
    this.#readyAt = undefined;
    const [, program = ''] = process.argv;
    const child = spawn(process.execPath, [...process.execArgv, program, ...args], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: Object.fromEntries(Object.entries(process.env).filter(([variable]) => !CONTAINER_VARIABLE.test(variable))),
    });
    this.#child = child;
    if (isBackground) {
      runInBackground(child.pid);
    }
    forwardLines(child.stdout, name, process.stdout);
    forwardLines(child.stderr, name, process.stderr);
    child.on('message', (report: Report) => this.#reported(report));
    // Its last message comes before the channel closes, and may come after its exit.
    const [[code, signal]] = await Promise.all([once(child, 'exit'), once(child, 'disconnect')]);
    return typeof signal === 'string' ? signal : `exit code ${String(code)}`;
  }

  #reported({ ready, refusal }: Report): void {
    this.#refusal ??= refusal;
    if (ready !== undefined) {
      if (this.#hasWorked) {
        this.#log.warn({ role: this.#role.name }, 'the process works again');
      }
      this.#hasWorked = true;
      this.#readyAt = performance.now();
      this.#ready.resolve(ready);
    }
  }

  #pauseMs(): number {
    const wasSteady = this.#readyAt !== undefined && performance.now() - this.#readyAt > STEADY_MS;
    this.#failures = wasSteady ? 1 : this.#failures + 1;
    return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.#failures - 1));
  }
}

/** Writes each line of a process with its name in front. */
function forwardLines(from: Readable | null, name: string, to: NodeJS.WritableStream): void {
  from?.setEncoding('utf8');
  createInterface({ input: from ?? Readable.from([]) }).on('line', (line) => to.write(`${name} | ${line}\n`));
}
