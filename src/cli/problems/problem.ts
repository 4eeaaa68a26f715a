/** Something that a reader of files should change, for the formats of CI systems. */
export interface Problem {
  /** The id of the kind of problem: `EndPort`. */
  readonly rule: string;
  readonly level: 'error' | 'warning';
  readonly message: string;
  /** The object that has it: `shop/web`. */
  readonly subject: string;
  /** Undefined when the object is in no file. */
  readonly place?: ProblemPlace;
}

export interface ProblemPlace {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  /** From 1, in UTF-16 units. Undefined: the whole line. */
  readonly column?: number;
}

/** What the problems of one id have in common. */
export interface ProblemRule {
  readonly id: string;
  readonly description: string;
}
