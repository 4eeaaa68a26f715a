import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { load } from 'js-yaml';
import type { JsonValue } from '../values/index.ts';
import { compareNaturally, YAML_V3, yamlText } from './yaml-text.ts';

const words = (count: number): string => Array.from({ length: count }, (_, index) => `word${index}`).join(' ');

/** As `sigs.k8s.io/yaml` writes them. */
const CASES: readonly (readonly [JsonValue, string])[] = [
  [{}, '{}\n'],
  [[], '[]\n'],
  ['a', 'a\n'],
  [{ b: 1, a: { c: [] } }, 'a:\n  c: []\nb: 1\n'],
  [{ list: [1, { a: 1, b: [2] }, [3, [4]]] }, 'list:\n- 1\n- a: 1\n  b:\n  - 2\n- - 3\n  - - 4\n'],
  [{ a: null, b: true, c: 1.5, d: 1e21, e: -0.1 }, 'a: null\nb: true\nc: 1.5\nd: 1e+21\ne: -0.1\n'],
  // Texts that YAML 1.1 takes for something else are in double quotes, others that need quotes in single ones.
  [
    ['', 'yes', 'Null', '~', '80', '0x1F', '1.5', '1e3', '1_000', '12:30', '2026-01-02', '.inf', '<<'],
    '- ""\n- "yes"\n- "Null"\n- "~"\n- "80"\n- "0x1F"\n- "1.5"\n- "1e3"\n- "1_000"\n- "12:30"\n- "2026-01-02"\n- ".inf"\n- "<<"\n',
  ],
  [
    ['a: b', 'a #b', '- a', '? a', '*a', '@a', "it's: so", ' a', 'a ', 'a:', '---', '%a', '{a}'],
    "- 'a: b'\n- 'a #b'\n- '- a'\n- '? a'\n- '*a'\n- '@a'\n- 'it''s: so'\n- ' a'\n- 'a '\n- 'a:'\n- '---'\n- '%a'\n- '{a}'\n",
  ],
  [
    ['a:b', 'a#b', '-a', "it's", 'v1.2.3', '10m', 'a, b', '=', '1.2.3.4', 'x[0]'],
    "- a:b\n- a#b\n- -a\n- it's\n- v1.2.3\n- 10m\n- a, b\n- =\n- 1.2.3.4\n- x[0]\n",
  ],
  [
    { a: 'x\ny\n', b: 'x\ny', c: 'x\n\n', d: ' x\ny', e: '\n' },
    'a: |\n  x\n  y\nb: |-\n  x\n  y\nc: |+\n  x\n\nd: |2-\n   x\n  y\ne: |2+\n\n',
  ],
  [
    ['tab\there', 'x \ny', 'bell\u0007', 'ünï 😀', 'x\ny '],
    '- "tab\\there"\n- "x \\ny"\n- "bell\\a"\n- "ünï \\U0001F600"\n- "x\\ny "\n',
  ],
  [{ 'a: b': 1, yes: 2, '1': 3 }, '"1": 3\n\'a: b\': 1\n"yes": 2\n'],
  // A line ends at the first space behind column 80.
  [{ text: words(14) }, `text: ${words(13)}\n  word13\n`],
];

describe('YAML as Kubernetes writes it', () => {
  for (const [value, text] of CASES) {
    it(`writes ${JSON.stringify(value).slice(0, 60)}`, () => {
      assert.equal(yamlText(value), text);
    });
  }

  it('indents lists, and has long lines, as yaml.v3 writes', () => {
    assert.equal(yamlText({ a: [1, { b: [2] }] }, YAML_V3), 'a:\n  - 1\n  - b:\n      - 2\n');
    assert.equal(yamlText([words(20)], YAML_V3), `- ${words(20)}\n`);
  });

  it('is read as the same value', () => {
    const texts = fc.oneof(
      fc.string({ unit: fc.constantFrom(...Array.from('ab0 1:#-\n\t\'"\\,[]{}&*!|>%@`?~.=<_eüx')) }),
      fc.string({ unit: 'binary' }),
      fc.array(fc.constantFrom('long', 'words', ':', '#', '"', ' '), { maxLength: 60 }).map((parts) => parts.join(' ')),
    );
    const keys = texts.filter((key) => key !== '__proto__' && key !== '<<');
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        texts,
        fc.integer(),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie('value'), { maxLength: 4 }),
        fc.dictionary(keys, tie('value'), { maxKeys: 4, noNullPrototype: true }),
      ),
    }));
    fc.assert(
      fc.property(value, (one) => {
        // In a list: parsers differ about the indentation of a text that is a whole document.
        assert.deepEqual(load(yamlText([one as JsonValue])), [one]);
      }),
    );
  });
});

describe('the natural order of keys', () => {
  it('has numbers by their value, and letters behind other characters', () => {
    const keys = ['a', 'a1', 'a2', 'a10', 'a-b', 'ab', 'B', 'b', '1', '10', '2', 'a01'];
    assert.deepEqual(keys.toReversed().sort(compareNaturally), [
      '1',
      '2',
      '10',
      'B',
      'a',
      'a-b',
      'a1',
      'a01',
      'a2',
      'a10',
      'ab',
      'b',
    ]);
  });

  it('has letters first behind a digit, as since yaml.v3', () => {
    const keys = ['a1-', 'a1b', '0o7', ':'];
    const sorted = keys.toSorted((left, right) => compareNaturally(left, right, true));
    assert.deepEqual(sorted, [':', '0o7', 'a1b', 'a1-']);
    assert.ok(compareNaturally('a1-', 'a1b') < 0);
  });
});
