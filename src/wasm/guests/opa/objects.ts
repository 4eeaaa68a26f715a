import { WasmError } from '../../binary/errors.ts';
import {
  arrayOperand,
  boundedChars,
  FUEL_PER_CHAR,
  numberOperand,
  objectOperand,
  operand,
  stringOperand,
  undefinedBecause,
  collectionOperand,
  wrongType,
} from './builtin.ts';
import type { BuiltinContext, OpaBuiltin } from './builtin.ts';
import { integerOf, RegoNumber } from './number.ts';
import { identityOf, isArray, RegoObject, RegoSet, valuesEqual } from './value.ts';
import type { RegoValue } from './value.ts';
import { regoText } from './value-text.ts';
import { parseJson } from '../../../values/index.ts';

/** Maximum number of values in the result of an enumeration: far more than a policy can process within its deadline. */
const MAX_RESULT_VALUES = 1_000_000;

/** Fuel per value that a builtin creates: 0.5 µs, at 2 × 10⁹ units per second of a Rego guest. */
export const FUEL_PER_VALUE = 1000;

/** Fuel per comparison of two numbers: 2 ns. */
const FUEL_PER_COMPARISON = 4;

const subset: OpaBuiltin = (operands, context) => {
  const whole = operand(operands, 0);
  const part = operand(operands, 1);
  if (isArray(whole) && part instanceof RegoSet) {
    const present = new RegoSet(whole.filter((item) => part.has(item)));
    // As in OPA, an empty set is a subset of an array only if the array is not empty.
    return whole.length > 0 && present.size === part.size;
  }
  return isSubset(whole, part, context) ?? undefinedBecause('object.subset: operands of different types');
};

/** Undefined unless both values are objects, both are sets, or both are arrays. */
function isSubset(whole: RegoValue, part: RegoValue, context: BuiltinContext): boolean | undefined {
  if (whole instanceof RegoObject && part instanceof RegoObject) {
    return [...part].every(([key, value]) => {
      const other = whole.get(key);
      return other !== undefined && (isSubset(other, value, context) ?? valuesEqual(other, value));
    });
  }
  if (whole instanceof RegoSet && part instanceof RegoSet) {
    return [...part].every((item) => whole.has(item));
  }
  return isArray(whole) && isArray(part) ? isRun(whole, part, context) : undefined;
}

/** Whether the part's elements are a consecutive run in the whole. */
function isRun(whole: readonly RegoValue[], part: readonly RegoValue[], context: BuiltinContext): boolean {
  context.charge((whole.length + 1) * (part.length + 1) * FUEL_PER_COMPARISON);
  // Numbers instead of texts, which would be compared again and again.
  const numbers = new Map<string, number>();
  const numberOf = (value: RegoValue): number => {
    const identity = identityOf(value);
    const number = numbers.get(identity) ?? numbers.size;
    numbers.set(identity, number);
    return number;
  };
  const all = whole.map(numberOf);
  const wanted = part.map(numberOf);
  const starts = all.length - wanted.length + 1;
  for (let start = 0; start < starts; start += 1) {
    if (wanted.every((item, offset) => item === all[start + offset])) {
      return true;
    }
  }
  return false;
}

const jsonIsValid: OpaBuiltin = (operands) => {
  const text = operand(operands, 0);
  if (typeof text !== 'string') {
    return false;
  }
  try {
    parseJson(text);
    return true;
  } catch {
    return false;
  }
};

const MARSHAL_OPTIONS: ReadonlySet<RegoValue> = new Set(['prefix', 'indent', 'pretty']);

const marshalWithOptions: OpaBuiltin = (operands, context) => {
  const options = objectOperand(operands, 1);
  if (![...options].every(([name]) => MARSHAL_OPTIONS.has(name))) {
    undefinedBecause('json.marshal_with_options: unknown option');
  }
  const prefix = options.get('prefix') ?? '';
  const indent = options.get('indent') ?? '\t';
  const pretty = options.get('pretty') ?? (options.get('prefix') !== undefined || options.get('indent') !== undefined);
  if (typeof prefix !== 'string' || typeof indent !== 'string' || typeof pretty !== 'boolean') {
    return undefinedBecause('json.marshal_with_options: wrong type of an option');
  }
  const write = new JsonWriter(
    pretty ? { prefix, indent } : undefined,
    boundedChars('json.marshal_with_options', context),
  );
  write.put(pretty ? prefix : '');
  write.value(operand(operands, 0), 0);
  return write.text();
};

interface JsonLayout {
  readonly prefix: string;
  readonly indent: string;
}

/**
 * JSON as Go's encoder writes it: sorted keys, sets as arrays, escapes for characters that are special in HTML. Charges for each
 * piece before it is written: an indent can be much longer than the value.
 */
class JsonWriter {
  readonly #layout: JsonLayout | undefined;
  readonly #charge: (chars: number) => void;
  readonly #parts: string[] = [];

  constructor(layout: JsonLayout | undefined, charge: (chars: number) => void) {
    this.#layout = layout;
    this.#charge = charge;
  }

  text(): string {
    return this.#parts.join('');
  }

  put(text: string): void {
    this.#charge(text.length);
    this.#parts.push(text);
  }

  value(value: RegoValue, depth: number): void {
    if (typeof value === 'string') {
      this.put(goJsonString(value));
    } else if (value === null || typeof value === 'boolean' || value instanceof RegoNumber) {
      this.put(value instanceof RegoNumber ? value.text : String(value));
    } else if (value instanceof RegoObject) {
      this.#items('{', value.sorted(), '}', depth, ([key, item]) => {
        this.put(
          `${goJsonString(typeof key === 'string' ? key : regoText(key))}:${this.#layout === undefined ? '' : ' '}`,
        );
        this.value(item, depth + 1);
      });
    } else {
      this.#items('[', isArray(value) ? value : value.sorted(), ']', depth, (item) => this.value(item, depth + 1));
    }
  }

  #items<Item>(open: string, items: readonly Item[], close: string, depth: number, write: (item: Item) => void): void {
    this.put(open);
    for (const [index, item] of items.entries()) {
      this.put(index === 0 ? '' : ',');
      this.#line(depth + 1);
      write(item);
    }
    if (items.length > 0) {
      this.#line(depth);
    }
    this.put(close);
  }

  #line(depth: number): void {
    if (this.#layout !== undefined) {
      this.put(`\n${this.#layout.prefix}`);
      this.#charge(this.#layout.indent.length * depth);
      this.#parts.push(this.#layout.indent.repeat(depth));
    }
  }
}

function goJsonString(text: string): string {
  return JSON.stringify(text.toWellFormed()).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const objectKeys: OpaBuiltin = (operands) => new RegoSet([...objectOperand(operands, 0)].map(([key]) => key));

/** Merges objects from left to right, including nested objects. */
const unionN: OpaBuiltin = (operands) =>
  union(arrayOperand(operands, 0).map((item) => (item instanceof RegoObject ? item : wrongType(item, 0, 'object'))));

/** Reads each entry once: merging two objects after the other would copy the first ones again and again. */
function union(objects: readonly RegoObject[]): RegoObject {
  const known = new Map<string, [key: RegoValue, values: RegoValue[]]>();
  for (const [key, value] of objects.flatMap((object) => [...object])) {
    const identity = identityOf(key);
    const values = known.get(identity)?.[1] ?? [];
    values.push(value);
    known.set(identity, [key, values]);
  }
  return new RegoObject(Array.from(known.values(), ([key, values]) => [key, lastOrUnion(values)]));
}

/** The last value, merged with the objects directly before it where it is one. */
function lastOrUnion(values: readonly RegoValue[]): RegoValue {
  const from = values.findLastIndex((value) => !(value instanceof RegoObject)) + 1;
  const objects = values.slice(from).filter((value) => value instanceof RegoObject);
  return objects.length > 1 ? union(objects) : (values.at(-1) ?? null);
}

const arrayReverse: OpaBuiltin = (operands) => arrayOperand(operands, 0).toReversed();

const rangeStep: OpaBuiltin = (operands, context) => {
  const [from, to, step] = [0, 1, 2].map((index) => integerOf(numberOperand(operands, index).text));
  if (from === undefined || to === undefined || step === undefined || step <= 0n) {
    return undefinedBecause('numbers.range_step: expected integers and a positive step');
  }
  const count = (from <= to ? to - from : from - to) / step + 1n;
  if (count > MAX_RESULT_VALUES) {
    throw new WasmError('out-of-fuel', `numbers.range_step: more than ${MAX_RESULT_VALUES} numbers`);
  }
  context.charge(Number(count) * FUEL_PER_VALUE);
  const signedStep = from <= to ? step : -step;
  return Array.from({ length: Number(count) }, (_, index) => RegoNumber.of(from + BigInt(index) * signedStep));
};

const numbersRange: OpaBuiltin = (operands, context) =>
  rangeStep([...operands.slice(0, 2), new RegoNumber('1')], context);

/** All paths from the roots, each up to a node without edges or to the end of a cycle. */
const reachablePaths: OpaBuiltin = (operands, context) => {
  const graph = objectOperand(operands, 0);
  const paths: RegoValue[] = [];
  const follow = (node: RegoValue, path: readonly RegoValue[]): void => {
    // The number of paths is exponential in the size of a graph.
    context.charge(FUEL_PER_VALUE * (path.length + 1));
    const edges = edgesOf(graph, node);
    if (paths.length >= MAX_RESULT_VALUES) {
      throw new WasmError('out-of-fuel', `graph.reachable_paths: more than ${MAX_RESULT_VALUES} paths`);
    }
    if (edges === undefined) {
      paths.push(path);
      return;
    }
    const longer = [...path, node];
    if (edges.length === 0) {
      paths.push(longer);
    }
    for (const next of edges) {
      if (longer.some((seen) => valuesEqual(seen, next))) {
        paths.push(longer);
      } else {
        follow(next, longer);
      }
    }
  };
  for (const root of collectionOperand(operands, 1)) {
    const edges = edgesOf(graph, root);
    if (edges !== undefined) {
      if (edges.length === 0) {
        paths.push([root]);
      }
      for (const next of edges) {
        follow(next, [root]);
      }
    }
  }
  return new RegoSet(paths);
};

function edgesOf(graph: RegoObject, node: RegoValue): readonly RegoValue[] | undefined {
  const edges = graph.get(node);
  if (edges === undefined) {
    return undefined;
  }
  return edges instanceof RegoSet ? edges.sorted() : isArray(edges) ? edges : [];
}

const trace: OpaBuiltin = (operands, context) => {
  context.log(stringOperand(operands, 0));
  return true;
};

/** `print`: each operand is the set of its values, which is empty if it is undefined. */
const print: OpaBuiltin = (operands, context) => {
  let lines: readonly string[] = [''];
  for (const [index, item] of arrayOperand(operands, 0).entries()) {
    const values = item instanceof RegoSet ? item.sorted() : [item];
    const texts =
      values.length === 0
        ? ['<undefined>']
        : values.map((value) => (typeof value === 'string' ? value : regoText(value)));
    context.charge(lines.length * texts.length * FUEL_PER_VALUE);
    lines = lines.flatMap((line) => texts.map((text) => (index === 0 ? text : `${line} ${text}`)));
  }
  for (const line of lines) {
    context.charge(line.length * FUEL_PER_CHAR);
    context.log(line);
  }
  return true;
};

const runtime: OpaBuiltin = () => new RegoObject([]);

export const objectBuiltins: readonly (readonly [string, OpaBuiltin])[] = [
  ['object.subset', subset],
  ['object.keys', objectKeys],
  ['object.union_n', unionN],
  ['array.reverse', arrayReverse],
  ['json.is_valid', jsonIsValid],
  ['json.marshal_with_options', marshalWithOptions],
  ['numbers.range', numbersRange],
  ['numbers.range_step', rangeStep],
  ['graph.reachable_paths', reachablePaths],
  ['trace', trace],
  ['internal.print', print],
  ['opa.runtime', runtime],
];
