import { EvaluationFailure } from '../model/value.ts';
import type { CelResult, CelValue } from '../model/value.ts';
import { COST_EXCEEDED, Cancellation, Frame } from './frame.ts';
import type { Run } from './frame.ts';

/** A cost budget shared by several evaluations: all expressions of a policy and its variables. */
export class CostCounter {
  /** Cost so far. */
  spent = 0;
  readonly limit: number;

  constructor(limit: number) {
    this.limit = limit;
  }
}

export interface CelEvaluateOptions {
  /** Cost limit of this evaluation. */
  readonly budget: number;
  /** Adds this evaluation's cost to a shared budget. */
  readonly counter?: CostCounter | undefined;
}

export interface CelEvaluation {
  /** The value, a failure of the expression, or a cancellation. */
  readonly value: CelResult | Cancellation;
  /** Cost as API servers count it. */
  readonly cost: number;
}

/** Values of variables by name. Only own properties count. */
export type Bindings = Readonly<Record<string, CelValue | EvaluationFailure>>;

/** An expression compiled to closures. It belongs to one thread; evaluations can be nested. */
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

  /** Evaluates the expression. Never throws. */
  evaluate(bindings: Bindings, options: CelEvaluateOptions): CelEvaluation {
    // Removed while in use, so that a nested evaluation creates its own frame.
    const frame = this.#frame ?? new Frame(this.#slotCount);
    this.#frame = undefined;
    frame.begin(options.budget);
    this.#bind(frame, bindings);
    const value = this.#evaluate(frame);
    const { cost } = frame;
    if (options.counter !== undefined) {
      options.counter.spent += cost;
    }
    // Releases the bound values before the next evaluation.
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
        // A limit of V8: the stack, or the maximum string length.
        return new Cancellation(COST_EXCEEDED);
      }
      throw error;
    }
  }
}
