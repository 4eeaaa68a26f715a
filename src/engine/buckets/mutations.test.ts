import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject, JsonValue } from '../json-text.ts';
import { reasonOf } from '../testing/reason-of.ts';
import { MUTATING, POD_RULE, TestTable, VALIDATING } from '../testing/bucket-table.ts';
import { label, labelled, patchedObject, POD } from '../testing/pod-labels.ts';
import { podReview } from '../testing/reviews.ts';

test('a review is deferred when a change makes a slow policy meant', () => {
  const table = new TestTable();
  table.add({ name: 'a', spec: { mutating: true }, answer: label('slow') });
  const objectSelector = { matchLabels: { slow: 'x' } };
  const slow = new Set([table.add({ name: 'slow', spec: { objectSelector, mutating: true } }).id]);
  assert.deepEqual(table.admit(MUTATING, podReview(), { slow }), { kind: 'deferred' });
});

test('deletions have no object: a mutation of one is denied', () => {
  const table = new TestTable();
  const rules = [{ ...POD_RULE, operations: ['DELETE'] }];
  const spec = { rules, mutating: true };
  table.add({ name: 'a', spec, answer: () => ({ accepted: true, mutated_object: { a: 1 } }) });
  table.add({ name: 'b', spec });
  const review = podReview({ operation: 'DELETE', object: null, oldObject: POD });
  assert.match(JSON.stringify(reasonOf(table.ask(MUTATING, review).verdict)), /cap\/a: Incoming object is null/);
});

test('mutating policies see what the last made, and one patch makes all of it', () => {
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
  const answered = table.ask(MUTATING, podReview({ dryRun: true }));
  assert.deepEqual(patchedObject(answered), labelled(POD, { a: 'x', b: 'y' }));
  assert.deepEqual(seen, [[labelled(POD, { a: 'x' }), true]]);
  // The first is asked again, because the second changed the object after it; not the second because of itself.
  assert.deepEqual(
    answered.observations.map(({ policy }) => policy),
    ['kw.cap.a', 'kw.cap.b', 'kw.cap.a'],
  );
});

test('policies that ran before a change run once more, and no more than that', () => {
  const table = new TestTable();
  let counter = 0;
  const count = ({ object }: JsonObject): unknown => ({
    accepted: true,
    mutated_object: labelled(object as JsonObject, { counter: String(++counter) }),
  });
  table.add({ name: 'a', spec: { mutating: true }, answer: count });
  table.add({ name: 'b', spec: { mutating: true }, answer: count });
  table.add({ name: 'c', spec: { mutating: true } });
  const { observations } = table.ask(MUTATING);
  assert.deepEqual(
    observations.map(({ policy }) => policy.at(-1)),
    ['a', 'b', 'c', 'a', 'b', 'c'],
  );
});

test('a policy that may not mutate denies, and what was changed before it is not patched', () => {
  const table = new TestTable();
  table.add({ name: 'a', spec: { mutating: true }, answer: label('a') });
  const { match } = table.add({ name: 'b', spec: { mutating: true } });
  table.table.set(table.load('kw.cap.b', { module: 'm.wasm', allowedToMutate: false }, label('b')), match);
  const { verdict } = table.ask(MUTATING);
  assert.equal(verdict.patch, undefined);
  assert.match(JSON.stringify(reasonOf(verdict)), /cap\/b: Request rejected by policy kw.cap.b/);
});

test('selectors and conditions see the object as it was changed', () => {
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
  assert.deepEqual(patchedObject(table.ask(MUTATING)), labelled(POD, { stage: 'two', b: 'x' }));
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
  const { verdict, observations } = table.ask(MUTATING);
  assert.deepEqual([verdict.allowed, verdict.patch, observations.length], [true, undefined, 3]);
});

test('a patch of a mutating policy is not handed to a validating webhook', () => {
  const table = new TestTable();
  table.add({ name: 'a', spec: { mutating: true }, answer: label('a'), alsoIn: [VALIDATING] });
  const { verdict, observations } = table.ask(VALIDATING);
  assert.deepEqual([verdict.allowed, verdict.patch], [true, undefined]);
  assert.equal(observations.length, 1);
});
