// Errors and exit codes of all commands; see docs/cli.md.
import { errorText } from '../values/index.ts';

export const EXIT = {
  /** Success; for `run`: a verdict was printed, allowed or denied. */
  ok: 0,
  /** Failure; also a denial with `--fail-on deny`, or a failed case of `test`. */
  failed: 1,
  /** Wrong usage; for `test`: tests cannot be read, or there are none. */
  usage: 2,
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

/** The cause of a failed file operation, in words. */
export function fileProblem(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  switch (code) {
    case 'ENOENT':
      return 'there is no such file or folder';
    case 'EISDIR':
      return 'it is a folder';
    case 'ENOTDIR':
      return 'part of the path is not a folder';
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
