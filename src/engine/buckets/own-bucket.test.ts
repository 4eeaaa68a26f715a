// A policy that an API server asks about by itself.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../json-text.ts';
import { MUTATING, POD_RULE, TestTable } from '../testing/bucket-table.ts';
import { label, labelled, patchedObject, POD } from '../testing/pod-labels.ts';
import { podReview } from '../testing/reviews.ts';

const deny = (): unknown => ({ accepted: false, message: 'no' });

test('a webhook of its own asks the policy whatever its rules say', () => {
  const table = new TestTable();
  const rules = [{ ...POD_RULE, apiVersions: ['v2'] }];
  const { match } = table.add({ name: 'alone', spec: { ownWebhook: true, rules, mutating: true }, answer: label('a') });
  const answered = table.ask(match.bucket);
  assert.deepEqual(patchedObject(answered), labelled(POD, { a: 'x' }));
  assert.equal(answered.observations.length, 1);
  assert.equal(table.ask(MUTATING).observations.length, 0);
});

test('a webhook of its own gets a patch where it is a mutating one, whatever the revision that serves is', () => {
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
    const [validating, mutating] = [table.ask(`validating.${id}`), table.ask(`mutating.${id}`)];
    assert.deepEqual([validating.verdict.allowed, mutating.verdict.allowed], [true, true]);
    assert.equal(validating.verdict.patch, undefined);
    assert.deepEqual(validating.verdict.warnings, mutating.verdict.warnings);
    assert.deepEqual(validating.observations, mutating.observations);
    assert.deepEqual(mutating.verdict.patch === undefined ? undefined : patchedObject(mutating), mutated);
    // The version before did not say which kind of webhook asks.
    assert.deepEqual(table.ask(id), mutating);
  }
});

test('a webhook of its own that asks what another revision is for does not make a policy judge that', () => {
  const table = new TestTable();
  const deployments = { group: 'apps', version: 'v1', resource: 'deployments' };
  const isAsked = (spec: JsonObject, request: JsonObject = {}): boolean => {
    const { match } = table.add({ name: 'alone', spec: { ownWebhook: true, ...spec }, answer: deny });
    return !table.ask(match.bucket, podReview(request)).verdict.allowed;
  };
  assert.equal(isAsked({}), true);
  assert.equal(isAsked({}, { resource: deployments, requestResource: deployments }), false);
  assert.equal(isAsked({ objectSelector: { matchLabels: { app: 'other' } } }), false);
  const condition = (expression: string): JsonObject => ({ matchConditions: [{ name: 'c', expression }] });
  assert.equal(isAsked(condition('request.userInfo.username == "somebody"')), false);
  assert.equal(isAsked(condition('object.spec.missing == 1')), true, 'the API server knew');
  assert.equal(isAsked(condition('authorizer.group("").resource("pods").check("create").allowed()')), true);
  const red = { namespaceSelector: { matchLabels: { team: 'red' } } };
  assert.equal(isAsked(red), true, 'a namespace that is not known is not asked for');
  table.table.namespaces.set('default', { team: 'blue' });
  assert.equal(isAsked(red), false);
  assert.deepEqual(table.asked, []);
});

test('a webhook of its own is asked about events in whichever group it gets them', () => {
  const table = new TestTable();
  const rules = [{ ...POD_RULE, resources: ['events', 'pods'] }];
  const { match } = table.add({ name: 'alone', spec: { ownWebhook: true, rules }, answer: deny });
  const isAsked = (group: string, resource: string): boolean =>
    !table.ask(match.bucket, podReview({ resource: { group, version: 'v1', resource } })).verdict.allowed;
  assert.deepEqual([isAsked('', 'events'), isAsked('events.k8s.io', 'events')], [true, true]);
  assert.deepEqual([isAsked('events.k8s.io', 'pods'), isAsked('', 'nodes')], [false, false]);
});
