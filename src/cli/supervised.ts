// A process under the supervisor of `start`: what it says over the channel between both, and how it ends with it.

/** How long a process may take to stop after its supervisor is gone. Milliseconds. */
const ORPHAN_MS = 5_000;

/** What a process says when it works, such as what it listens on. */
export type Facts = Readonly<Record<string, string>>;

/** Why a process refused to start: the parts of a CliError. */
export interface Refusal {
  readonly message: string;
  readonly hint?: string;
  readonly exitCode: number;
}

/** What a process tells its supervisor. */
export interface Report {
  /** It works. */
  readonly ready?: Facts;
  /** It ends, because it cannot start. */
  readonly refusal?: Refusal;
}

/** Whether a supervisor started this process. */
export function isSupervised(): boolean {
  return process.send !== undefined;
}

/** Tells the supervisor, if there is one. */
export function report(report: Report): void {
  // The supervisor may be gone.
  process.send?.(report, undefined, undefined, () => undefined);
}

/** Calls back when the supervisor is gone, however it ended; then ends the process if that takes too long. */
export function whenOrphaned(callback: () => void): void {
  const orphaned = (): void => {
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), ORPHAN_MS).unref();
    callback();
  };
  if (!process.connected) {
    orphaned();
    return;
  }
  process.once('disconnect', orphaned);
  // A listener keeps the process alive.
  process.channel?.unref();
}
