import type { Expression } from '../model/ast.ts';
import { ACCUMULATOR, LEGACY_ACCUMULATOR } from './operators.ts';
import type { ComprehensionParts, NodeFactory, NodePosition } from './node-factory.ts';
import type { CelValue } from '../model/value.ts';

/** A call that the parser expands to other expressions. */
export interface Macro {
  readonly name: string;
  /** Whether it is called as `receiver.name(…)`. */
  readonly isMember: boolean;
  /** Number of arguments; undefined: any number. */
  readonly argumentCount: number | undefined;
  /** Returns the expansion, or undefined if the call is an ordinary call. */
  readonly expand: (expansion: MacroExpansion) => Expression | undefined;
}

/** A call with the name of a macro. */
export interface MacroCall {
  readonly name: string;
  readonly target: Expression | undefined;
  readonly args: readonly Expression[];
}

/** Creates the nodes of one call's expansion, all at the position of the call. */
export class MacroExpansion {
  readonly call: MacroCall;
  readonly #position: NodePosition;
  readonly #nodes: NodeFactory;
  readonly #report: (message: string, at: Expression, hints: readonly string[]) => Expression;

  constructor(
    call: MacroCall,
    place: NodePosition,
    nodes: NodeFactory,
    report: (message: string, at: Expression, hints: readonly string[]) => Expression,
  ) {
    this.call = call;
    this.#position = place;
    this.#nodes = nodes;
    this.#report = report;
  }

  /** The receiver of the call. Only for member macros. */
  get target(): Expression {
    return this.call.target ?? this.literal(null);
  }

  argument(index: number): Expression {
    return this.call.args[index] ?? this.literal(null);
  }

  /** The identifier that an argument consists of; reports `message` if it is anything else. */
  identifier(index: number, message: string): string | undefined {
    const argument = this.argument(index);
    if (argument.kind === 'identifier') {
      return argument.name;
    }
    this.fail(message, argument);
    return undefined;
  }

  /** The name of an iteration variable. */
  variable(index: number, message: string): string | undefined {
    const name = this.identifier(index, message);
    if (name === ACCUMULATOR || name === LEGACY_ACCUMULATOR) {
      this.fail('iteration variable overwrites accumulator variable', this.argument(index));
      return undefined;
    }
    return name;
  }

  /** Reports an error and returns an expression with which parsing continues. */
  fail(message: string, at: Expression, hints: readonly string[] = []): Expression {
    return this.#report(message, at, hints);
  }

  literal(value: CelValue): Expression {
    return this.#nodes.literal(this.#position, value);
  }

  name(name: string): Expression {
    return this.#nodes.identifier(this.#position, name);
  }

  accumulator(): Expression {
    return this.name(ACCUMULATOR);
  }

  functionCall(name: string, ...args: readonly Expression[]): Expression {
    return this.#nodes.call(this.#position, name, undefined, args);
  }

  memberCall(name: string, target: Expression, ...args: readonly Expression[]): Expression {
    return this.#nodes.call(this.#position, name, target, args);
  }

  presenceTest(operand: Expression, field: string): Expression {
    return this.#nodes.select(this.#position, operand, field, true);
  }

  list(...elements: readonly Expression[]): Expression {
    return this.#nodes.list(this.#position, elements);
  }

  emptyMap(): Expression {
    return this.#nodes.map(this.#position, []);
  }

  comprehension(parts: ComprehensionParts): Expression {
    return this.#nodes.comprehension(this.#position, parts);
  }

  copy(expression: Expression): Expression {
    return this.#nodes.copy(expression);
  }
}

/** The macros of an environment. */
export class MacroSet {
  readonly #macros: ReadonlyMap<string, readonly Macro[]>;

  constructor(macros: readonly Macro[]) {
    this.#macros = Map.groupBy(macros, (macro) => macro.name);
  }

  /** Argument counts of the macros with this name; empty if there are none. */
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
