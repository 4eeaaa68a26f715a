import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parseFieldSelector } from './field-selector.ts';
import { parseLabelSelector } from './label-selector-text.ts';
import { labelSelector, labelSelectorErrors, Selector, SelectorError } from './selectors.ts';

describe('label selectors as text', () => {
  const cases: readonly (readonly [text: string, matching: readonly object[], other: readonly object[]])[] = [
    ['', [{}, { a: 'b' }], []],
    ['a', [{ a: '' }], [{}]],
    ['!a', [{ b: '' }], [{ a: '' }]],
    ['a=b', [{ a: 'b' }], [{ a: 'c' }, {}]],
    ['a==b', [{ a: 'b' }], [{ a: 'c' }, {}]],
    ['a!=b', [{ a: 'c' }, {}], [{ a: 'b' }]],
    ['a=', [{ a: '' }], [{ a: 'b' }, {}]],
    ['a in (b, c)', [{ a: 'b' }, { a: 'c' }], [{ a: 'd' }, {}]],
    ['a notin (b,c)', [{ a: 'd' }, {}], [{ a: 'b' }]],
    ['a in ()', [{ a: '' }], [{ a: 'b' }]],
    ['a>4,a<6', [{ a: '5' }], [{ a: '4' }, { a: 'x' }, {}]],
    ['a=b,!c', [{ a: 'b' }], [{ a: 'b', c: '' }, {}]],
    ['in in (in)', [{ in: 'in' }], [{}]],
  ];
  for (const [text, matching, other] of cases) {
    it(`select by "${text}"`, () => {
      const selector = parseLabelSelector(text);
      assert.ok(matching.every((labels) => selector.matches(labels as Record<string, string>)));
      assert.ok(!other.some((labels) => selector.matches(labels as Record<string, string>)));
    });
  }

  it('ignore properties of Object.prototype', () => {
    assert.ok(!parseLabelSelector('constructor').matches({}));
    assert.ok(parseLabelSelector('!constructor').matches({}));
  });

  it('that are invalid are refused with messages of API servers', () => {
    assert.throws(
      () => parseLabelSelector('a b'),
      new SelectorError("unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
    );
    assert.throws(() => parseLabelSelector('a=b c'), new SelectorError("found 'c', expected: ',' or 'end of string'"));
    assert.throws(() => parseLabelSelector('a,'), new SelectorError("found '', expected: identifier after ','"));
  });

  it('stay equal when they are formatted and parsed', () => {
    const name = fc.stringMatching(/^[a-z]([a-z0-9]{0,5})$/u);
    const requirement = fc.oneof(
      fc.record({ key: name, operator: fc.constantFrom('exists' as const, '!' as const), values: fc.constant([]) }),
      fc.record({ key: name, operator: fc.constantFrom('=' as const, '!=' as const), values: fc.tuple(name) }),
      fc.record({
        key: name,
        operator: fc.constantFrom('in' as const, 'notin' as const),
        values: fc.uniqueArray(name, { minLength: 1, maxLength: 3 }).map((values) => values.toSorted()),
      }),
    );
    fc.assert(
      fc.property(fc.array(requirement, { maxLength: 4 }), (requirements) => {
        const selector = new Selector(requirements);
        const again = parseLabelSelector(selector.toString());
        assert.deepEqual(JSON.stringify(again.requirements), JSON.stringify(selector.requirements));
      }),
    );
  });

  it('are parsed or refused, for any text', () => {
    const letters = fc.constantFrom(...'ab=!(),<> in not/.%"'.split(''), 'in', 'notin');
    fc.assert(
      fc.property(
        fc.array(letters).map((parts) => parts.join('')),
        (text) => {
          try {
            parseLabelSelector(text);
            parseFieldSelector(text);
          } catch (error) {
            assert.ok(error instanceof SelectorError);
          }
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe('label selectors as objects', () => {
  it('select by labels and expressions', () => {
    const selector = labelSelector({
      matchLabels: { a: 'b' },
      matchExpressions: [
        { key: 'c', operator: 'In', values: ['d', 'e'] },
        { key: 'f', operator: 'DoesNotExist' },
      ],
    });
    assert.ok(selector.matches({ a: 'b', c: 'e' }));
    assert.ok(!selector.matches({ a: 'b', c: 'e', f: '' }));
    assert.equal(selector.toString(), 'a=b,c in (d,e),!f');
  });

  it('select nothing when absent, and everything when empty', () => {
    assert.ok(!labelSelector(undefined).matches({}));
    assert.ok(labelSelector({}).matches({}));
  });

  it('are refused with mistakes and their paths', () => {
    const errors = labelSelectorErrors(
      {
        matchExpressions: [
          { key: 'a b', operator: 'In' },
          { key: 'a', operator: 'Is', values: [] },
        ],
      },
      'spec.selector',
    );
    assert.deepEqual(
      errors.map(({ field }) => field),
      [
        'spec.selector.matchExpressions[0].values',
        'spec.selector.matchExpressions[0].key',
        'spec.selector.matchExpressions[1].operator',
      ],
    );
    assert.throws(
      () => labelSelector({ matchExpressions: [{ key: 'a', operator: 'Is' }] }),
      /"Is" is not a valid label selector operator/u,
    );
  });
});

describe('field selectors', () => {
  it('compare fields, absent ones as empty', () => {
    const selector = parseFieldSelector('metadata.name=a,spec.nodeName!=b');
    assert.ok(selector.matches({ 'metadata.name': 'a' }));
    assert.ok(!selector.matches({ 'metadata.name': 'a', 'spec.nodeName': 'b' }));
    assert.equal(selector.exactValueOf('metadata.name'), 'a');
  });

  it('escape special characters', () => {
    const [requirement] = parseFieldSelector(String.raw`a=x\,y\=z\\`).requirements;
    assert.equal(requirement?.value, 'x,y=z\\');
    assert.equal(parseFieldSelector(String.raw`a=x\,y`).toString(), String.raw`a=x\,y`);
  });

  it('that are invalid are refused with messages of API servers', () => {
    assert.throws(() => parseFieldSelector('a'), new SelectorError("invalid selector: 'a'; can't understand 'a'"));
    assert.throws(
      () => parseFieldSelector('a=b=c'),
      new SelectorError('invalid field selector: unescaped character in value: 61'),
    );
  });
});
