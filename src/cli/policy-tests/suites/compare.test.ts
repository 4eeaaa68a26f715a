import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { diff, type Verdict, type JsonValue } from '../../../engine/index.ts';
import { compareVerdict, withDefaultNamespace } from './compare.ts';
import { patternMatcher, type TextMatcher } from './text-matcher.ts';

const ALLOWED: Verdict = { allowed: true, auditAnnotations: null, warnings: null };
const DENIED: Verdict = { ...ALLOWED, allowed: false, message: 'no label', code: 403 };
const equals = (text: string): TextMatcher => ({ kind: 'equals', text });
const contains = (text: string): TextMatcher => ({ kind: 'contains', text });

const POD = { spec: { containers: [{ name: 'a', image: 'x' }] } };
const MUTATED = { spec: { containers: [{ name: 'a', image: 'z' }], hostPID: false } };
const patched = (before: JsonValue, after: JsonValue): Verdict => ({
  ...ALLOWED,
  patch: JSON.stringify(diff(before, after)),
});
const fields = (...args: Parameters<typeof compareVerdict>): string[] =>
  compareVerdict(...args).map(({ field }) => field);

describe('compareVerdict', () => {
  it('finds nothing where everything is as expected', () => {
    const expect = { allowed: false, message: equals('no label'), code: 403, warnings: [], auditAnnotations: {} };
    assert.deepEqual(compareVerdict(expect, DENIED, null), []);
    assert.deepEqual(compareVerdict({ allowed: true, unchanged: true }, ALLOWED, POD), []);
  });

  it('does not look at what is not expected', () => {
    assert.deepEqual(compareVerdict({ allowed: true }, { ...patched(POD, MUTATED), warnings: ['w'] }, POD), []);
  });

  it('compares the verdict, and shows the message of a denial that should be none', () => {
    assert.deepEqual(compareVerdict({ allowed: true }, DENIED, null), [
      { field: 'allowed', expected: 'true', actual: 'false' },
      { field: 'message', expected: 'nothing', actual: 'no label' },
    ]);
    assert.deepEqual(fields({ allowed: false }, ALLOWED, null), ['allowed']);
  });

  it('names the condition that a text does not meet', () => {
    const message: TextMatcher = { kind: 'all', matchers: [contains('no'), contains('labels'), patternMatcher('^x')] };
    assert.deepEqual(
      compareVerdict({ message }, DENIED, null).map(({ expected }) => expected),
      ['a text that contains "labels"', 'a text that matches ^x'],
    );
  });

  it('compares integers that a number would round', () => {
    const object = { count: 9007199254740993n } as unknown as JsonValue;
    const rounded = { count: 9007199254740992n, m: 1 } as unknown as JsonValue;
    assert.deepEqual(compareVerdict({ object }, ALLOWED, object), []);
    const [mismatch] = compareVerdict({ object }, ALLOWED, rounded);
    assert.deepEqual(
      [mismatch?.expected, mismatch?.actual],
      ['count: 9007199254740993\n', 'count: 9007199254740992\nm: 1\n'],
    );
    assert.deepEqual(fields({ objectContains: object }, ALLOWED, rounded), ['objectContains.count']);
  });

  it('compares messages as a whole, by a part, and by a pattern', () => {
    for (const matcher of [equals('no label'), contains('label'), patternMatcher('^no l'), patternMatcher('b')]) {
      assert.deepEqual(fields({ message: matcher }, DENIED, null), [], matcher.kind);
    }
    for (const matcher of [equals('no labe'), contains('labels'), patternMatcher('^label')]) {
      assert.deepEqual(fields({ message: matcher }, DENIED, null), ['message'], matcher.kind);
    }
    assert.deepEqual(fields({ message: contains('') }, ALLOWED, null), ['message'], 'no message is no empty one');
  });

  it('compares the code, also where there is none', () => {
    assert.deepEqual(fields({ code: 400 }, DENIED, null), ['code']);
    assert.deepEqual(fields({ code: 400 }, ALLOWED, null), ['code']);
  });

  it('compares warnings one by one, missing and needless ones too', () => {
    const response = { ...ALLOWED, warnings: ['a', 'b'] };
    assert.deepEqual(fields({ warnings: [equals('a'), contains('b')] }, response, null), []);
    assert.deepEqual(fields({ warnings: [equals('a')] }, response, null), ['warnings[1]']);
    assert.deepEqual(fields({ warnings: [equals('b'), equals('b'), equals('c')] }, response, null), [
      'warnings[0]',
      'warnings[2]',
    ]);
    assert.deepEqual(fields({ warnings: [] }, response, null), ['warnings[0]', 'warnings[1]']);
  });

  it('compares audit annotations, missing and needless ones too', () => {
    const response = { ...ALLOWED, auditAnnotations: { a: '1', b: '2' } };
    assert.deepEqual(fields({ auditAnnotations: { a: equals('1'), b: contains('2') } }, response, null), []);
    assert.deepEqual(fields({ auditAnnotations: { a: equals('2'), c: equals('') } }, response, null), [
      'auditAnnotations[a]',
      'auditAnnotations[c]',
      'auditAnnotations[b]',
    ]);
    const inherited = { auditAnnotations: { constructor: contains('') } };
    assert.deepEqual(fields(inherited, ALLOWED, null), ['auditAnnotations[constructor]']);
  });

  it('compares the patch, the object after it, and a part of that', () => {
    const response = patched(POD, MUTATED);
    assert.deepEqual(fields({ object: { ...MUTATED }, patch: diff(POD, MUTATED) }, response, POD), []);
    assert.deepEqual(fields({ object: POD }, response, POD), ['object']);
    assert.deepEqual(fields({ patch: [] }, response, POD), ['patch']);
    assert.deepEqual(fields({ unchanged: true }, response, POD), ['unchanged']);
    assert.deepEqual(fields({ objectContains: { spec: { containers: [{ image: 'z' }] } } }, response, POD), []);
    assert.deepEqual(fields({ objectContains: { spec: { containers: [{ image: 'x' }] } } }, response, POD), [
      'objectContains.spec.containers[0].image',
    ]);
    assert.deepEqual(fields({ objectContains: { spec: { containers: [] } } }, response, POD), [
      'objectContains.spec.containers',
    ]);
    assert.deepEqual(
      fields({ objectContains: { spec: { hostPID: null, hostIPC: null, 'a.b/c': 1 } } }, response, POD),
      ['objectContains.spec.hostPID', 'objectContains.spec["a.b/c"]'],
    );
    assert.deepEqual(fields({ objectContains: { spec: { hostPID: null } } }, ALLOWED, POD), []);
    assert.deepEqual(fields({ objectContains: { constructor: {} } }, ALLOWED, POD), ['objectContains.constructor']);
  });

  it('takes a patch that cannot be applied for a failure', () => {
    const patch = '[{"op":"remove","path":"/nope"}]';
    const [mismatch] = compareVerdict({ unchanged: true }, { ...ALLOWED, patch }, POD);
    assert.equal(mismatch?.field, 'patch');
  });

  it('shows differences of objects line by line', () => {
    const [mismatch] = compareVerdict({ object: POD }, patched(POD, MUTATED), POD);
    assert.deepEqual(
      mismatch?.diff?.filter(({ kind }) => kind !== 'same'),
      [
        { kind: 'expected', text: '    - image: x' },
        { kind: 'actual', text: '    - image: z' },
        { kind: 'actual', text: '  hostPID: false' },
      ],
    );
  });
});

describe('withDefaultNamespace', () => {
  it('gives an expected object the namespace that the request got', () => {
    const asked = { metadata: { namespace: 'default' } };
    assert.deepEqual(withDefaultNamespace({ metadata: { name: 'a' } }, asked), {
      metadata: { name: 'a', namespace: 'default' },
    });
    const own = { metadata: { namespace: 'shop' } };
    assert.equal(withDefaultNamespace(own, asked), own);
    assert.equal(withDefaultNamespace(1, asked), 1);
  });
});
