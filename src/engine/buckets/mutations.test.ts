import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { reasonOf } from '../testing/reason-of.ts';
import { MUTATING, POD_RULE, TestTable, VALIDATING } from '../testing/bucket-table.ts';
import { label, labelled, patchedObject, POD } from '../testing/pod-labels.ts';
import { podReview } from '../testing/reviews.ts';

test('a review is deferred when a mutation makes it match a slow policy', () => {
  const table = new TestTable();
  table.add({ name: 'a', spec: { mutating: true }, answer: label('slow') });
  const objectSelector = { matchLabels: { slow: 'x' } };
  const slow = new Set([table.add({ name: 'slow', spec: { objectSelector, mutating: true } }).id]);
  assert.deepEqual(table.admit(MUTATING, podReview(), { slow }), { kind: 'deferred', owner: 'kw.cap.slow' });
});

test('deletions have no object: a mutation of one is denied', () => {
  const table = new TestTable();
  const rules = [{ ...POD_RULE, operations: ['DELETE'] }];
  const spec = { rules, mutating: true };
  table.add({ name: 'a', spec, answer: () => ({ accepted: true, mutated_object: { a: 1 } }) });
  table.add({ name: 'b', spec });
  const review = podReview({ operation: 'DELETE', object: null, oldObject: POD });
  assert.match(JSON.stringify(reasonOf(table.evaluate(MUTATING, review).verdict)), /cap\/a: Incoming object is null/);
});

test('mutating policies see previous changes, and one patch contains all of them', () => {
  const table = new TestTable();
  const seen: JsonValue[] = [];
  table.add({ name: 'a', spec: { mutating: true }, answer: label('a') });
  table.add({
    name: 'b',
    spec: { mutating: true },
    answer: ({ object, dryRun }) => {
      seen.push([object as JsonObject, dryRun ?? null]);
      return { accepted: true, mutated_object: labelled(object as JsonObject, { b: 'y' }) };
    },
  });
  const answered = table.evaluate(MUTATING, podReview({ dryRun: true }));
  assert.deepEqual(patchedObject(answered), labelled(POD, { a: 'x', b: 'y' }));
  assert.deepEqual(seen, [[labelled(POD, { a: 'x' }), true]]);
  // The first is reinvoked, because the second changed the object. The second is not, because the last change is its
  // own.
  assert.deepEqual(
    answered.observations.map(({ policy }) => policy),
    ['kw.cap.a', 'kw.cap.b', 'kw.cap.a'],
  );
});

test('policies that ran before a change run once more, only once', () => {
  const table = new TestTable();
  let counter = 0;
  const count = ({ object }: JsonObject): unknown => ({
    accepted: true,
    mutated_object: labelled(object as JsonObject, { counter: String(++counter) }),
  });
  table.add({ name: 'a', spec: { mutating: true }, answer: count });
  table.add({ name: 'b', spec: { mutating: true }, answer: count });
  table.add({ name: 'c', spec: { mutating: true } });
  const { observations } = table.evaluate(MUTATING);
  assert.deepEqual(
    observations.map(({ policy }) => policy.at(-1)),
    ['a', 'b', 'c', 'a', 'b', 'c'],
  );
});

test('a policy that may not mutate denies, and earlier changes give no patch', () => {
  const table = new TestTable();
  table.add({ name: 'a', spec: { mutating: true }, answer: label('a') });
  const { match } = table.add({ name: 'b', spec: { mutating: true } });
  table.table.set(table.load('kw.cap.b', { module: 'm.wasm', allowedToMutate: false }, label('b')), match);
  const { verdict } = table.evaluate(MUTATING);
  assert.equal(verdict.patch, undefined);
  assert.match(JSON.stringify(reasonOf(verdict)), /cap\/b: Request rejected by policy kw.cap.b/);
});

test('selectors and conditions read the changed object', () => {
  const table = new TestTable();
  table.add({ name: 'a', spec: { mutating: true }, answer: label('stage', 'two') });
  table.add({
    name: 'b',
    spec: {
      mutating: true,
      objectSelector: { matchLabels: { stage: 'two' } },
      matchConditions: [{ name: 'c', expression: 'object.metadata.labels.stage == "two" && request.name == "nginx"' }],
    },
    answer: label('b'),
  });
  assert.deepEqual(patchedObject(table.evaluate(MUTATING)), labelled(POD, { stage: 'two', b: 'x' }));
});

test('no patch is made when changes undo each other', () => {
  const table = new TestTable();
  const metadata = { name: 'nginx' };
  table.add({
    name: 'a',
    spec: { mutating: true, matchConditions: [{ name: 'c', expression: '!has(request.dryRun)' }] },
  });
  let isFirst = true;
  table.add({
    name: 'b',
    spec: { mutating: true },
    answer: ({ object }) => {
      const wanted = isFirst ? labelled(object as JsonObject, { b: 'x' }) : object;
      isFirst = false;
      return { accepted: true, mutated_object: wanted };
    },
  });
  table.add({
    name: 'c',
    spec: { mutating: true },
    answer: ({ object }) => ({ accepted: true, mutated_object: { ...(object as JsonObject), metadata } }),
  });
  const { verdict, observations } = table.evaluate(MUTATING);
  assert.deepEqual([verdict.allowed, verdict.patch, observations.length], [true, undefined, 3]);
});

test('a validating webhook gets no patch of a mutating policy', () => {
  const table = new TestTable();
  table.add({ name: 'a', spec: { mutating: true }, answer: label('a'), alsoIn: [VALIDATING] });
  const { verdict, observations } = table.evaluate(VALIDATING);
  assert.deepEqual([verdict.allowed, verdict.patch], [true, undefined]);
  assert.equal(observations.length, 1);
});

test('an object that grows beyond the limit by patches fails the policy that made it too large', () => {
  const table = new TestTable();
  const grow =
    (name: string) =>
    ({ object }: JsonObject): unknown => ({
      accepted: true,
      mutated_object: labelled(object as JsonObject, { [name]: 'x'.repeat(2 * 1024 * 1024) }),
    });
  table.add({ name: 'a', spec: { mutating: true }, answer: grow('a') });
  table.add({ name: 'b', spec: { mutating: true }, answer: grow('b') });
  const { verdict } = table.evaluate(MUTATING);
  assert.equal(verdict.patch, undefined);
  assert.match(
    verdict.message ?? '',
    /^cap\/b: .*the mutated object of the policy is too large: expected at most 3145728/,
  );
});
