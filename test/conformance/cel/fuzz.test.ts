import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { celEnv, isCelError, isCelList, isCelMap, isCelUint, parse, plan } from '@bufbuild/cel';
import fc from 'fast-check';
import { CelError, createEnvironment, DOUBLE, DYN, INT, listOf, mapOf, STRING } from '../../../src/cel/index.ts';
import type { Program } from '../../../src/cel/index.ts';
import { Cancellation, doubleOf, MapBuilder, toInt } from '../../../src/cel/evaluate/index.ts';
import { CelUint, EvaluationFailure } from '../../../src/cel/model/value.ts';
import type { CelValue } from '../../../src/cel/model/value.ts';
import { expressionArbitrary } from './expression-arbitrary.ts';
import type { ExpressionType } from './expression-arbitrary.ts';
import { showValue } from './show-value.ts';

const environment = createEnvironment({
  variables: { object: DYN, i: INT, s: STRING, d: DOUBLE, l: listOf(INT), m: mapOf(STRING, INT) },
});
const bindings = {
  object: { name: 'web', list: [1, 'a', null, { x: 1.5 }], flag: true },
  i: 7,
  s: 'höhe 🚀 und mehr, als in ein Wort paßt',
  d: 2.5,
  l: [3, 1, 2],
  m: { k: 1 },
};

const TYPES: readonly ExpressionType[] = ['int', 'uint', 'double', 'string', 'bool', 'list', 'map', 'optional', 'dyn'];

function anyExpression(depth: number, isWhole: boolean): fc.Arbitrary<string> {
  const types = TYPES.filter((type) => isWhole || type !== 'optional');
  return fc.oneof(...types.map((type) => expressionArbitrary(type, depth, { isWhole })));
}

/** A program, or undefined when the expression does not compile: which has to be a CelError. */
function compile(text: string): Program | undefined {
  try {
    return environment.compile(text);
  } catch (error) {
    assert.ok(error instanceof CelError, `${text}: ${String(error)}`);
    return undefined;
  }
}

/** What one step may cost without the budget being looked at: everything between two elements of a loop. */
function costOfOneStep(program: Program): number {
  return program.checked.nodeCount * 50;
}

describe('evaluation of any expression', () => {
  it('returns a value or a failure, stops at the budget, and always costs the same', () => {
    fc.assert(
      fc.property(anyExpression(4, true), fc.nat(200), (text, budget) => {
        const program = compile(text);
        if (program === undefined) {
          return;
        }
        const whole = program.run(bindings, { budget: 1_000_000 });
        const limited = program.run(bindings, { budget });
        assert.equal(limited.value instanceof Cancellation, whole.cost > budget, text);
        if (limited.value instanceof Cancellation) {
          assert.ok(limited.cost <= budget + costOfOneStep(program), text);
        } else {
          assert.equal(limited.cost, whole.cost, text);
        }
        assert.equal(program.run(bindings, { budget: 1_000_000 }).cost, whole.cost, text);
      }),
      { numRuns: 1500 },
    );
  });

  it('never throws for invalid expressions', () => {
    const pieces = [
      '1',
      'object',
      '.',
      '[',
      ']',
      '(',
      ')',
      '{',
      '}',
      '?',
      ':',
      ',',
      '+',
      '&&',
      "'a'",
      'all',
      'x',
      '!',
      'in',
    ];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 12 }), (words) => {
        compile(words.join(' '))?.run(bindings, { budget: 1000 });
      }),
      { numRuns: 1500 },
    );
  });
});

/** What the other implementation gives, in our form; undefined for what it cannot do. */
function theirValue(text: string): string | undefined {
  const evaluate = plan(celEnv(), parse(text));
  const value = evaluate({
    ...bindings,
    i: 7n,
    l: [3n, 1n, 2n],
    m: new Map([['k', 1n]]),
    object: { name: 'web', list: [1n, 'a', null, { x: 1.5 }], flag: true },
  });
  return isCelError(value) ? 'failure' : showValue(toOurs(value));
}

function toOurs(value: unknown): CelValue {
  if (typeof value === 'bigint') {
    return toInt(value);
  }
  if (typeof value === 'number') {
    return doubleOf(value);
  }
  if (isCelUint(value)) {
    return new CelUint((value as { readonly value: bigint }).value);
  }
  if (isCelList(value)) {
    return Array.from(value, toOurs);
  }
  if (isCelMap(value)) {
    const builder = new MapBuilder();
    for (const [key, entry] of value) {
      builder.set(toOurs(key), toOurs(entry));
    }
    return builder.build();
  }
  return value as CelValue;
}

describe('evaluation beside another implementation', () => {
  it('returns the same values for common features', () => {
    fc.assert(
      fc.property(anyExpression(3, false), (text) => {
        const program = compile(text);
        if (program === undefined) {
          return;
        }
        const { value } = program.run(bindings, { budget: 1_000_000 });
        assert.ok(!(value instanceof Cancellation), text);
        const ours = value instanceof EvaluationFailure ? 'failure' : showValue(value);
        assert.equal(ours, theirValue(text), text);
      }),
      { numRuns: 500 },
    );
  });
});
