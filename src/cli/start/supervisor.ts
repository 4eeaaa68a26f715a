// The processes of `start`, which end with it.
import type { Logger } from '../../log/index.ts';
import { CliError } from '../errors.ts';
import type { Facts } from '../supervised.ts';
import { type Role, RoleProcess } from './role-process.ts';

export class Supervisor implements AsyncDisposable {
  readonly #log: Logger;
  readonly #processes: RoleProcess[] = [];
  readonly #stopping = new AbortController();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Aborted when the processes are ended. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Starts a process, and starts it again when it ends. Resolves when it works. @throws CliError when it refuses to start */
  async start(role: Role): Promise<Facts> {
    if (this.signal.aborted) {
      throw new CliError(`${role.name} is not started: portcullis start stops`);
    }
    const started = new RoleProcess(role, this.#log);
    this.#processes.push(started);
    return await started.start();
  }

  /** Ends all processes, the first one last: the others use it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    // A signal to all processes may end some before their turn.
    this.#processes.forEach((one) => one.leave());
    const [first, ...others] = this.#processes;
    await Promise.all(others.map((one) => one.stop()));
    await first?.stop();
  }
}
