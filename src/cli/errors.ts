// Errors of the command line, and the exit codes that every command keeps to. Docs: docs/cli.md.

/** Exit codes. */
export const EXIT = {
  /** Done; for `run`, a verdict was printed, whatever it is. */
  ok: 0,
  /** It could not be done, `--fail-on deny` met a denial, or a case of `test` failed. */
  failed: 1,
  /** The command line is not right; for `test`: tests cannot be read, or there are none. */
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

/** A command line that is not right. */
export function usageError(message: string, hint?: string): CliError {
  return new CliError(message, { exitCode: EXIT.usage, ...(hint === undefined ? {} : { hint }) });
}

/** The text of whatever was thrown. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What a failed operation on a file means to people. */
export function fileProblem(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  switch (code) {
    case 'ENOENT':
      return 'there is no such file or folder';
    case 'EISDIR':
      return 'it is a folder';
    case 'ENOTDIR':
      return 'a part of the path is not a folder';
    case 'EACCES':
    case 'EPERM':
      return 'permission denied';
    case 'EROFS':
      return 'the file system is read-only';
    case 'ENOSPC':
      return 'no space is left';
    default:
      return errorText(error);
  }
}
