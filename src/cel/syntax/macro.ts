import type { Expression, MacroCall } from '../ast.ts';
import { ACCUMULATOR, LEGACY_ACCUMULATOR } from './operators.ts';
import type { ComprehensionParts, NodeFactory, Place } from './node-factory.ts';
import type { CelValue } from '../value.ts';

/** A call that is rewritten when it is parsed. */
export interface Macro {
  readonly name: string;
  /** Whether it is called as `receiver.name(…)`. */
  readonly isMember: boolean;
  /** How many arguments it takes; undefined: any number. */
  readonly argumentCount: number | undefined;
  /** Gives what the call stands for, or undefined when it is an ordinary call after all. */
  readonly expand: (expansion: MacroExpansion) => Expression | undefined;
}

/** Makes the nodes of one call's expansion: all of them stand where the call stands. */
export class MacroExpansion {
  readonly call: MacroCall;
  readonly #place: Place;
  readonly #nodes: NodeFactory;
  readonly #report: (message: string, at: Expression) => Expression;

  constructor(
    call: MacroCall,
    place: Place,
    nodes: NodeFactory,
    report: (message: string, at: Expression) => Expression,
  ) {
    this.call = call;
    this.#place = place;
    this.#nodes = nodes;
    this.#report = report;
  }

  /** What the macro is called on. Only for macros that are members. */
  get target(): Expression {
    return this.call.target ?? this.literal(null);
  }

  argument(index: number): Expression {
    return this.call.args[index] ?? this.literal(null);
  }

  /** The name that an argument consists of. */
  identifier(index: number, message: string): string | undefined {
    const argument = this.argument(index);
    if (argument.kind === 'identifier') {
      return argument.name;
    }
    this.fail(message, argument);
    return undefined;
  }

  /** The name of a variable to iterate with. */
  variable(index: number, message: string): string | undefined {
    const name = this.identifier(index, message);
    if (name === ACCUMULATOR || name === LEGACY_ACCUMULATOR) {
      this.fail('iteration variable overwrites accumulator variable', this.argument(index));
      return undefined;
    }
    return name;
  }

  /** Reports a misuse, and gives an expression to go on with. */
  fail(message: string, at: Expression): Expression {
    return this.#report(message, at);
  }

  literal(value: CelValue): Expression {
    return this.#nodes.literal(this.#place, value);
  }

  name(name: string): Expression {
    return this.#nodes.identifier(this.#place, name);
  }

  accumulator(): Expression {
    return this.name(ACCUMULATOR);
  }

  functionCall(name: string, ...args: readonly Expression[]): Expression {
    return this.#nodes.call(this.#place, name, undefined, args);
  }

  memberCall(name: string, target: Expression, ...args: readonly Expression[]): Expression {
    return this.#nodes.call(this.#place, name, target, args);
  }

  /** A call that stands for the macro as a whole, so that it is printed as it was written. */
  outermostCall(name: string, ...args: readonly Expression[]): Expression {
    return this.#nodes.call(this.#place, name, undefined, args, this.call);
  }

  presenceTest(operand: Expression, field: string): Expression {
    return this.#nodes.select(this.#place, operand, field, true);
  }

  list(...elements: readonly Expression[]): Expression {
    return this.#nodes.list(this.#place, elements);
  }

  emptyMap(): Expression {
    return this.#nodes.map(this.#place, []);
  }

  comprehension(parts: Omit<ComprehensionParts, 'macro'>): Expression {
    return this.#nodes.comprehension(this.#place, { ...parts, macro: this.call });
  }

  copy(expression: Expression): Expression {
    return this.#nodes.copy(expression);
  }
}

/** The macros that an environment has. */
export class MacroSet {
  readonly #macros: ReadonlyMap<string, readonly Macro[]>;

  constructor(macros: readonly Macro[]) {
    this.#macros = Map.groupBy(macros, (macro) => macro.name);
  }

  /** How many arguments macros of a name take; empty when there is none. */
  argumentCounts(name: string): readonly number[] {
    const counts = (this.#macros.get(name) ?? []).map((macro) => macro.argumentCount ?? 0);
    return [...new Set(counts)].toSorted((a, b) => a - b);
  }

  find(name: string, isMember: boolean, argumentCount: number): Macro | undefined {
    const candidates = this.#macros.get(name);
    if (candidates === undefined) {
      return undefined;
    }
    for (const macro of candidates) {
      if (macro.isMember === isMember && (macro.argumentCount ?? argumentCount) === argumentCount) {
        return macro;
      }
    }
    return undefined;
  }
}
