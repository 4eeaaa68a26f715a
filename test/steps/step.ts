// Steps of users: commands, with what is expected of them.
import assert from 'node:assert/strict';

/** A command of a user, and what is expected of it. */
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
export interface Chapter<S extends Step = Step> {
  readonly title: string;
  readonly steps: readonly S[];
}

/** How commands ended. Standard error is part of the output. */
export interface Ended {
  readonly code: number | null;
  readonly output: string;
}

/** Fails unless commands ended as the step expects. */
export function assertStep({ code = 0, prints, omits }: Omit<Step, 'shows' | 'sh'>, ended: Ended): void {
  assert.equal(ended.code, code, ended.output);
  for (const pattern of prints) {
    assert.match(ended.output, pattern);
  }
  if (omits !== undefined) {
    assert.doesNotMatch(ended.output, omits);
  }
}
