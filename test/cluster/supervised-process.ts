// A child process that ends when its parent ends, even if the parent is killed.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';

/**
 * The supervisor is a shell script. It starts the program ($3…), and ends it when stdin is closed, which the kernel does when the
 * parent ends. $2 is the grace period in seconds. $1 is a folder to delete then; it is kept if the program ends by itself, because
 * it has the log. The supervisor leads a process group, so that it can kill a program that ignores SIGTERM, and so that Ctrl-C
 * on a terminal reaches only the parent, which stops its programs in order.
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

/** Default grace period between SIGTERM and SIGKILL. Seconds. */
const GRACE_SECONDS = 5;

/** Options of a {@link SupervisedProcess}. */
export interface ProcessOptions {
  /** The path of the program. */
  readonly program: string;
  readonly args: readonly string[];
  /** The file for its stdout and stderr. */
  readonly logFile: string;
  /** A folder to delete when the program ends because its parent has ended. Default: none. */
  readonly scratch?: string;
  /** All environment variables. Default: those of this process. */
  readonly env?: Readonly<NodeJS.ProcessEnv>;
  /** The working folder. Default: that of this process. */
  readonly cwd?: string;
  /** Grace period between SIGTERM and SIGKILL. Default: 5. */
  readonly graceSeconds?: number;
}

/** A program with its supervisor. Neither keeps the event loop of Node.js alive. */
export class SupervisedProcess {
  /** How it was started. */
  readonly options: ProcessOptions;
  readonly #child: ChildProcess;
  readonly #logFile: string;
  /** Resolves when the program and its supervisor have ended. */
  readonly ended: Promise<void>;
  #exit: string | undefined;
  #exitCode: number | undefined;

  /** Starts the program. If it cannot be started, {@link exit} says so. */
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
    // A supervisor that ends closes the pipe, which is not an error here.
    this.#child.stdin?.on('error', () => undefined);
    this.#child.unref();
    if (this.#child.stdin !== null && 'unref' in this.#child.stdin && typeof this.#child.stdin.unref === 'function') {
      this.#child.stdin.unref();
    }
  }

  /** How the program ended, as the end of a sentence. Undefined while it runs. */
  get exit(): string | undefined {
    return this.#exit;
  }

  /** The exit code; 128 plus the number of a signal. Undefined while the program runs, and when its supervisor was killed. */
  get exitCode(): number | undefined {
    return this.#exitCode;
  }

  /** The last lines of its log. */
  logTail(lines = 20): string {
    return readFileSync(this.#logFile, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
  }

  /** Kills the program and its supervisor, as if the machine was lost, and waits until they have ended. */
  async kill(): Promise<void> {
    if (this.#exit === undefined && this.#child.pid !== undefined) {
      this.#child.ref();
      // The process group of the supervisor has both.
      process.kill(-this.#child.pid, 'SIGKILL');
    }
    await this.ended;
  }

  /** Suspends the program, as if the machine hung, until it is resumed. Meanwhile it cannot be stopped. */
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

  /** Ends the program with SIGTERM, and with SIGKILL after the grace period. Waits until it and its supervisor have ended. Idempotent. */
  async stop(): Promise<void> {
    this.#child.ref();
    this.#child.stdin?.end();
    await this.ended;
  }
}
