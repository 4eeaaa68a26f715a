import type { CelResult, WorkMeter } from '../model/value.ts';

/**
 * Maximum work of one evaluation, independent of its budget: some operations cost little and work much (joining lists
 * of unknown type costs 1, whatever their length). A unit takes about 10 ns, so this is about a tenth of a second, as
 * long as a whole budget takes in an API server.
 */
export const MAX_WORK = 10_000_000;

/** List elements or map keys copied per unit of work. */
export const ELEMENTS_PER_WORK = 2;

/** Maximum string length in UTF-16 units that an expression can build: five times the largest request. */
export const MAX_TEXT_LENGTH = 16 * 1024 * 1024;

/** Thrown to abort an evaluation. Not an Error, to avoid collecting the stack. */
export class Cancellation {
  readonly code = 'cost-exceeded';
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}

/** Message of an evaluation that exceeded its budget, as in API servers. */
export const COST_EXCEEDED = 'operation cancelled: actual cost limit exceeded';

/** The state of one evaluation: values of variables, cost and work. */
export class Frame implements WorkMeter {
  /** Values of variables, including those of macros; undefined: not evaluated yet. */
  readonly slots: (CelResult | undefined)[];
  /** Cost so far, as API servers count it. Closures add to it directly. */
  cost = 0;
  budget = 0;
  worked = 0;

  constructor(slotCount: number) {
    this.slots = Array.from({ length: slotCount }, () => undefined);
  }

  begin(budget: number): void {
    this.cost = 0;
    this.budget = budget;
    this.worked = 0;
  }

  /** Counts work; called before the work if it may be large. @throws Cancellation */
  work(units: number): void {
    this.worked += units;
    if (this.worked > MAX_WORK) {
      throw new Cancellation('operation cancelled: work limit exceeded');
    }
  }

  /** @throws Cancellation if the cost exceeds the budget */
  checkBudget(): void {
    if (this.cost > this.budget) {
      throw new Cancellation(COST_EXCEEDED);
    }
  }
}

/** A compiled expression as a closure. */
export type Run = (frame: Frame) => CelResult;
