// Values that parts of an expression have for every object of one kind.
import { type Expression, expressionsOf } from '../../cel/index.ts';

/** A value, if it is known. */
export type Known = string | boolean | readonly Known[] | undefined;

/** Values by what reads them, such as `object.kind`. */
export type KnownReads = ReadonlyMap<string, Known>;

/** Maximum number of evaluated nodes of one expression. One that compares the kind with a list of kinds takes a hundred. */
const MAX_STEPS = 10_000;

type Variables = ReadonlyMap<string, Known>;
const NO_VARIABLES: Variables = new Map();

/** Evaluates what depends on known values only: comparisons, lists, logic, and macros over known lists. */
export class KnownValues {
  readonly #reads: KnownReads;
  readonly #absent: ReadonlySet<number>;
  /** Variables of macros, which may have the names of others. */
  readonly #locals: ReadonlySet<string>;
  /** Values by node, outside of macros. */
  readonly #values = new Map<number, Known>();
  #steps = 0;

  /** @param absent ids of nodes that test for a field which objects of the kind do not have */
  constructor(root: Expression, reads: KnownReads, absent: ReadonlySet<number> = new Set()) {
    this.#reads = reads;
    this.#absent = absent;
    this.#locals = new Set(
      [...expressionsOf(root)].flatMap((node) => (node.kind === 'comprehension' ? [node.variable] : [])),
    );
  }

  of(node: Expression): Known {
    return this.#value(node, NO_VARIABLES);
  }

  #value(node: Expression, variables: Variables): Known {
    this.#steps += 1;
    if (this.#steps > MAX_STEPS) {
      return undefined;
    }
    if (variables !== NO_VARIABLES) {
      return this.#evaluated(node, variables);
    }
    if (!this.#values.has(node.id)) {
      this.#values.set(node.id, this.#evaluated(node, variables));
    }
    return this.#values.get(node.id);
  }

  #evaluated(node: Expression, variables: Variables): Known {
    switch (node.kind) {
      case 'literal':
        return typeof node.value === 'string' || typeof node.value === 'boolean' ? node.value : undefined;
      case 'identifier':
        return variables.get(node.name);
      case 'list':
        return node.optionalIndexes.size > 0
          ? undefined
          : node.elements.map((element) => this.#value(element, variables));
      case 'select':
        return this.#selected(node);
      case 'call':
        return this.#called(node.function, node.args, variables);
      case 'comprehension':
        return this.#folded(node, variables);
      default:
        return undefined;
    }
  }

  #selected(node: Extract<Expression, { kind: 'select' }>): Known {
    if (node.isTest) {
      return this.#absent.has(node.id) ? false : undefined;
    }
    const path = pathOf(node);
    return path === undefined || this.#locals.has(path.slice(0, path.indexOf('.'))) ? undefined : this.#reads.get(path);
  }

  #called(name: string, args: readonly Expression[], variables: Variables): Known {
    const [first, second, third] = args;
    const value = (arg: Expression | undefined): Known => arg && this.#value(arg, variables);
    switch (name) {
      case '_==_':
      case '_!=_': {
        const [left, right] = [value(first), value(second)];
        return isScalar(left) && isScalar(right) ? (left === right) === (name === '_==_') : undefined;
      }
      case '@in': {
        const [left, list] = [value(first), value(second)];
        return isScalar(left) && Array.isArray(list) && list.every(isScalar) ? list.includes(left) : undefined;
      }
      case '!_':
        return negated(value(first));
      case '@not_strictly_false':
        return value(first) !== false;
      case '_&&_':
      case '_||_': {
        const deciding = name === '_||_';
        const values = args.map(value);
        return values.includes(deciding) ? deciding : values.every((one) => one === !deciding) ? !deciding : undefined;
      }
      case '_?_:_': {
        const condition = value(first);
        return typeof condition === 'boolean' ? value(condition ? second : third) : undefined;
      }
      default:
        return undefined;
    }
  }

  #folded(node: Extract<Expression, { kind: 'comprehension' }>, variables: Variables): Known {
    const range = this.#value(node.range, variables);
    if (!Array.isArray(range) || node.secondVariable !== undefined) {
      return undefined;
    }
    let result = this.#value(node.initial, variables);
    for (const element of range as readonly Known[]) {
      const inner = new Map([...variables, [node.variable, element], [node.accumulator, result]]);
      result = this.#value(node.step, inner);
    }
    return this.#value(node.result, new Map([...variables, [node.accumulator, result]]));
  }
}

function isScalar(value: Known): value is string | boolean {
  return typeof value === 'string' || typeof value === 'boolean';
}

function negated(value: Known): Known {
  return typeof value === 'boolean' ? !value : undefined;
}

/** `object.metadata.name` for selections from an identifier. */
function pathOf(node: Expression): string | undefined {
  const fields: string[] = [];
  let current = node;
  while (current.kind === 'select' && !current.isTest) {
    fields.push(current.field);
    current = current.operand;
  }
  return current.kind === 'identifier' ? [current.name, ...fields.toReversed()].join('.') : undefined;
}
