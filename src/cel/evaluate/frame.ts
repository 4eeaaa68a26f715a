import type { CelResult, WorkMeter } from '../value.ts';

/**
 * Units of work that one evaluation may do, whatever its budget: for what costs little and works much (joining lists of
 * unknown type costs 1 however long they are). A unit takes some 10 ns, so that this is about a tenth of a second, which
 * is what a whole budget of an API server stands for.
 */
export const MAX_WORK = 10_000_000;

/** Elements of a list, or keys of a map, that are copied in a unit of work. */
export const ELEMENTS_PER_WORK = 2;

/** Units of work between looks at the limits. */
const LOOK_INTERVAL = 1024;
/** Fewer where somebody may interrupt: a unit that stands for a round of a loop takes as long as what is written in it. */
const INTERRUPT_INTERVAL = 64;

/** UTF-16 units of the longest string that an expression may build: five times the largest request. */
export const MAX_TEXT_LENGTH = 16 * 1024 * 1024;

/** Ends an evaluation from within. Not an Error: nobody wants to know the stack. */
export class Cancellation {
  readonly code: 'cost-exceeded' | 'interrupted';
  readonly message: string;

  constructor(code: 'cost-exceeded' | 'interrupted', message: string) {
    this.code = code;
    this.message = message;
  }
}

/** What an evaluation that cost too much ends with, in the words of API servers. */
export const COST_EXCEEDED = 'operation cancelled: actual cost limit exceeded';

/**
 * Whether the evaluation is to end: asked from time to time, with the units of work that it has done or is about to do (see
 * {@link Frame.work}).
 */
export type Interrupt = (work: number) => boolean;

/** Of evaluations that are given none of their own. */
let shared: Interrupt | undefined;

/**
 * Does something, and interrupts every evaluation within it that was given no interrupt of its own. For whoever has so much time
 * for all of a review, whatever is evaluated on its behalf: match conditions, policies, their variables and messages.
 */
export function withInterrupt<T>(interrupt: Interrupt, work: () => T): T {
  const before = shared;
  shared = interrupt;
  try {
    return work();
  } finally {
    shared = before;
  }
}

/** The state of one evaluation: what names stand for, and what it has cost. */
export class Frame implements WorkMeter {
  /** What variables stand for, those of macros included; undefined: not evaluated yet. */
  readonly slots: (CelResult | undefined)[];
  /** What was evaluated so far, as API servers count it. Added to directly by what is evaluated. */
  cost = 0;
  budget = 0;
  worked = 0;
  /** Work at which to look at the limits again. */
  #nextLook = INTERRUPT_INTERVAL;
  #interrupt: Interrupt | undefined;

  constructor(slotCount: number) {
    this.slots = Array.from({ length: slotCount }, () => undefined);
  }

  begin(budget: number, interrupt: Interrupt | undefined): void {
    this.cost = 0;
    this.budget = budget;
    this.worked = 0;
    this.#interrupt = interrupt ?? shared;
    // At once where somebody may have said so before, as for the expression in front of this one.
    this.#nextLook = this.#interrupt === undefined ? LOOK_INTERVAL : 0;
  }

  /** The expression is evaluated. @throws Cancellation when it was interrupted, or should have been. */
  end(): void {
    this.checkBudget();
    if (this.#interrupt !== undefined) {
      this.#look();
    }
  }

  /** Counts work, before it is done where it may be much. @throws Cancellation */
  work(units: number): void {
    this.worked += units;
    if (this.worked >= this.#nextLook) {
      this.#look();
    }
  }

  #look(): void {
    if (this.worked > MAX_WORK) {
      throw new Cancellation('cost-exceeded', 'operation cancelled: work limit exceeded');
    }
    this.#nextLook = this.worked + (this.#interrupt === undefined ? LOOK_INTERVAL : INTERRUPT_INTERVAL);
    if (this.#interrupt?.(this.worked) === true) {
      throw new Cancellation('interrupted', 'operation interrupted');
    }
  }

  /** @throws Cancellation when more was spent than there is. */
  checkBudget(): void {
    if (this.cost > this.budget) {
      throw new Cancellation('cost-exceeded', COST_EXCEEDED);
    }
  }
}

/** A compiled expression: closures all the way down. */
export type Run = (frame: Frame) => CelResult;
