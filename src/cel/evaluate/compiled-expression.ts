import { EvaluationFailure } from '../value.ts';
import type { CelResult, CelValue } from '../value.ts';
import { COST_EXCEEDED, Cancellation, Frame } from './frame.ts';
import type { Run } from './frame.ts';

/** What several evaluations may cost together: all expressions of a policy and the variables that they use. */
export class CostCounter {
  /** What was spent so far. */
  spent = 0;
  readonly limit: number;

  constructor(limit: number) {
    this.limit = limit;
  }

  /** Whether more was spent than there was. */
  get isExceeded(): boolean {
    return this.spent > this.limit;
  }
}

export interface EvaluateOptions {
  /** What the evaluation may cost. */
  readonly budget: number;
  /** Counts what it did cost, with other evaluations. */
  readonly counter?: CostCounter | undefined;
}

export interface Evaluation {
  /** The value, or why there is none: the expression failed, or was ended from outside. */
  readonly value: CelResult | Cancellation;
  /** What it cost, as API servers count it. */
  readonly cost: number;
}

/** Names and what they stand for. Only own properties count. */
export type Bindings = Readonly<Record<string, CelValue | EvaluationFailure>>;

/** An expression compiled to closures. Belongs to one thread; one evaluation may happen within another. */
export class CompiledExpression {
  readonly #run: Run;
  readonly #names: readonly string[];
  readonly #slots: readonly number[];
  readonly #slotCount: number;
  #frame: Frame | undefined;

  constructor(run: Run, variables: ReadonlyMap<string, number>, slotCount: number) {
    this.#run = run;
    this.#names = [...variables.keys()];
    this.#slots = [...variables.values()];
    this.#slotCount = slotCount;
  }

  /** Evaluates it. Never throws. */
  evaluate(bindings: Bindings, options: EvaluateOptions): Evaluation {
    // Taken while in use, so that an evaluation within this one gets another.
    const frame = this.#frame ?? new Frame(this.#slotCount);
    this.#frame = undefined;
    frame.begin(options.budget);
    this.#bind(frame, bindings);
    const value = this.#evaluate(frame);
    const { cost } = frame;
    if (options.counter !== undefined) {
      options.counter.spent += cost;
    }
    // What was bound is not kept until the next evaluation.
    for (let index = 0; index < frame.slots.length; index++) {
      frame.slots[index] = undefined;
    }
    this.#frame = frame;
    return { value, cost };
  }

  #bind(frame: Frame, bindings: Bindings): void {
    for (let index = 0; index < this.#names.length; index++) {
      const name = this.#names[index] ?? '';
      frame.slots[this.#slots[index] ?? 0] = Object.hasOwn(bindings, name)
        ? bindings[name]
        : new EvaluationFailure(`no such attribute(s): ${name}`);
    }
  }

  #evaluate(frame: Frame): CelResult | Cancellation {
    try {
      const value = this.#run(frame);
      frame.checkBudget();
      return value;
    } catch (error) {
      if (error instanceof Cancellation) {
        return error;
      }
      if (error instanceof RangeError) {
        // The host's own limits: its stack, its longest string.
        return new Cancellation(COST_EXCEEDED);
      }
      throw error;
    }
  }
}
