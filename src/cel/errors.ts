/** Every way an expression can fail. */
export type CelErrorCode =
  /** The text is not an expression, is too long or nested too deep. Has an issue for every mistake found. */
  | 'syntax-invalid'
  /** The expression parses, but names something undeclared or applies something to a wrong type. Has all issues. */
  | 'check-failed'
  /** The environment itself is wrong: a name declared twice, a type that does not exist, a version not supported. */
  | 'environment-invalid'
  /** The evaluation ended in an error. */
  | 'evaluation-failed'
  /** The evaluation cost more than its budget. */
  | 'cost-exceeded';

/** One mistake in an expression. */
export interface CelIssue {
  /** What is wrong, in the words of API servers. */
  readonly message: string;
  /** What might be meant or what would fit; empty when there is nothing to say. */
  readonly hints: readonly string[];
  /** The node that is at fault, if one was made. */
  readonly expressionId: number | undefined;
  /** Where, as offsets of UTF-16 units. */
  readonly start: number;
  readonly end: number;
  /** Where, counted from 1; columns count code points. */
  readonly line: number;
  readonly column: number;
  /** The line of the source with a caret below the place, as API servers print it; empty when the line is too long. */
  readonly excerpt: string;
}

export interface CelErrorOptions {
  readonly issues?: readonly CelIssue[];
  readonly cause?: unknown;
}

/** A failure to compile or to evaluate an expression. */
export class CelError extends Error {
  readonly code: CelErrorCode;
  /** Every mistake found, in the order of the source. Empty for failures that have no place. */
  readonly issues: readonly CelIssue[];

  constructor(code: CelErrorCode, message: string, options: CelErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = `CelError [${code}]`;
    this.code = code;
    this.issues = options.issues ?? [];
  }

  /** An error made of the mistakes found in a source. */
  static ofIssues(code: CelErrorCode, issues: readonly CelIssue[]): CelError {
    const sorted = issues.toSorted((a, b) => a.line - b.line || a.column - b.column);
    return new CelError(code, sorted.map(describeIssue).join('\n'), { issues: sorted });
  }
}

/** An issue exactly as API servers print it: without the hints. */
export function formatIssue(issue: CelIssue): string {
  return `ERROR: <input>:${issue.line}:${issue.column}: ${issue.message}${issue.excerpt}`;
}

/** An issue with its hints below. */
export function describeIssue(issue: CelIssue): string {
  return [formatIssue(issue), ...issue.hints.map((hint) => ` = ${hint}`)].join('\n');
}
