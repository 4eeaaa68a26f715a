import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createEnvironment } from '../environment.ts';
import { CelError } from '../errors.ts';
import { equalValues, LazyStruct, withInterrupt } from '../evaluate/index.ts';
import type { Program } from '../program.ts';
import { RandomExpressions } from '../testing/random-expressions.ts';
import { DYN, struct } from '../type.ts';
import { EvaluationFailure } from '../value.ts';
import type { CelResult, CelValue } from '../value.ts';
import { BoundedEvaluation, MAX_BOUNDED_WORK, parseBounded } from './index.ts';
import type { BoundedExpression } from './index.ts';

const BUDGET = { budget: 1_000_000 };
/** What a unit costs at the most, as API servers count: see MAX_BOUNDED_WORK. */
const COST_OF_UNIT = 16;
/** Looks at properties in a unit of work at the most. */
const LOOKS_OF_UNIT = 8;
/** Of the random tests. */
const ROUNDS = 4_000;

const environment = createEnvironment({
  variables: { object: DYN, variables: struct('Variables') },
  types: {
    findStruct: (name) => (name === 'Variables' ? struct(name) : undefined),
    fieldType: (_struct, field) => (field === 'one' ? DYN : undefined),
  },
});

/** The same expression for both evaluations; undefined when it does not compile. */
function compiled(text: string): Program | undefined {
  try {
    return environment.compile(text);
  } catch (error) {
    assert.ok(error instanceof CelError);
    return undefined;
  }
}

function parsed(text: string, variables: ReadonlyMap<string, BoundedExpression> = ONE): BoundedExpression | undefined {
  return parseBounded(text, new Set(['object']), variables);
}

const ONE = new Map([['one', parsed('object.items', new Map()) ?? assert.fail()]]);

interface Outcome {
  readonly value: CelValue | undefined;
  readonly worked: number;
}

function bounded(expression: BoundedExpression, object: CelValue): Outcome {
  const evaluation = new BoundedEvaluation({ bindings: new Map([['object', object]]), variables: ONE });
  return { value: evaluation.evaluate(expression), worked: evaluation.worked };
}

/** What the language's own evaluation gives, and what it costs together with the variable. */
function whole(program: Program, object: CelValue): { readonly value: CelResult; readonly cost: number } {
  const variables = new LazyStruct('Variables');
  let cost = 0;
  variables.define('one', () => {
    const one = environment.compile('object.items').run({ object }, BUDGET);
    cost += one.cost;
    return one.value as CelResult;
  });
  const { value, cost: own } = program.run({ object, variables }, BUDGET);
  return { value: value as CelResult, cost: cost + own };
}

describe('an evaluation with a bound', () => {
  const object = {
    items: [1, 2, 3],
    name: 'registry.example/app',
    labels: { a: 'b', null: null },
    nothing: null,
    list: [null, 'x'],
  };

  it('knows what people write', () => {
    for (const [text, expected] of Object.entries({
      "object.name.startsWith('registry.example/') && !has(object.spec)": true,
      'object.items.all(i, i > 0 && i <= 3)': true,
      'object.items.exists(i, i == 4) || size(object.items) == 3': true,
      'object.items.exists_one(i, i > 2)': true,
      'object.items.filter(i, i > 1).map(i, i + 1) == [3, 4]': true,
      'object.items.map(i, i > 1, -i)[0] == -2': true,
      "object.labels.all(key, key in ['a', 'null'])": true,
      "'a' in object.labels && !('b' in object.labels) && object.labels['a'] == 'b'": true,
      'has(object.spec) ? object.spec.x == 1 : object.nothing == null': true,
      'object.list[0] == null && object.labels == object.labels': true,
      'variables.one == object.items && variables.one.size() == 3': true,
      "object.name.contains('example') && object.name.endsWith('app') && object.name + '!' != ''": true,
      'object.items.all(object, object > 1)': false,
      "[object.labels].all(variables, variables.a == 'b')": true,
      'object.items == [1.0, 2.0, 3.0]': true,
      "object.name != '' || object.absent.x == 1": true,
      "object.name == '' && object.absent.x == 1": false,
    })) {
      const program = compiled(text);
      assert.ok(program, text);
      assert.equal(whole(program, object).value, expected, text);
      assert.equal(bounded(parsed(text) ?? assert.fail(text), object).value, expected, text);
    }
  });

  it('says nothing of what fails, whatever absorbs it', () => {
    for (const text of [
      'object.absent == 1',
      'object.name.x == 1',
      'object.items[3] == 1',
      'object.items[-1] == 1',
      "object.labels['b'] == 'b'",
      'object.labels[1] == 1',
      'object.nothing < 1 || object.name > 1',
      'object.items.all(i, i.x) && true',
      'object.items.exists_one(i, i == 1 ? i.x : true)',
      'object.items.filter(i, i.x) == []',
      'object.items.map(i, i.x) == []',
      'object.nothing ? true : true',
      '!object.name',
      'size(object.nothing) == 0',
      'object.nothing.startsWith(object.name)',
      'object.name.contains(object.nothing)',
      'has(object.spec.x)',
      'object.name in object.name',
      'object.name.all(i, true)',
    ]) {
      const program = compiled(text);
      assert.ok(program, text);
      assert.ok(whole(program, object).value instanceof EvaluationFailure, text);
      assert.equal(bounded(parsed(`(${text}) || true`) ?? assert.fail(text), object).value, undefined, text);
    }
  });

  it('says nothing of what it does not know', () => {
    for (const text of [
      'object.items + object.items == []',
      'object.items[0] + 9007199254740991 > 0',
      `object.name + '${'x'.repeat(1_024)}' == ''`,
      'object.items[1.0] == 2',
      '-object.fraction < 0.0',
      'has(object.name.x)',
      'object.truth < object.truth',
      'object.items < 1',
      'object.labels >= object.labels',
      'object.items.startsWith(object.name)',
      'object.name.contains(object.labels)',
      'object.deep == object.deep',
    ]) {
      const deep = JSON.parse('['.repeat(100) + ']'.repeat(100)) as CelValue;
      const value = { ...object, fraction: 0.5, truth: true, deep };
      assert.ok(compiled(text), text);
      assert.equal(bounded(parsed(`(${text}) || true`) ?? assert.fail(text), value).value, undefined, text);
    }
  });

  it('takes no more of the language', () => {
    for (const text of [
      "object.name.matches('a')",
      "{'a': 1} == object.labels",
      'object.items.size() * 2 == 6',
      "b'a' == object.name",
      'object.?name.hasValue()',
      "object.name.lowerAscii() == ''",
      'variables.two == 1',
      'other == 1',
      'has(variables.one)',
      'object.items.sortBy(i, i) == []',
      "['a'].all(sets, sets.contains([sets], [sets]))",
      '.object == 1',
      'object ==',
      `${'('.repeat(40)}true${')'.repeat(40)}`,
      Array.from({ length: 500 }, () => 'object').join(' == '),
      `[${Array.from({ length: 1_000 }, () => '1').join()}] == []`,
    ]) {
      assert.equal(parsed(text), undefined, text);
    }
  });

  it('counts whatever it looks at', () => {
    const random = new RandomExpressions(2);
    let looked = 0;
    const watched = (value: CelValue): CelValue =>
      typeof value === 'object' && value !== null ? (new Proxy(value, watching) as CelValue) : value;
    const watching: ProxyHandler<object> = {
      get: (target, key) => {
        looked += 1;
        const value: unknown = Reflect.get(target, key);
        return typeof value === 'function' ? value : watched(value as CelValue);
      },
      getOwnPropertyDescriptor: (target, key) => {
        looked += 1;
        return Reflect.getOwnPropertyDescriptor(target, key);
      },
    };
    let most = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const text = random.condition();
      const object = random.object();
      const expression = parsed(text);
      if (expression !== undefined) {
        looked = 0;
        const { worked } = bounded(expression, watched(object));
        most = Math.max(most, looked / worked);
      }
    }
    // Values know their prototypes, lengths and iterators as well.
    assert.ok(most > 1 && most < LOOKS_OF_UNIT, `${most}`);
  });

  const items = Array.from({ length: 2_000 }, (_, index) => index);
  const long = 'ab'.repeat(10_000);
  const large = {
    items,
    others: [...items, 0],
    map: Object.fromEntries(items.map((item) => [`key-${item}`, item])),
    long,
  };

  it('counts what functions work within values', () => {
    for (const [text, units] of [
      ['object.items == object.items', 2_000],
      ['object.items != object.items', 2_000],
      ['object.map == object.map', 3_000],
      ['object.items == object.others', 500],
      ['object.items == object.map', 500],
      ['-1 in object.items', 2_500],
      ['0 in object.items', 500],
      ['object.map.size() == 0', 500],
      ['object.map.exists(key, true)', 500],
      ['object.items.filter(i, false) == []', 2_000],
      ['object.items.map(i, i) == []', 2_000],
      ['object.items.exists_one(i, true)', 2_000],
      ['object.long == object.long', 312],
      ['object.long <= object.long', 312],
      ['object.long > object.long', 312],
      ["object.long.startsWith('')", 312],
      ["object.long.endsWith('')", 312],
      ['object.long.size() == 0', 312],
      ["object.long.contains('abc')", 1_248],
      ['object.long in object.map', 312],
    ] as const) {
      const { value, worked } = bounded(parsed(text) ?? assert.fail(text), large);
      assert.ok(value !== undefined && worked > units, `${text}: ${worked}`);
    }
  });

  it('ends what works too much, by itself and when it is told to', () => {
    for (const text of [
      'object.items.all(a, object.items.all(b, a + b >= 0))',
      'object.items.map(a, object.items.map(b, b)) == []',
      'object.items.all(a, object.items.exists(b, b == a))',
      'object.items.all(a, object.map.all(key, true))',
      'object.long.contains(object.long)',
      'object.items.all(a, [object.items, object.items] == [object.items, object.items])',
    ]) {
      assert.ok(compiled(text), text);
      const expression = parsed(text) ?? assert.fail(text);
      const { value, worked } = bounded(expression, large);
      assert.equal(value, undefined, text);
      assert.ok(worked > MAX_BOUNDED_WORK, text);
      let told = 0;
      const interrupt = (work: number): boolean => {
        told = work;
        return work > MAX_BOUNDED_WORK / 4;
      };
      const interrupted = withInterrupt(interrupt, () => bounded(expression, large));
      assert.equal(interrupted.value, undefined, text);
      assert.ok(told > MAX_BOUNDED_WORK / 4 && interrupted.worked === told, text);
    }
  });

  it('goes only so deep, by whatever way', () => {
    const variables = new Map(ONE);
    for (let index = 0; index < 200; index += 1) {
      const text = index === 0 ? 'object.items' : `variables.v${index - 1}`;
      variables.set(`v${index}`, parsed(text, variables) ?? assert.fail());
    }
    const valueOf = (name: string): CelValue | undefined => {
      const evaluation = new BoundedEvaluation({ bindings: new Map([['object', object]]), variables });
      return evaluation.evaluate(parsed(`variables.${name}`, variables) ?? assert.fail());
    };
    assert.deepEqual(valueOf('v50'), object.items);
    assert.equal(valueOf('v199'), undefined);
  });

  it('gives what the language gives, or nothing, and costs no more than its units', () => {
    const random = new RandomExpressions(1);
    const seen = { values: 0, nothing: 0, others: 0, dearest: 0 };
    for (let round = 0; round < ROUNDS; round += 1) {
      const text = random.condition();
      const value = random.object();
      const program = compiled(text);
      const expression = program && parsed(text);
      if (program === undefined || expression === undefined) {
        seen.others += 1;
        continue;
      }
      const { value: found, worked } = bounded(expression, value);
      if (found === undefined) {
        seen.nothing += 1;
        continue;
      }
      const { value: expected, cost } = whole(program, value);
      const isSame = !(expected instanceof EvaluationFailure) && equalValues(found, expected);
      assert.ok(isSame, `${text} for ${inspected(value)}`);
      seen.values += 1;
      seen.dearest = Math.max(seen.dearest, cost / worked);
    }
    assert.ok(Math.min(seen.values, seen.nothing) > ROUNDS / 10, inspected(seen));
    assert.ok(seen.dearest <= COST_OF_UNIT, inspected(seen));
  });
});

function inspected(value: unknown): string {
  return JSON.stringify(value, (_key, one: unknown) => (typeof one === 'bigint' ? `${one}n` : one));
}
