/** Error codes of expressions. */
export type CelErrorCode =
  /** Invalid syntax, or an expression that is too long or nested too deeply. `issues` has all errors. */
  | 'syntax-invalid'
  /** An undeclared name, or an operand of the wrong type. `issues` has all errors. */
  | 'check-failed'
  /** An invalid environment: a name declared twice, an unknown type, an unsupported version. */
  | 'environment-invalid'
  /** The evaluation failed. */
  | 'evaluation-failed'
  /** The evaluation exceeded its cost budget. */
  | 'cost-exceeded';

/** One error in an expression. */
export interface CelIssue {
  /** The error message, worded as in API servers. */
  readonly message: string;
  /** Suggestions; may be empty. */
  readonly hints: readonly string[];
  /** The node with the error, if there is one. */
  readonly expressionId: number | undefined;
  /** Source range as UTF-16 offsets. */
  readonly start: number;
  readonly end: number;
  /** Line and column, from 1; columns count code points. */
  readonly line: number;
  readonly column: number;
  /** The source line with a caret below the position, as API servers print it; empty if the line is too long. */
  readonly excerpt: string;
}

interface CelErrorOptions {
  readonly issues?: readonly CelIssue[];
  readonly cause?: unknown;
}

/** A failure to compile or evaluate an expression. */
export class CelError extends Error {
  readonly code: CelErrorCode;
  /** All errors in source order. Empty if the failure has no position. */
  readonly issues: readonly CelIssue[];

  constructor(code: CelErrorCode, message: string, options: CelErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = `CelError [${code}]`;
    this.code = code;
    this.issues = options.issues ?? [];
  }

  /** An error with the issues found in a source. */
  static ofIssues(code: CelErrorCode, issues: readonly CelIssue[]): CelError {
    const sorted = issues.toSorted((a, b) => a.line - b.line || a.column - b.column);
    return new CelError(code, sorted.map(describeIssue).join('\n'), { issues: sorted });
  }
}

/** An issue exactly as API servers print it, without hints. */
export function formatIssue(issue: CelIssue): string {
  return `ERROR: <input>:${issue.line}:${issue.column}: ${issue.message}${issue.excerpt}`;
}

/** An issue followed by its hints. */
export function describeIssue(issue: CelIssue): string {
  return [formatIssue(issue), ...issue.hints.map((hint) => ` = ${hint}`)].join('\n');
}
