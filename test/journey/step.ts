/** A command of a user in the folder of policies, and what is expected of it. */
export interface Step {
  /** What it shows. */
  readonly shows: string;
  /** Commands for `sh`. */
  readonly sh: string;
  /** Exit code; default: 0. */
  readonly code?: number;
  /** Patterns of its output, standard error included. */
  readonly prints: readonly RegExp[];
  /** A pattern that its output does not have. */
  readonly omits?: RegExp;
}

/** Steps that follow each other. */
export interface Chapter {
  readonly title: string;
  readonly steps: readonly Step[];
}
