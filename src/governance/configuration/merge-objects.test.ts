import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { valueText } from '../../go/index.ts';
import { isJsonObject, parseJson } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import { ComparisonBudget, ComparisonError } from './comparison-budget.ts';
import { equivalence } from './equivalent-objects.ts';
import { ListKeys } from './list-keys.ts';
import type { ListKey } from './list-keys.ts';
import { mergeValues } from './merge-objects.ts';
import type { MergeContext } from './merge-objects.ts';
import { jsonValues } from './testing/json-values.ts';

function context(listKeys: readonly ListKey[] = [], zeroValueEqualsNil = false): MergeContext {
  return { zeroValueEqualsNil, budget: new ComparisonBudget(), listKeys: ListKeys.of(listKeys) };
}

const merge = (desired: JsonValue, live: JsonValue, listKeys: readonly ListKey[] = []): JsonValue =>
  mergeValues(desired, live, context(listKeys)).value;

interface Case {
  readonly when: string;
  readonly desired: JsonValue;
  readonly live: JsonValue;
  readonly merged: JsonValue;
}

const CASES: readonly Case[] = [
  { when: 'a scalar of the template wins', desired: { a: 1 }, live: { a: 2, b: 3 }, merged: { a: 1, b: 3 } },
  { when: 'a map replaces what is no map', desired: { a: { b: 1 } }, live: { a: 'x' }, merged: { a: { b: 1 } } },
  { when: 'a list replaces what is no list', desired: { a: [1] }, live: { a: 'x' }, merged: { a: [1] } },
  { when: 'null does not care about a map', desired: { a: null }, live: { a: { b: 1 } }, merged: { a: { b: 1 } } },
  { when: 'null replaces a scalar', desired: { a: null }, live: { a: 1 }, merged: { a: null } },
  { when: 'maps are merged deeply', desired: { a: { b: 1 } }, live: { a: { c: 2 } }, merged: { a: { b: 1, c: 2 } } },
  { when: 'live items that no item matches are last', desired: ['b'], live: ['a', 'b', 'c'], merged: ['b', 'a', 'c'] },
  {
    when: 'an item that matches nothing is added',
    desired: [{ a: 1 }],
    live: [{ a: 2 }],
    merged: [{ a: 1 }, { a: 2 }],
  },
  { when: 'duplicates of the live list stay', desired: ['a'], live: ['a', 'a', 'a'], merged: ['a', 'a', 'a'] },
  {
    when: 'an item that is part of a live one matches it',
    desired: [{ port: 80 }],
    live: [{ port: 80, protocol: 'TCP' }],
    merged: [{ port: 80, protocol: 'TCP' }],
  },
  {
    when: 'items with the same name are merged',
    desired: [{ name: 'a', image: 'new' }],
    live: [
      { name: 'b', image: 'b' },
      { name: 'a', image: 'old', tty: true },
    ],
    merged: [
      { name: 'a', image: 'new', tty: true },
      { name: 'b', image: 'b' },
    ],
  },
  {
    when: 'the second of two items with the same name is added',
    desired: [
      { name: 'a', value: 1 },
      { name: 'a', value: 2 },
    ],
    live: [{ name: 'a', value: 0 }],
    merged: [
      { name: 'a', value: 1 },
      { name: 'a', value: 2 },
    ],
  },
  {
    when: 'an empty name identifies nothing',
    desired: [{ name: '', a: 1 }],
    live: [{ name: '', a: 2 }],
    merged: [
      { name: '', a: 1 },
      { name: '', a: 2 },
    ],
  },
  {
    when: 'no other field identifies items',
    desired: [{ key: 'a', v: 1 }],
    live: [{ key: 'a', v: 2 }],
    merged: [
      { key: 'a', v: 1 },
      { key: 'a', v: 2 },
    ],
  },
  { when: 'an equal quantity matches', desired: [{ cpu: '0.1' }], live: [{ cpu: '100m' }], merged: [{ cpu: '0.1' }] },
  { when: 'a zero value matches an absent one', desired: [{ a: 1, b: 0 }], live: [{ a: 1 }], merged: [{ a: 1, b: 0 }] },
];

describe('merging a template into a live value', () => {
  for (const { when, desired, live, merged } of CASES) {
    it(when, () => assert.deepEqual(merge(desired, live), merged));
  }

  it('says whether the template has a key that the live object lacks', () => {
    const isMissing = (desired: JsonValue, live: JsonValue): boolean =>
      mergeValues(desired, live, context()).hasMissingKey;
    assert.equal(isMissing({ a: { b: 0 } }, { a: { c: 1 } }), true);
    assert.equal(isMissing({ a: { c: 0 } }, { a: { c: 1, d: 1 } }), false);
    assert.equal(isMissing([{ a: 1, b: 0 }], [{ a: 1 }]), true);
    assert.equal(isMissing([{ a: 2 }], [{ a: 1 }]), false, 'of items that match only');
  });

  it('keeps keys such as __proto__ as data', () => {
    const [desired, live] = ['{"__proto__":{"a":1}}', '{"__proto__":{"b":2},"constructor":3}'].map(parseJson) as [
      JsonObject,
      JsonObject,
    ];
    const merged = merge(desired, live) as JsonObject;
    assert.equal(JSON.stringify(merged), '{"__proto__":{"b":2,"a":1},"constructor":3}');
    assert.equal(Object.getPrototypeOf(merged), Object.prototype);
  });
});

describe('list keys', () => {
  const ports = { spec: { ports: [{ port: 80, nodePort: 1 }] } };
  const livePorts = { spec: { ports: [{ port: 443 }, { port: 80, nodePort: 2, protocol: 'TCP' }] } };
  const edited = { spec: { ports: [{ port: 80, nodePort: 1, protocol: 'TCP' }, { port: 443 }] } };

  it('edit an item in place', () => {
    assert.deepEqual(merge(ports, livePorts, [{ path: 'spec.ports', key: 'port' }]), edited);
  });

  it('apply at their path only', () => {
    for (const path of ['ports', 'spec', 'spec.ports.port', 'ports.spec']) {
      assert.notDeepEqual(merge(ports, livePorts, [{ path, key: 'port' }]), edited, path);
    }
  });

  for (const path of ['c.ports', 'c[].ports', 'c[].ports[]']) {
    it(`apply in the items of lists: ${path}`, () => {
      const withPort = (port: JsonObject): JsonObject => ({ c: [{ name: 'a', ports: [port] }] });
      const [desired, live] = [withPort({ p: '1', x: 1 }), withPort({ p: 1, x: 2 })];
      assert.deepEqual(merge(desired, live, [{ path, key: 'p' }]), desired);
      assert.notDeepEqual(merge(desired, live), desired);
    });
  }

  it('identify items instead of the name', () => {
    const items = (name: string): JsonValue => [{ id: 'x', name }];
    assert.deepEqual(merge({ l: items('new') }, { l: items('old') }, [{ path: 'l', key: 'id' }]), { l: items('new') });
    assert.deepEqual(
      merge({ l: [{ id: 'y', name: 'a' }] }, { l: [{ id: 'x', name: 'a' }] }, [{ path: 'l', key: 'id' }]),
      {
        l: [
          { id: 'y', name: 'a' },
          { id: 'x', name: 'a' },
        ],
      },
    );
  });

  it('are refused when they are no paths', () => {
    for (const path of ['', 'a..b', '[]', 'a[0]', 'a.[]', 'a[][]']) {
      assert.throws(() => ListKeys.of([{ path, key: 'k' }]), {
        code: 'invalid-list-key',
        message: /expected names of fields/,
      });
    }
    assert.throws(() => ListKeys.of([{ path: 'a', key: '' }]), { code: 'invalid-list-key' });
  });
});

/** The algorithm of config-policy-controller, comparing every live item with every item of the template. */
function naiveMerge(desired: JsonValue, live: JsonValue | undefined, key: string, zero: boolean): JsonValue {
  if (isJsonObject(desired)) {
    return isJsonObject(live) ? naiveMaps(desired, live, zero) : desired;
  }
  if (Array.isArray(desired)) {
    return Array.isArray(live) && live.length > 0 ? naiveLists(desired, live, key, zero) : desired;
  }
  return desired === null && isJsonObject(live) ? live : desired;
}

function naiveMaps(desired: JsonObject, live: JsonObject, zero: boolean): JsonObject {
  const result: JsonObject = { ...desired };
  for (const [key, value] of Object.entries(live)) {
    result[key] = Object.hasOwn(desired, key) ? naiveMerge(desired[key] ?? null, value, 'name', zero) : value;
  }
  return result;
}

function naiveLists(desired: JsonValue[], live: JsonValue[], key: string, zero: boolean): JsonValue[] {
  const result = [...desired];
  const used = new Set<number>();
  const seen = new Set<string>();
  for (const item of live) {
    const text = valueText(item);
    const copies = live.filter((other) => valueText(other) === text).length;
    if (seen.has(text)) {
      continue;
    }
    seen.add(text);
    let count = 0;
    for (const [index, wanted] of desired.entries()) {
      if (used.has(index)) {
        continue;
      }
      const areMaps = isJsonObject(wanted) && isJsonObject(item);
      const merged = areMaps ? naiveMaps(wanted, item, zero) : wanted;
      const name = areMaps ? item[key] : undefined;
      const isSame = areMaps && typeof name === 'string' && name !== '' && wanted[key] === name;
      if (isSame || equivalence(merged, item, context([], zero)) !== 'different') {
        count++;
        result[index] = merged;
        used.add(index);
      }
      if (count === copies) {
        break;
      }
    }
    for (; count < copies; count++) {
      result.push(item);
    }
  }
  return result;
}

describe('merging lists by their fields', () => {
  it('gives what comparing all items gives', () => {
    fc.assert(
      fc.property(jsonValues(), jsonValues(), fc.boolean(), (desired, live, zero) => {
        const merged = mergeValues(desired, live, context([], zero)).value;
        assert.deepEqual(merged, naiveMerge(desired, live, 'name', zero));
      }),
      { numRuns: 2_000 },
    );
  });

  it('never changes its input', () => {
    fc.assert(
      fc.property(jsonValues(), jsonValues(), (desired, live) => {
        const before = JSON.stringify([desired, live]);
        mergeValues(desired, live, context());
        assert.equal(JSON.stringify([desired, live]), before);
      }),
    );
  });

  const many = (of: (index: number) => JsonValue): JsonValue[] =>
    Array.from({ length: 10_000 }, (_, index) => of(index));

  it('takes few steps for long lists', () => {
    const lists: readonly (readonly [JsonValue[], JsonValue[]])[] = [
      [many(() => 'a'), many(() => 'a')],
      [many(() => ({ a: 1 })), many(() => ({ a: 1, b: 2 }))],
      [many((index) => `10.0.0.${index}`), many((index) => `10.0.1.${index}`)],
      [many((index) => ({ name: `a${index}`, v: 1 })), many((index) => ({ name: `a${9_999 - index}`, v: 2 }))],
      [
        many((index) => ({ protocol: 'TCP', port: index })),
        many((index) => ({ protocol: 'TCP', port: index + 5_000 })),
      ],
      [
        many((index) => ({ verbs: ['get'], resources: ['a', `r${index}`] })),
        many((index) => ({ verbs: ['get'], resources: ['a', `r${9_999 - index}`] })),
      ],
      [many((index) => ({ cpu: `${index}m` })), many((index) => ({ cpu: `${index}m`, x: 1 }))],
    ];
    for (const [desired, live] of lists) {
      mergeValues(desired, live, context());
    }
  });

  it('ends with an error for long lists whose items are all similar', () => {
    const [desired, live] = [many((index) => ({ a: { b: index } })), many((index) => ({ a: { b: -1 - index } }))];
    assert.throws(
      () => mergeValues(desired, live, context()),
      (error) => error instanceof ComparisonError && error.code === 'too-much-work',
    );
  });
});
