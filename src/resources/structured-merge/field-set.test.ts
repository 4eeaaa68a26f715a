import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import fc from 'fast-check';
import type { FieldsV1 } from '../kubernetes-object.ts';
import { FieldSet } from './field-set.ts';
import { fieldSetOf } from './fields-of.ts';
import { MAX_MERGE_DEPTH, MergeError } from './merge-error.ts';
import { pathText } from './path-element.ts';
import { WIDGET_SCHEMA } from './testing/widget-schema.ts';

function texts(set: FieldSet): readonly string[] {
  return [...set.paths()].map(pathText);
}

const FIELDS = {
  'f:metadata': { 'f:labels': { '.': {}, 'f:a': {} } },
  'f:spec': {
    'f:ports': { 'k:{"port":80,"protocol":"TCP"}': { '.': {}, 'f:name': {} } },
    'f:tags': { 'v:"<a>"': {}, 'v:1': {}, 'i:0': {} },
  },
};

describe('FieldSet', () => {
  it('reads FieldsV1 and names the paths', () => {
    assert.deepEqual(texts(FieldSet.parse(FIELDS)), [
      '.metadata.labels',
      '.metadata.labels.a',
      '.spec.ports[port=80,protocol="TCP"]',
      '.spec.ports[port=80,protocol="TCP"].name',
      '.spec.tags[=1]',
      '.spec.tags[="<a>"]',
      '.spec.tags[0]',
    ]);
  });

  it('writes fields in order: names, keys, values, indexes; texts with the escapes of Go', () => {
    const fields = FieldSet.parse({
      'i:1': {},
      'v:"<"': {},
      'v:2': {},
      'k:{"b":1,"a":"x"}': {},
      'f:b': {},
      'f:a': { 'f:c': {}, '.': {} },
    }).toFieldsV1();
    assert.equal(
      JSON.stringify(fields),
      '{"f:a":{".":{},"f:c":{}},"f:b":{},"k:{\\"a\\":\\"x\\",\\"b\\":1}":{},"v:2":{},"v:\\"\\\\u003c\\"":{},"i:1":{}}',
    );
  });

  it('ignores unknown kinds of elements', () => {
    assert.deepEqual(texts(FieldSet.parse({ 'x:1': {}, 'f:a': {} })), ['.a']);
  });

  for (const [fields, message] of [
    [[], /expected a set of fields to be an object, got \[\]/],
    [{ a: {} }, /key must be 2 characters long: a/],
    [{ abc: {} }, /missing colon: abc/],
    [{ 'v:x': {} }, /expected JSON: x/],
    [{ 'k:1': {} }, /expected an object behind k: k:1/],
    [{ 'i:x': {} }, /expected a number behind i: i:x/],
    [{ 'f:a': 1 }, /expected a set of fields to be an object, got 1/],
  ] as const) {
    it(`refuses ${JSON.stringify(fields)}`, () => {
      assert.throws(() => FieldSet.parse(fields), { code: 'fields-malformed', message });
    });
  }

  it('limits nesting', () => {
    let deep: FieldsV1 = {};
    for (let depth = 0; depth <= MAX_MERGE_DEPTH; depth++) {
      deep = { 'f:a': deep };
    }
    assert.throws(() => FieldSet.parse(deep), MergeError);
  });

  it('keeps any names', () => {
    const fields = JSON.parse('{"f:__proto__":{"f:x":{}},"f:constructor":{}}') as FieldsV1;
    assert.deepEqual(texts(FieldSet.parse(fields)), ['.constructor', '.__proto__.x']);
  });

  it('returns the leaves', () => {
    assert.deepEqual(texts(FieldSet.parse({ 'f:a': { '.': {}, 'f:b': {} }, 'f:c': {} }).leaves()), ['.c', '.a.b']);
  });

  it('removes subtrees, or single paths', () => {
    const set = FieldSet.parse({ 'f:a': { '.': {}, 'f:b': {} }, 'f:c': {} });
    const parent = FieldSet.parse({ 'f:a': {} });
    assert.deepEqual(texts(set.difference(parent)), ['.c', '.a.b']);
    assert.deepEqual(texts(set.without(parent)), ['.c']);
  });
});

describe('fieldSetOf', () => {
  it('contains leaves, elements, keys of maps, and empty values', () => {
    const object = {
      metadata: { labels: { a: '1' }, finalizers: ['x'] },
      spec: {
        ports: [
          { port: 80, tags: [] },
          { port: 81, protocol: 'UDP' },
        ],
        tags: ['a', 'a', 'b'],
        steps: ['a'],
        selector: { a: 'x' },
        groups: { g: { a: '1' } },
        free: { list: [{ a: 1 }], deep: { x: {} } },
        maybe: null,
      },
    };
    assert.deepEqual(texts(fieldSetOf(object, WIDGET_SCHEMA)), [
      '.metadata.finalizers[="x"]',
      '.metadata.labels.a',
      '.spec.maybe',
      '.spec.selector',
      '.spec.steps',
      '.spec.free.deep',
      '.spec.free.list',
      '.spec.free.deep.x',
      '.spec.groups.g',
      '.spec.groups.g.a',
      '.spec.ports[port=80,protocol="TCP"]',
      '.spec.ports[port=81,protocol="UDP"]',
      '.spec.ports[port=80,protocol="TCP"].port',
      '.spec.ports[port=81,protocol="UDP"].port',
      '.spec.ports[port=81,protocol="UDP"].protocol',
      '.spec.tags[="a"]',
      '.spec.tags[="b"]',
    ]);
  });
});

const { fields: fieldsV1 } = fc.letrec<{ fields: FieldsV1 }>((tie) => ({
  fields: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    fc.constant<FieldsV1>({}),
    fc.dictionary(
      fc.constantFrom('f:a', 'f:b', 'f:__proto__', 'v:1', 'v:"x"', 'k:{"n":"a"}', 'i:2', '.'),
      tie('fields'),
      {
        maxKeys: 4,
      },
    ),
  ),
}));
const sets = fieldsV1.map((fields) => FieldSet.parse(fields));

test('parsing a formatted set gives an equal set', () => {
  fc.assert(
    fc.property(sets, (set) => {
      const copy = FieldSet.parse(JSON.parse(JSON.stringify(set.toFieldsV1())));
      assert.ok(copy.equals(set));
      assert.equal(JSON.stringify(copy.toFieldsV1()), JSON.stringify(set.toFieldsV1()));
      assert.equal(set.size, texts(set).length);
    }),
    { numRuns: 500 },
  );
});

test('set operations equal those of sets of paths', () => {
  fc.assert(
    fc.property(sets, sets, (left, right) => {
      const mine = new Set(texts(left));
      const theirs = new Set(texts(right));
      const same = (set: FieldSet, expected: ReadonlySet<string>): void =>
        assert.deepEqual(texts(set).toSorted(), [...expected].toSorted());
      same(left.union(right), mine.union(theirs));
      same(left.intersection(right), mine.intersection(theirs));
      same(left.difference(right), mine.difference(theirs));
      const below = [...mine].filter((path) => ![...right.paths()].some((one) => path.startsWith(pathText(one))));
      assert.ok(below.every((path) => texts(left.without(right)).includes(path)));
      assert.equal(left.equals(right), mine.symmetricDifference(theirs).size === 0);
      assert.equal(left.isEmpty, mine.size === 0);
      assert.ok([...left.paths()].every((path) => left.has(path) && right.has(path) === theirs.has(pathText(path))));
    }),
    { numRuns: 500 },
  );
});

test('parsing any text throws only a MergeError', () => {
  const json = fc.letrec<{ json: unknown }>((tie) => ({
    json: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom<unknown>(null, 1, 'x', []),
      fc.dictionary(
        fc.oneof(fc.string({ maxLength: 6 }), fc.constantFrom('f:', 'v:', 'k:{', 'i:-1', '.')),
        tie('json'),
      ),
    ),
  })).json;
  fc.assert(
    fc.property(json, (value) => {
      try {
        FieldSet.parse(value);
      } catch (error) {
        assert.ok(error instanceof MergeError, String(error));
      }
    }),
    { numRuns: 1_000 },
  );
});
