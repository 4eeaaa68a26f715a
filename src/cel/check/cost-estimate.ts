import type { CallExpression, ComprehensionExpression, Expression, SelectExpression } from '../model/ast.ts';
import { codePointCount } from '../model/code-point-count.ts';
import { CALL_COST } from '../model/library.ts';
import type { CallEstimate, CallSizes, Overload, Range } from '../model/library.ts';
import { addRanges, exactly, multiplyRanges, uniteRanges, UNKNOWN_RANGE } from '../model/range.ts';
import { ACCUMULATOR, Operator } from '../syntax/index.ts';
import { DYN } from '../model/type.ts';
import type { CelType } from '../model/type.ts';
import type { CelValue } from '../model/value.ts';
import type { CheckedExpression } from './checker.ts';
import { estimateKubernetesEquality } from './equality-estimate.ts';
import { optionalValueType } from './unification.ts';

/**
 * Bounds of the size of the value at a path: a variable, then field names, `@items` (elements of a list), `@keys` and
 * `@values` (of a map). Undefined if unknown.
 */
export type SizeEstimator = (path: readonly string[]) => Range | undefined;

interface EstimateOptions {
  readonly sizes?: SizeEstimator | undefined;
  /** Cost of `has(…)`: 0 in API servers. */
  readonly presenceTestCost: number;
}

/** Bounds of the run-time cost of an expression, as API servers estimate it (cel-go, `checker/cost.go`). */
export function estimateCost(checked: CheckedExpression, options: EstimateOptions): Range {
  return new CostEstimator(checked, options).costOf(checked.expression);
}

const ZERO = exactly(0);
const ONE = exactly(1);
const LIST_COST = exactly(10);
const MAP_COST = exactly(30);
const STRUCT_COST = exactly(40);
/** The neutral element of the union of ranges. */
const EMPTY_RANGE: Range = { min: Infinity, max: 0 };

/** Sizes of the entries of a list or map. */
interface EntrySizes {
  readonly container: 'list' | 'map';
  readonly key: Range;
  readonly value: Range;
}

interface LocalVariable {
  readonly name: string;
  readonly path: readonly string[];
  readonly size: Range | undefined;
  readonly entries: EntrySizes | undefined;
}

const NO_PATH: readonly string[] = [];

class CostEstimator {
  readonly #checked: CheckedExpression;
  readonly #options: EstimateOptions;
  readonly #paths = new Map<number, readonly string[]>();
  readonly #sizes = new Map<number, Range>();
  readonly #entries = new Map<number, EntrySizes>();
  readonly #locals: LocalVariable[] = [];

  constructor(checked: CheckedExpression, options: EstimateOptions) {
    this.#checked = checked;
    this.#options = options;
  }

  costOf(node: Expression): Range {
    switch (node.kind) {
      case 'literal':
        return ZERO;
      case 'identifier':
        this.#paths.set(node.id, this.#local(node.name)?.path ?? [node.name]);
        return ONE;
      case 'select':
        return this.#costOfSelect(node);
      case 'call':
        return node.function === 'dyn' ? this.#costOfDyn(node) : this.#costOfCall(node);
      case 'list':
        return this.#costOfList(node.id, node.elements);
      case 'map': {
        const costs = node.entries.flatMap((entry) => [this.costOf(entry.key), this.costOf(entry.value)]);
        const key = this.#unite(node.entries.map((entry) => entry.key));
        const value = this.#unite(node.entries.map((entry) => entry.value));
        this.#entries.set(node.id, { container: 'map', key, value });
        return addRanges(MAP_COST, ...costs);
      }
      case 'struct':
        return addRanges(STRUCT_COST, ...node.fields.map((field) => this.costOf(field.value)));
      default:
        return isBinding(node) ? this.#costOfBinding(node) : this.#costOfLoop(node);
    }
  }

  #costOfSelect(node: SelectExpression): Range {
    const operandCost = this.costOf(node.operand);
    if (node.isTest) {
      return addRanges(operandCost, exactly(this.#options.presenceTestCost));
    }
    this.#paths.set(node.id, [...this.#pathOf(node.operand), node.field]);
    const { kind } = this.#typeOf(node.operand);
    return kind === 'map' || kind === 'struct' || kind === 'parameter' ? addRanges(operandCost, ONE) : operandCost;
  }

  #costOfList(id: number, elements: readonly Expression[]): Range {
    const costs = elements.map((element) => this.costOf(element));
    this.#entries.set(id, { container: 'list', key: ONE, value: this.#unite(elements) });
    return addRanges(LIST_COST, ...costs);
  }

  #unite(nodes: readonly Expression[]): Range {
    return nodes.length === 0 ? ZERO : nodes.map((node) => this.#sizeOf(node)).reduce(uniteRanges, EMPTY_RANGE);
  }

  // --- calls -------------------------------------------------------------------------------------------------------

  /** `dyn(x)` only hides the type from the checker. */
  #costOfDyn(node: CallExpression): Range {
    const [argument] = node.args;
    if (argument === undefined) {
      return ONE;
    }
    const cost = addRanges(ONE, this.costOf(argument));
    this.#copySizes(node, argument);
    return cost;
  }

  #costOfCall(node: CallExpression): Range {
    const args = node.target === undefined ? node.args : [node.target, ...node.args];
    const costs = args.map((arg) => this.costOf(arg));
    if (node.function === Operator.OptionalSelect) {
      return addRanges(ONE, ...costs);
    }
    let cost = EMPTY_RANGE;
    let size: Range | undefined;
    for (const overload of this.#checked.overloads.get(node.id) ?? []) {
      const estimate = this.#estimateCall(node, overload, args, costs);
      cost = uniteRanges(cost, estimate.cost);
      if (estimate.size !== undefined) {
        size = size === undefined ? estimate.size : uniteRanges(size, estimate.size);
      }
      size = this.#sizeOfIndexed(node, overload.id, size) ?? this.#knownSizeOf(node);
    }
    if (cost === EMPTY_RANGE) {
      return ZERO;
    }
    if (size !== undefined) {
      this.#sizes.set(node.id, size);
    }
    return cost;
  }

  /** An element of a list or map has the size that is known for its path. */
  #sizeOfIndexed(node: CallExpression, overload: string, size: Range | undefined): Range | undefined {
    const [container] = node.args;
    if (container === undefined || (overload !== 'index_list' && overload !== 'index_map')) {
      return size;
    }
    this.#paths.set(node.id, [...this.#pathOf(container), overload === 'index_list' ? '@items' : '@values']);
    return this.#entriesOf(container)?.value;
  }

  /** The estimate of a call, including its arguments. */
  #estimateCall(
    node: CallExpression,
    overload: Overload,
    args: readonly Expression[],
    costs: readonly Range[],
  ): CallEstimate {
    switch (overload.id) {
      case 'logical_and':
      case 'logical_or':
        return { cost: { min: costs[0]?.min ?? 0, max: addRanges(...costs).max } };
      case 'conditional':
        return this.#estimateConditional(node, costs);
      case 'add_list':
      case 'add_string':
      case 'add_bytes':
        this.#joinEntries(node);
        break;
      default:
    }
    const sizes = this.#callSizes(args);
    const estimate = (overload.id === 'equals' ? estimateKubernetesEquality(sizes) : undefined) ??
      overload.estimate?.(sizes) ?? { cost: exactly(CALL_COST) };
    return { ...estimate, cost: addRanges(estimate.cost, ...costs) };
  }

  #estimateConditional(node: CallExpression, costs: readonly Range[]): CallEstimate {
    const [, whenTrue, whenFalse] = node.args;
    const [condition = ZERO, trueCost = ZERO, falseCost = ZERO] = costs;
    const cost = addRanges(condition, uniteRanges(trueCost, falseCost));
    if (whenTrue === undefined || whenFalse === undefined) {
      return { cost };
    }
    this.#uniteEntries(node, whenTrue, whenFalse);
    return { cost, size: uniteRanges(this.#sizeOf(whenTrue), this.#sizeOf(whenFalse)) };
  }

  #joinEntries(node: CallExpression): void {
    const [left, right] = node.args;
    if (left !== undefined && right !== undefined) {
      this.#uniteEntries(node, left, right);
    }
  }

  #uniteEntries(node: Expression, left: Expression, right: Expression): void {
    const ofLeft = this.#entriesOf(left);
    const ofRight = this.#entriesOf(right);
    if (ofLeft !== undefined && ofRight !== undefined) {
      this.#entries.set(node.id, {
        container: ofLeft.container,
        key: uniteRanges(ofLeft.key, ofRight.key),
        value: uniteRanges(ofLeft.value, ofRight.value),
      });
    }
  }

  #callSizes(args: readonly Expression[]): CallSizes {
    return {
      args: args.map((arg) => this.#sizeOf(arg)),
      elements: args.map((arg) => this.#elementSizeOf(arg)),
      types: args.map((arg) => this.#typeOf(arg)),
      literals: args.map((arg) => (arg.kind === 'literal' ? arg.value : undefined)),
    };
  }

  #elementSizeOf(node: Expression): Range | undefined {
    const path = this.#pathOf(node);
    const { kind } = this.#typeOf(node);
    const isContainer = kind === 'list' || kind === 'map';
    return isContainer && path.length > 0 ? this.#estimatedSize([...path, '@items']) : undefined;
  }

  // --- macros ------------------------------------------------------------------------------------------------------

  #costOfBinding(node: ComprehensionExpression): Range {
    const before = addRanges(this.costOf(node.range), this.costOf(node.initial));
    this.#pushAccumulator(node);
    const cost = addRanges(before, this.costOf(node.result));
    this.#locals.pop();
    this.#copySizes(node, node.result);
    return cost;
  }

  #costOfLoop(node: ComprehensionExpression): Range {
    const before = addRanges(this.costOf(node.range), this.costOf(node.initial));
    this.#pushAccumulator(node);
    const outer = this.#locals.length;
    this.#pushVariables(node);
    const iteration = addRanges(this.costOf(node.condition), this.costOf(node.step));
    this.#locals.length = outer;
    const resultCost = this.costOf(node.result);
    this.#locals.pop();
    const count = this.#sizeOf(node.range);
    this.#setLoopSizes(node, count);
    return addRanges(before, resultCost, multiplyRanges(count, iteration));
  }

  #setLoopSizes(node: ComprehensionExpression, count: Range): void {
    if (node.initial.kind === 'literal') {
      const size = this.#knownSizeOf(node.initial);
      if (size !== undefined) {
        this.#sizes.set(node.id, size);
      }
    } else if (node.initial.kind === 'list' || node.initial.kind === 'map') {
      this.#sizes.set(node.id, count);
      const entries = this.#entriesOf(node.step);
      if (entries !== undefined) {
        this.#entries.set(node.id, entries);
      }
    }
  }

  #pushAccumulator(node: ComprehensionExpression): void {
    this.#locals.push({
      name: node.accumulator,
      path: this.#pathOf(node.initial),
      size: this.#knownSizeOf(node.initial),
      entries: this.#entriesOf(node.initial),
    });
  }

  #pushVariables(node: ComprehensionExpression): void {
    const entries = this.#entriesOf(node.range);
    const isList = (entries?.container ?? this.#typeOf(node.range).kind) === 'list';
    const path = this.#pathOf(node.range);
    const push = (name: string, step: string, size: Range | undefined): void => {
      this.#locals.push({ name, path: [...path, step], size, entries: undefined });
    };
    if (node.secondVariable !== undefined) {
      push(node.variable, isList ? '@indices' : '@keys', entries?.key);
      push(node.secondVariable, isList ? '@items' : '@values', entries?.value);
    } else if (isList) {
      push(node.variable, '@items', entries?.value);
    } else {
      push(node.variable, '@keys', entries?.key);
    }
  }

  // --- sizes -------------------------------------------------------------------------------------------------------

  #local(name: string): LocalVariable | undefined {
    return this.#locals.findLast((local) => local.name === name);
  }

  #typeOf(node: Expression): CelType {
    return this.#checked.types[node.id] ?? DYN;
  }

  #pathOf(node: Expression): readonly string[] {
    const local = node.kind === 'identifier' ? this.#local(node.name) : undefined;
    return local?.path ?? this.#paths.get(node.id) ?? NO_PATH;
  }

  #sizeOf(node: Expression): Range {
    return this.#knownSizeOf(node) ?? UNKNOWN_RANGE;
  }

  #knownSizeOf(node: Expression): Range | undefined {
    const computed = this.#sizes.get(node.id) ?? sizeByForm(node);
    if (computed !== undefined) {
      return computed;
    }
    const estimated = this.#estimatedSize(this.#pathOf(node));
    if (estimated !== undefined) {
      this.#sizes.set(node.id, estimated);
      return estimated;
    }
    if (isScalar(this.#typeOf(node))) {
      return ONE;
    }
    return node.kind === 'identifier' ? this.#local(node.name)?.size : undefined;
  }

  #estimatedSize(path: readonly string[]): Range | undefined {
    return path.length === 0 || path[0] === ACCUMULATOR ? undefined : this.#options.sizes?.(path);
  }

  #entriesOf(node: Expression): EntrySizes | undefined {
    return this.#entries.get(node.id) ?? (node.kind === 'identifier' ? this.#local(node.name)?.entries : undefined);
  }

  #copySizes(to: Expression, from: Expression): void {
    const size = this.#knownSizeOf(from);
    if (size !== undefined) {
      this.#sizes.set(to.id, size);
    }
    const entries = this.#entriesOf(from);
    if (entries !== undefined) {
      this.#entries.set(to.id, entries);
    }
  }
}

/** Whether a comprehension only binds a name, like the expansions of `cel.bind` and `optMap`. */
function isBinding(node: ComprehensionExpression): boolean {
  const { range, condition } = node;
  const isEmpty = range.kind === 'list' && range.elements.length === 0;
  return isEmpty && condition.kind === 'literal' && condition.value === false;
}

function sizeByForm(node: Expression): Range | undefined {
  switch (node.kind) {
    case 'literal':
      return exactly(sizeOfLiteral(node.value));
    case 'list':
      return exactly(node.elements.length);
    case 'map':
      return exactly(node.entries.length);
    default:
      return undefined;
  }
}

function sizeOfLiteral(value: CelValue): number {
  if (typeof value === 'string') {
    return codePointCount(value);
  }
  return value instanceof Uint8Array ? value.length : 1;
}

function isScalar(type: CelType): boolean {
  switch (type.kind) {
    case 'bool':
    case 'double':
    case 'duration':
    case 'int':
    case 'timestamp':
    case 'uint':
      return true;
    default: {
      const inner = optionalValueType(type);
      return inner !== undefined && isScalar(inner);
    }
  }
}
