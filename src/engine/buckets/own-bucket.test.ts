// A policy with an own bucket.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../values/json-text.ts';
import { MUTATING, POD_RULE, TestTable } from '../testing/bucket-table.ts';
import { label, labelled, patchedObject, POD } from '../testing/pod-labels.ts';
import { podReview } from '../testing/reviews.ts';

const deny = (): unknown => ({ accepted: false, message: 'no' });

test('an own bucket evaluates its policy in any version', () => {
  const table = new TestTable();
  const rules = [{ ...POD_RULE, apiVersions: ['v2'] }];
  const { match } = table.add({ name: 'alone', spec: { ownWebhook: true, rules, mutating: true }, answer: label('a') });
  const answered = table.evaluate(match.bucket);
  assert.deepEqual(patchedObject(answered), labelled(POD, { a: 'x' }));
  assert.equal(answered.observations.length, 1);
  assert.equal(table.evaluate(MUTATING).observations.length, 0);
});

test('only a mutating own bucket gets a patch, whichever revision serves', () => {
  const table = new TestTable();
  for (const [spec, answer, mutated] of [
    [{ mutating: false }, () => ({ accepted: true, warnings: ['mind'] }), undefined],
    [{ mutating: true }, label('a'), labelled(POD, { a: 'x' })],
    [{ mutating: true, mode: 'monitor' }, label('a'), undefined],
  ] as const) {
    const { id, match } = table.add({
      name: 'alone',
      namespace: 'default',
      spec: { ownWebhook: true, ...spec },
      answer,
    });
    assert.equal(match.bucket, `${spec.mutating ? 'mutating' : 'validating'}.kw.ap.default.alone`);
    const [validating, mutating] = [table.evaluate(`validating.${id}`), table.evaluate(`mutating.${id}`)];
    assert.deepEqual([validating.verdict.allowed, mutating.verdict.allowed], [true, true]);
    assert.equal(validating.verdict.patch, undefined);
    assert.deepEqual(validating.verdict.warnings, mutating.verdict.warnings);
    assert.deepEqual(validating.observations, mutating.observations);
    assert.deepEqual(mutating.verdict.patch === undefined ? undefined : patchedObject(mutating), mutated);
  }
});

test('an own bucket allows reviews that only another revision matches', () => {
  const table = new TestTable();
  table.namespaces.others = { state: 'unknown' };
  const deployments = { group: 'apps', version: 'v1', resource: 'deployments' };
  const isEvaluated = (spec: JsonObject, request: JsonObject = {}): boolean => {
    const { match } = table.add({ name: 'alone', spec: { ownWebhook: true, ...spec }, answer: deny });
    return !table.evaluate(match.bucket, podReview(request)).verdict.allowed;
  };
  assert.equal(isEvaluated({}), true);
  assert.equal(isEvaluated({}, { resource: deployments, requestResource: deployments }), false);
  assert.equal(isEvaluated({ objectSelector: { matchLabels: { app: 'other' } } }), false);
  const condition = (expression: string): JsonObject => ({ matchConditions: [{ name: 'c', expression }] });
  assert.equal(isEvaluated(condition('request.userInfo.username == "somebody"')), false);
  assert.equal(isEvaluated(condition('object.spec.missing == 1')), true, 'the API server knew');
  assert.equal(isEvaluated(condition('authorizer.group("").resource("pods").check("create").allowed()')), true);
  const red = { namespaceSelector: { matchLabels: { team: 'red' } } };
  assert.equal(isEvaluated(red), true, 'the review does not wait for an unknown namespace');
  table.namespaces.set('default', { team: 'blue' });
  assert.equal(isEvaluated(red), false);
});

test('an own bucket matches events of either group', () => {
  const table = new TestTable();
  const rules = [{ ...POD_RULE, resources: ['events', 'pods'] }];
  const { match } = table.add({ name: 'alone', spec: { ownWebhook: true, rules }, answer: deny });
  const isEvaluated = (group: string, resource: string): boolean =>
    !table.evaluate(match.bucket, podReview({ resource: { group, version: 'v1', resource } })).verdict.allowed;
  assert.deepEqual([isEvaluated('', 'events'), isEvaluated('events.k8s.io', 'events')], [true, true]);
  assert.deepEqual([isEvaluated('events.k8s.io', 'pods'), isEvaluated('', 'nodes')], [false, false]);
});
