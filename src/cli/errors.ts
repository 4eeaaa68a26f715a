// Errors and exit codes of all commands; see docs/cli.md.

export const EXIT = {
  /** Success; for `run`: a verdict was printed, allowed or denied. */
  ok: 0,
  /** Failure; also a denial with `--fail-on deny`, or a failed case of `test`. */
  failed: 1,
  /** Wrong usage; for `test`: tests cannot be read, or there are none. */
  usage: 2,
  /** For `audit`: something could not be read or judged, whatever else was found. */
  incomplete: 3,
} as const;

/** An error for the user: what happened, and what to do. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly code = 'cli';
  readonly exitCode: number;
  /** What to do, as a sentence or a command. */
  readonly hint: string | undefined;

  constructor(message: string, options: { exitCode?: number; hint?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.exitCode = options.exitCode ?? EXIT.failed;
    this.hint = options.hint;
  }
}

/** The error for wrong arguments or flags. */
export function usageError(message: string, hint?: string): CliError {
  return new CliError(message, { exitCode: EXIT.usage, ...(hint === undefined ? {} : { hint }) });
}
