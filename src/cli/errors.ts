// Errors of the command line, and the exit codes that every command keeps to. Docs: docs/cli.md.

/** Exit codes. */
export const EXIT = {
  /** Done; for `run`, a verdict was printed, whatever it is. */
  ok: 0,
  /** It could not be done, or `--fail-on deny` met a denial. */
  failed: 1,
  /** The command line is not right. */
  usage: 2,
} as const;

/** An error to be shown to the user: what happened, and what to do. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly code = 'cli';
  readonly exitCode: number;
  /** What to do about it, as a sentence or a command. */
  readonly hint: string | undefined;

  constructor(message: string, options: { exitCode?: number; hint?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.exitCode = options.exitCode ?? EXIT.failed;
    this.hint = options.hint;
  }
}
