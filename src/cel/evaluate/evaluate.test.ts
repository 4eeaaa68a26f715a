import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createEnvironment } from '../environment.ts';
import { CelError } from '../model/errors.ts';
import { DYN, INT, STRING, struct } from '../model/type.ts';
import { CelObject, EvaluationFailure } from '../model/value.ts';
import type { CelResult, CelValue } from '../model/value.ts';
import { Cancellation, CelStruct, CostCounter, LazyStruct, MAX_WORK, printValue } from './index.ts';
import type { Bindings, CelEvaluateOptions, CelEvaluation } from './index.ts';

const BUDGET: CelEvaluateOptions = { budget: 1_000_000 };

/** `Point{…}`, a struct type for tests. */
class Point extends CelStruct {
  readonly typeName = 'Point';
  readonly fields: ReadonlyMap<string, CelValue>;

  constructor(fields: ReadonlyMap<string, CelValue>) {
    super();
    this.fields = fields;
  }

  get(field: string): CelResult | undefined {
    return this.fields.get(field);
  }

  equals(other: CelValue): boolean {
    return other === this;
  }
}

const environment = createEnvironment({
  variables: { object: DYN, variables: DYN, i: INT, s: STRING },
  types: {
    findStruct: (name) => (name === 'Point' ? struct('Point') : undefined),
    fieldType: (_struct, field) => (field === 'x' || field === 'y' ? INT : undefined),
  },
  structs: {
    has: (name) => name === 'Point',
    create: (_name, fields) =>
      fields.get('x') === 13 ? new EvaluationFailure('an unlucky number') : new Point(fields),
  },
});

function evaluate(text: string, bindings: Bindings = {}, options = BUDGET): CelEvaluation {
  return environment.compile(text).run(bindings, options);
}

function messageOf({ value }: CelEvaluation): string {
  assert.ok(value instanceof EvaluationFailure || value instanceof Cancellation);
  return value.message;
}

describe('limits of an evaluation', () => {
  const numbers = { object: Array.from({ length: 1000 }, (_, index) => index) };

  it('stop it exactly when the cost exceeds the budget', () => {
    const { cost } = evaluate('object.all(x, x >= 0)', numbers);
    assert.equal(evaluate('object.all(x, x >= 0)', numbers, { budget: cost }).value, true);
    const { value } = evaluate('object.all(x, x >= 0)', numbers, { budget: cost - 1 });
    assert.ok(value instanceof Cancellation);
    assert.equal(value.code, 'cost-exceeded');
    assert.equal(value.message, 'operation cancelled: actual cost limit exceeded');
  });

  it('include the cost of failures, and take precedence over a failure', () => {
    assert.equal(messageOf(evaluate('1 / 0 == 1')), 'division by zero');
    assert.match(messageOf(evaluate('1 / 0 == 1', {}, { budget: 1 })), /cost limit exceeded/);
  });

  it('stop growing lists before they fill the memory', () => {
    let text = '1';
    for (let level = 0; level < 8; level++) {
      text = `[0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(v${level}, ${text})`;
    }
    const { value, cost } = evaluate(text);
    assert.ok(value instanceof Cancellation);
    assert.ok(cost < BUDGET.budget + 1000);
  });

  it('stop an expression that costs little but builds a long string', () => {
    let text = 'object';
    for (let level = 0; level < 24; level++) {
      text = `[${text}].map(v${level}, v${level} + v${level})[0]`;
    }
    const ended = evaluate(text, { object: '0123456789' });
    assert.ok(ended.value instanceof Cancellation);
    assert.ok(ended.cost < 1000);
  });

  it('stop an expression that costs little but works much', () => {
    const big = { object: Array.from({ length: 100_000 }, (_, index) => ({ index })) };
    const loop = '[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]';
    const { value } = evaluate(
      `${loop}.all(a, ${loop}.all(b, ${loop}.all(c, dyn(object) + dyn(object) != null)))`,
      big,
      {
        budget: Number.POSITIVE_INFINITY,
      },
    );
    assert.ok(value instanceof Cancellation);
    assert.match(value.message, /work limit/);
    assert.ok(MAX_WORK < 1e8);
  });

  it('count the work of a regular expression before it runs', () => {
    const { value } = evaluate(
      'object.a.matches(object.b)',
      { object: { a: 'a'.repeat(5_000_000), b: '(a{1,90}){1}b' } },
      { budget: Number.POSITIVE_INFINITY },
    );
    assert.ok(value instanceof Cancellation);
    assert.match(value.message, /work limit/);
  });

  /** A list that contains one list a hundred times, to the given depth: traversing it takes 100^depth steps. */
  const nested = (depth: number): CelValue =>
    depth === 0
      ? 1
      : Array.from(
          { length: 100 },
          (
            (held) => () =>
              held
          )(nested(depth - 1)),
        );

  it('count the comparisons of a search for an element', () => {
    const { value } = evaluate('object.a in [object.b]', { object: { a: nested(6), b: nested(6) } });
    assert.ok(value instanceof Cancellation);
    assert.match(value.message, /work limit/);
  });

  it('truncate the printed form of values with shared contents', () => {
    const { value } = evaluate('[?dyn(object.a)].size() > 0', { object: { a: nested(8) } });
    assert.ok(value instanceof EvaluationFailure);
    assert.match(value.message, /non-optional value \[\[\[/);
    assert.ok(value.message.length < 20_000);
    const texts = Array.from({ length: 1_000 }, () => 'x'.repeat(30_000));
    assert.ok(printValue(texts).length < 200_000);
  });

  it('parse numbers in linear time', () => {
    const digits = '1'.repeat(1_000_000);
    for (const text of [`${digits}x`, `0x${digits}x`]) {
      const { value } = evaluate('double(object.a) > 0.0', { object: { a: text } });
      assert.ok(value instanceof EvaluationFailure);
    }
    assert.equal(evaluate("double('1.') + double('.5') + double('0x1.8p1') == 4.5", {}).value, true);
  });

  it('count the keys of maps that are iterated or measured', () => {
    const m = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`k${index}`, 1]));
    const items = Array.from({ length: 45_000 }, () => 1);
    for (const expression of [
      'object.items.all(i, object.m.size() > 0)',
      'object.items.all(i, object.m.exists(k, true))',
    ]) {
      const { value } = evaluate(expression, { object: { items, m } }, { budget: Number.POSITIVE_INFINITY });
      assert.ok(value instanceof Cancellation, expression);
      assert.match(value.message, /work limit/);
    }
  });

  it('count comparisons of strings, bytes and optionals on either side', () => {
    const text = 'é'.repeat(10_000);
    const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, index) => [`k${index}`, 1]));
    const object = { n: Array.from({ length: 200_000 }, () => 1), text, list: [nested(2)], many };
    for (const expression of [
      "'a' < object.text",
      "object.text > 'a'",
      'object.text != object.none',
      "string(b'" + 'x'.repeat(2_000) + "') != ''",
      'object.?list == object.?list',
      'object.?many != object.?none',
    ]) {
      const { value } = evaluate(
        `object.n.all(x, ${expression})`,
        { object: { ...object, none: null } },
        { budget: Number.POSITIVE_INFINITY },
      );
      assert.ok(value instanceof Cancellation, expression);
      assert.match(value.message, /work limit/);
    }
  });
});

describe('several evaluations', () => {
  it('share a cost budget', () => {
    const counter = new CostCounter(5);
    const first = evaluate('i + 1 == 8', { i: 7 }, { ...BUDGET, counter });
    assert.equal(counter.spent, first.cost);
    assert.ok(counter.spent <= counter.limit);
    evaluate('i + 1 == 8', { i: 7 }, { ...BUDGET, counter });
    assert.equal(counter.spent, 2 * first.cost);
    assert.ok(counter.spent > counter.limit);
  });

  it('compute and count a variable once, on first use', () => {
    const counter = new CostCounter(1000);
    const variables = new LazyStruct('kubernetes.variables');
    let computed = 0;
    variables.define('double', () => {
      computed += 1;
      return evaluate('i * 2', { i: 21 }, { ...BUDGET, counter }).value as CelValue;
    });
    variables.define('unused', () => assert.fail('was computed'));
    const { value, cost } = evaluate(
      'variables.double == 42 && variables.double > 0',
      { variables },
      { ...BUDGET, counter },
    );
    assert.equal(value, true);
    assert.equal(computed, 1);
    assert.equal(counter.spent, cost + 2);
  });

  it('fail where a variable fails, even in a presence test', () => {
    const variables = new LazyStruct('kubernetes.variables');
    variables.define('broken', () => evaluate('1 / 0').value as EvaluationFailure);
    assert.equal(messageOf(evaluate('variables.broken == 1', { variables })), 'division by zero');
    assert.equal(messageOf(evaluate('has(variables.broken)', { variables })), 'division by zero');
    assert.equal(evaluate('has(variables.absent)', { variables }).value, false);
  });

  it('can be nested', () => {
    const program = environment.compile('variables.depth + 1');
    const nested = (depth: number): CelValue => {
      const variables = new LazyStruct('kubernetes.variables');
      variables.define('depth', () => (depth === 0 ? 0 : nested(depth - 1)));
      return program.run({ variables }, BUDGET).value as CelValue;
    };
    assert.equal(nested(10), 11);
  });

  it('share no state', () => {
    const program = environment.compile('object.name');
    assert.equal(program.run({ object: { name: 'a' } }, BUDGET).value, 'a');
    assert.match(messageOf(program.run({}, BUDGET)), /no such attribute\(s\): object/);
  });
});

describe('hostile documents', () => {
  it('have only their own keys', () => {
    for (const name of ['constructor', 'toString', 'hasOwnProperty', 'length', 'valueOf', 'map', 'value']) {
      const key = name === 'map' ? "['map']" : `.${name}`;
      assert.equal(messageOf(evaluate(`object${key}`, { object: {} })), `no such key: ${name}`);
      assert.equal(messageOf(evaluate(`object.x${key}`, { object: { x: 'text' } })), `no such key: ${name}`);
    }
    assert.equal(evaluate('has(object.constructor) || has(object.x.length)', { object: { x: 'text' } }).value, false);
    assert.equal(evaluate("object.?toString.hasValue() || 'valueOf' in object", { object: {} }).value, false);
  });

  it('may have keys with the names of inherited properties', () => {
    const object = JSON.parse('{"__proto__": {"admin": true}, "constructor": 1, "hasOwnProperty": 2}') as CelValue;
    assert.equal(evaluate("object['__proto__'].admin && object.constructor == 1", { object }).value, true);
    assert.equal(evaluate('object.map(k, k).size()', { object }).value, 3);
    assert.equal(evaluate("{'__proto__': 1}['__proto__']").value, 1);
  });

  it('may be deeply nested', () => {
    const object = JSON.parse(`${'{"a":['.repeat(10_000)}1${']}'.repeat(10_000)}`) as CelValue;
    assert.equal(evaluate('object == object && object.a[0].a.size() == 1', { object }).value, true);
  });

  it('do not expose the representation of values', () => {
    const object = { double: environment.compile('1.0').run({}, BUDGET).value as CelValue };
    assert.equal(messageOf(evaluate('object.double.value', { object })), 'no such key: value');
  });
});

describe('structs', () => {
  it('are created by their factory, which may fail', () => {
    assert.equal(evaluate('Point{x: 1, y: 2}.x').value, 1);
    assert.equal(evaluate('Point{x: 1, y: 2}.x').cost, 42);
    assert.equal(evaluate('has(Point{x: 1}.y)').value, false);
    assert.equal(messageOf(evaluate('Point{x: i}', { i: 13 })), 'an unlucky number');
  });

  it('have optional fields', () => {
    const { value } = evaluate('Point{x: 1, ?y: optional.none()}');
    assert.ok(value instanceof Point);
    assert.deepEqual([...value.fields], [['x', 1]]);
  });
});

describe('failures', () => {
  it('name the failed expression', () => {
    const program = environment.compile('object.name + object.nope.x');
    assert.throws(
      () => program.evaluate({ object: { name: 'a' } }, BUDGET),
      (error) => {
        assert.ok(error instanceof CelError);
        assert.equal(error.message, 'no such key: nope');
        assert.equal(error.issues[0]?.column, 21);
        return true;
      },
    );
  });

  it('in literals are found at compile time', () => {
    assert.throws(() => environment.compile("int('x') == 1"), /type conversion error from 'string' to 'int'/);
  });

  it('of the left operand of == are returned', () => {
    class Refusing extends CelObject {
      readonly typeName = 'refusing';
      equals(): boolean {
        return false;
      }
      override compareEqual(): EvaluationFailure {
        return new EvaluationFailure('no such overload');
      }
    }
    assert.equal(messageOf(evaluate('object == 1', { object: new Refusing() })), 'no such overload');
    assert.equal(evaluate('object != 1', { object: new Refusing() }).value, true);
  });
});
