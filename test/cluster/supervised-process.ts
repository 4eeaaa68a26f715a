// A child process that cannot outlive the process that started it, even when that one is killed.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';

/**
 * The supervisor, a shell: starts the program ($3…) and ends it when its own stdin closes, which the kernel does when the parent
 * ends for whatever reason. $1 is a folder to delete after that (not when the program ends by itself: its log is there), $2 the
 * seconds that the program has for its end. It leads a process group of its own, so that a program that does not heed SIGTERM is
 * killed with its group, and a Ctrl-C on a terminal reaches only the parent, who stops things in order.
 */
const supervisor = `
scratch=$1
grace=$2
shift 2
exec 3<&0
"$@" </dev/null 3<&- &
program=$!
(
  read -r _ <&3
  [ -z "$scratch" ] || : >"$scratch/stopping"
  kill -TERM $program
  sleep $grace
  kill -KILL $program
) 2>/dev/null &
wait $program
status=$?
trap '' TERM
kill -TERM 0
if [ -n "$scratch" ] && [ -e "$scratch/stopping" ]; then
  rm -rf "$scratch"
fi
exit $status
`;

/** What a program that is stopped has until it is killed, unless its options say otherwise. Seconds. */
const GRACE_SECONDS = 5;

/** How to start a {@link SupervisedProcess}. */
export interface ProcessOptions {
  /** Path of the program. */
  readonly program: string;
  readonly args: readonly string[];
  /** File that receives its stdout and stderr. */
  readonly logFile: string;
  /** Folder to delete when the program has ended because its parent did. Default: none. */
  readonly scratch?: string;
  /** Its whole environment. Default: that of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Its working folder. Default: that of this process. */
  readonly cwd?: string;
  /** Time between SIGTERM and SIGKILL when it is stopped. Default: 5. */
  readonly graceSeconds?: number;
}

/** A running program with a supervisor; neither keeps Node's event loop alive. */
export class SupervisedProcess {
  /** How it was started. */
  readonly options: ProcessOptions;
  readonly #child: ChildProcess;
  readonly #logFile: string;
  /** Resolves when the program and its supervisor have ended. */
  readonly ended: Promise<void>;
  #exit: string | undefined;
  #exitCode: number | undefined;

  /** Starts the program at once; that it could not be started shows as {@link exit}. */
  constructor(options: ProcessOptions) {
    this.options = options;
    this.#logFile = options.logFile;
    const log = openSync(options.logFile, 'a', 0o600);
    const { scratch = '', graceSeconds = GRACE_SECONDS, env, cwd } = options;
    const args = ['-c', supervisor, 'supervisor', scratch, String(graceSeconds), options.program, ...options.args];
    this.#child = spawn('/bin/sh', args, {
      stdio: ['pipe', log, log],
      detached: true,
      ...(env === undefined ? {} : { env: { ...env } }),
      ...(cwd === undefined ? {} : { cwd }),
    });
    closeSync(log);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    const end = (how: string): void => {
      this.#exit ??= how;
      resolve();
    };
    this.#child.once('error', (error) => end(`could not be started: ${error.message}`));
    this.#child.once('exit', (code, signal) => {
      this.#exitCode = code ?? undefined;
      end(signal === null ? `ended with exit code ${code}` : `ended by ${signal}`);
    });
    // The pipe to a supervisor that has ended is closed on its side first, which is no error here.
    this.#child.stdin?.on('error', () => undefined);
    this.#child.unref();
    if (this.#child.stdin !== null && 'unref' in this.#child.stdin && typeof this.#child.stdin.unref === 'function') {
      this.#child.stdin.unref();
    }
  }

  /** How it ended, as the end of a sentence, or undefined while it runs. */
  get exit(): string | undefined {
    return this.#exit;
  }

  /** As a shell tells it: more than 128 when a signal ended it; undefined while it runs, and when its supervisor was killed. */
  get exitCode(): number | undefined {
    return this.#exitCode;
  }

  /** The last lines of its log, without the newline at the end. */
  logTail(lines = 20): string {
    return readFileSync(this.#logFile, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
  }

  /** Kills the program and its supervisor at once, as a lost machine would, and waits until they are gone. */
  async kill(): Promise<void> {
    if (this.#exit === undefined && this.#child.pid !== undefined) {
      this.#child.ref();
      // The supervisor leads the group that both are in.
      process.kill(-this.#child.pid, 'SIGKILL');
    }
    await this.ended;
  }

  /** Stops the program where it is, as a machine that hangs would, until it is resumed. It cannot be ended meanwhile. */
  suspend(): void {
    this.#signalGroup('SIGSTOP');
  }

  resume(): void {
    this.#signalGroup('SIGCONT');
  }

  #signalGroup(signal: NodeJS.Signals): void {
    if (this.#exit === undefined && this.#child.pid !== undefined) {
      process.kill(-this.#child.pid, signal);
    }
  }

  /** Ends the program (SIGTERM, SIGKILL when its time is over) and waits until it and its supervisor have. Idempotent. */
  async stop(): Promise<void> {
    this.#child.ref();
    this.#child.stdin?.end();
    await this.ended;
  }
}
