import type { CelValue } from '../value.ts';
import { Dice } from './dice.ts';

const TEXTS = ['', 'a', 'ab', 'b', 'é\u{1F680}', 'registry.example/app:1', 'registry.example/'];
const NUMBERS = [0, 1, 2, -1, 1.5, 9_007_199_254_740_991, 9_223_372_036_854_775_807n];
const LITERALS = [
  "''",
  "'a'",
  "'ab'",
  "'registry.example/'",
  '0',
  '1',
  '2',
  '1.5',
  '2.0',
  '3u',
  'true',
  'false',
  'null',
];
const FIELDS = ['items', 'labels', 'name', 'replicas', 'spec', 'a', 'b'];
const MACROS = ['all', 'exists', 'exists_one'];

/** Elements of a list, or keys of a map, that count. */
const LARGE = 300;

/** Expressions that look at `object` and `variables.one`, most of which compile, and objects for them. */
export class RandomExpressions {
  readonly #dice: Dice;

  constructor(seed: number) {
    this.#dice = new Dice(seed);
  }

  /** An object whose fields are what the expressions look at, now and then of another type than they expect. */
  object(): Readonly<Record<string, CelValue>> {
    return Object.fromEntries(FIELDS.filter(() => this.#dice.below(6) > 0).map((field) => [field, this.#value(3)]));
  }

  #value(depth: number): CelValue {
    const dice = this.#dice;
    switch (dice.below(depth > 0 ? 9 : 4)) {
      case 0:
        return dice.one(TEXTS);
      case 1:
        return dice.one(NUMBERS);
      case 2:
        return dice.one([true, false, null]);
      case 3:
        return dice.one(TEXTS).repeat(dice.below(40));
      case 4:
        return Array.from({ length: LARGE + dice.below(2) }, (_, index) => index);
      case 5:
        return Object.fromEntries(Array.from({ length: LARGE }, (_, index) => [`key-${index}`, index]));
      case 6:
        return Array.from({ length: dice.below(5) }, () => this.#value(depth - 1));
      default:
        return Object.fromEntries(FIELDS.flatMap((key) => (dice.below(2) ? [[key, this.#value(depth - 1)]] : [])));
    }
  }

  /** An expression of a truth value. */
  condition(depth = 4, names: readonly string[] = ['object']): string {
    const dice = this.#dice;
    const some = (): string => this.#operand(depth - 1, names);
    const inner = (): string => this.condition(depth - 1, names);
    switch (dice.below(depth > 0 ? 12 : 3)) {
      case 0:
        return `has(${this.#path(names)})`;
      case 1:
        return `${this.#path(names)} == ${dice.one(LITERALS)}`;
      case 2:
        return dice.one(['true', 'false']);
      case 3:
        return `(${inner()} ${dice.one(['&&', '||'])} ${inner()})`;
      case 4:
        return `!(${inner()})`;
      case 5:
        return `(${inner()} ? ${inner()} : ${inner()})`;
      case 6:
        return `(${some()} ${dice.one(['==', '!=', '<', '<=', '>', '>='])} ${some()})`;
      case 7:
        return `(${some()} in ${some()})`;
      case 8:
        return `${some()}.${dice.one(['startsWith', 'endsWith', 'contains'])}(${some()})`;
      default: {
        const name = `v${names.length}`;
        return `${some()}.${dice.one(MACROS)}(${name}, ${this.condition(depth - 1, [...names, name, name])})`;
      }
    }
  }

  #path(names: readonly string[]): string {
    const fields = this.#dice.some(FIELDS);
    return `${this.#dice.one(names)}.${fields.join('.')}`;
  }

  /** An expression of any value. */
  #operand(depth: number, names: readonly string[]): string {
    const dice = this.#dice;
    const some = (): string => this.#operand(depth - 1, names);
    switch (dice.below(depth > 0 ? 13 : 5)) {
      case 0:
        return dice.one(LITERALS);
      case 1:
        return dice.one(names);
      case 2:
        return 'variables.one';
      case 3:
      case 4:
        return this.#path(names);
      case 5:
        return `size(${some()})`;
      case 6:
        return `(${some()} + ${some()})`;
      case 7:
        return `${some()}[${dice.one(['0', '1', '-1', "'a'", "'items'"])}]`;
      case 8:
        return `[${some()}, ${some()}]`;
      case 9:
        return `(${this.condition(depth - 1, names)} ? ${some()} : ${some()})`;
      case 10:
        return `-${some()}`;
      default: {
        const name = `v${names.length}`;
        const condition = this.condition(depth - 1, [...names, name, name]);
        const made = this.#operand(depth - 1, [...names, name]);
        const loop = [`filter(${name}, ${condition})`, `map(${name}, ${made})`, `map(${name}, ${condition}, ${made})`];
        return `${some()}.${dice.one(loop)}`;
      }
    }
  }
}
