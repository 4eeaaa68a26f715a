import type { CelResult, WorkMeter } from '../value.ts';

/**
 * Units of work that one evaluation may do, whatever its budget: for what costs little and works much (joining lists of
 * unknown type costs 1 however long they are). A unit takes some 10 ns, so that this is about a tenth of a second, which
 * is what a whole budget of an API server stands for.
 */
export const MAX_WORK = 10_000_000;

/** Elements of a list, or keys of a map, that are copied in a unit of work. */
export const ELEMENTS_PER_WORK = 2;

/** UTF-16 units of the longest string that an expression may build: five times the largest request. */
export const MAX_TEXT_LENGTH = 16 * 1024 * 1024;

/** Ends an evaluation from within. Not an Error: nobody wants to know the stack. */
export class Cancellation {
  readonly code = 'cost-exceeded';
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}

/** What an evaluation that cost too much ends with, in the words of API servers. */
export const COST_EXCEEDED = 'operation cancelled: actual cost limit exceeded';

/** The state of one evaluation: what names stand for, and what it has cost. */
export class Frame implements WorkMeter {
  /** What variables stand for, those of macros included; undefined: not evaluated yet. */
  readonly slots: (CelResult | undefined)[];
  /** What was evaluated so far, as API servers count it. Added to directly by what is evaluated. */
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

  /** Counts work, before it is done where it may be much. @throws Cancellation */
  work(units: number): void {
    this.worked += units;
    if (this.worked > MAX_WORK) {
      throw new Cancellation('operation cancelled: work limit exceeded');
    }
  }

  /** @throws Cancellation when more was spent than there is. */
  checkBudget(): void {
    if (this.cost > this.budget) {
      throw new Cancellation(COST_EXCEEDED);
    }
  }
}

/** A compiled expression: closures all the way down. */
export type Run = (frame: Frame) => CelResult;
