import assert from 'node:assert/strict';
import { test } from 'node:test';
import { textOf } from '../../resources/index.ts';
import { EngineError } from '../values/errors.ts';
import type { JsonObject } from '../values/json-text.ts';
import { createFailedPolicy } from '../loaded-policy.ts';
import { policyOwner } from '../definition/policy-owner.ts';
import { TIMEOUT_MESSAGE } from '../verdict/verdict.ts';
import { reasonOf } from '../testing/reason-of.ts';
import { MUTATING, POD_RULE, TestTable, VALIDATING } from '../testing/bucket-table.ts';
import { labelled, label, POD } from '../testing/pod-labels.ts';
import { podReview } from '../testing/reviews.ts';
import { MAX_SHOWN_DENIALS } from './merged-verdict.ts';

function deny(message: string, extra: JsonObject = {}): () => unknown {
  return () => ({ accepted: false, message, ...extra });
}

function fail(error: Error): () => never {
  return () => {
    throw error;
  };
}

test('a review that no policy matches is allowed', () => {
  const table = new TestTable();
  table.add({
    name: 'deployments',
    spec: { rules: [{ ...POD_RULE, resources: ['deployments'] }] },
    answer: deny('no'),
  });
  assert.deepEqual(table.evaluate(VALIDATING), {
    verdict: { allowed: true, auditAnnotations: null, warnings: null },
    observations: [],
    monitored: [],
  });
});

test('all matching policies are evaluated, and the message names all that deny', () => {
  const table = new TestTable();
  table.add({ name: 'b', answer: deny('not b', { code: 418, warnings: ['mind b'] }) });
  table.add({
    name: 'a',
    answer: () => ({ accepted: true, warnings: ['mind a'], audit_annotations: { seen: 'yes' } }),
  });
  table.add({ name: 'c.d', answer: deny('not c', { code: 403 }) });
  table.add({ name: 'e', namespace: 'default', answer: deny('not e') });
  const { verdict, observations } = table.evaluate(VALIDATING);
  assert.deepEqual(verdict, {
    allowed: false,
    message: '2 policies: cap/b: not b; cap/c.d: not c',
    code: 418,
    auditAnnotations: { 'kw.cap.a.seen': 'yes' },
    warnings: ['cap/a: mind a', 'cap/b: mind b'],
  });
  assert.deepEqual(
    observations.map(({ policy, accepted }) => [policy, accepted]),
    [
      ['kw.cap.a', true],
      ['kw.cap.b', false],
      ['kw.cap.c.d', false],
    ],
  );
  const namespaced = table.evaluate('validating.fail.equivalent.namespaced.v1').verdict;
  assert.deepEqual(reasonOf(namespaced), { message: 'ap/e: not e' });
});

test('messages and causes of policies and groups are kept', () => {
  const table = new TestTable();
  table.add({ name: 'one', spec: { message: 'ask an administrator' }, answer: deny('because') });
  table.add({
    name: 'group',
    spec: { policies: { inner: { module: 'm.wasm' } }, expression: 'inner()', message: 'the group says no' },
    answer: deny('inner because'),
  });
  assert.deepEqual(reasonOf(table.evaluate(VALIDATING).verdict), {
    message: '2 policies: cap/one: ask an administrator; capg/group: the group says no',
    causes: [{ message: 'because' }, { message: 'inner because', field: 'spec.policies.inner' }],
  });
});

test('the number of denials in a message is limited', () => {
  const table = new TestTable();
  for (let index = 0; index < MAX_SHOWN_DENIALS + 5; index++) {
    table.add({ name: `p${index + 100}`, answer: deny('no') });
  }
  const { message } = table.evaluate(VALIDATING).verdict;
  assert.match(message ?? '', /^25 policies: cap\/p100: no; .*cap\/p119: no; and 5 more$/);
});

test('audit annotation keys are cut to the length that API servers accept', () => {
  const table = new TestTable();
  const answer = (): unknown => ({ accepted: true, audit_annotations: { key: 'value' } });
  const names = [`${'a'.repeat(70)}1`, `${'a'.repeat(70)}2`];
  for (const name of names) {
    table.add({ name, answer });
  }
  const keys = Object.keys(table.evaluate(VALIDATING).verdict.auditAnnotations as object);
  assert.equal(keys.length, 2);
  assert.ok(keys.every((key) => key.length === 63 && key.endsWith('.key') && key.startsWith('kw.cap.aaa')));
});

test('a policy in monitor mode neither denies nor mutates', () => {
  const table = new TestTable();
  table.add({ name: 'watched', spec: { mode: 'monitor' }, answer: deny('no') });
  const validated = table.evaluate(VALIDATING);
  assert.equal(validated.verdict.allowed, true);
  assert.deepEqual(
    validated.monitored.map(({ policy, allowed, message }) => [policy, allowed, message]),
    [['kw.cap.watched', false, 'no']],
  );
  table.add({ name: 'changing', spec: { mode: 'monitor', mutating: true }, answer: label('a') });
  const { verdict, observations, monitored } = table.evaluate(MUTATING);
  assert.deepEqual([verdict.allowed, verdict.patch], [true, undefined]);
  assert.equal(observations[0]?.mutated, true);
  assert.deepEqual(
    monitored.map(({ policy, allowed }) => [policy, allowed]),
    [['kw.cap.changing', true]],
  );
});

test('a policy in monitor mode that runs twice for a review counts once, with its last verdict', () => {
  const table = new TestTable();
  const isChanged = (request: JsonObject): boolean => JSON.stringify(request).includes('"added"');
  const watched = { mode: 'monitor', mutating: true };
  table.add({ name: 'a', spec: watched, answer: deny('no') });
  table.add({ name: 'b', spec: watched, answer: (request) => ({ accepted: isChanged(request), message: 'not yet' }) });
  table.add({ name: 'c', spec: { mutating: true }, answer: label('added') });
  const { observations, monitored } = table.evaluate(MUTATING);
  assert.deepEqual(
    observations.map(({ policy }) => policy),
    ['kw.cap.a', 'kw.cap.b', 'kw.cap.c', 'kw.cap.a', 'kw.cap.b'],
  );
  assert.deepEqual(
    monitored.map(({ policy }) => policy),
    ['kw.cap.a'],
  );
});

test('requests for the namespace that is always accepted are allowed', () => {
  const table = new TestTable({ alwaysAcceptNamespace: 'default' });
  table.add({ name: 'a', answer: deny('no') });
  assert.deepEqual(table.evaluate(VALIDATING).observations, []);
  assert.equal(table.evaluate(VALIDATING, podReview({ namespace: 'other' })).verdict.allowed, false);
});

test('names that no policy can have are unknown buckets', () => {
  const table = new TestTable();
  table.add({ name: 'there' });
  for (const bucket of [
    'kw.cap.gone',
    'validating.kw.cap.gone',
    'mutating.kw.cap.gone',
    'other.kw.cap.there',
    'validating.mutating.kw.cap.there',
    '',
    'validating',
    'validating.fail.exact.cluster.v1.v2',
    'constructor',
  ]) {
    const admission = table.admit(bucket);
    assert.deepEqual(admission, { kind: 'unknown-bucket' }, bucket);
  }
});

test('a policy without a version that could be loaded follows its failurePolicy', () => {
  const table = new TestTable();
  const { match } = table.add({ name: 'a', spec: { failurePolicy: 'Ignore' } });
  const failure = { id: 'kw.cap.a', message: 'no module', failurePolicy: 'Ignore' as const };
  table.table.set(createFailedPolicy(failure, table.options), match);
  const { verdict } = table.evaluate(match.bucket);
  assert.deepEqual(
    [verdict.allowed, verdict.warnings],
    [true, ['cap/a: policy kw.cap.a gave no verdict and its failurePolicy is Ignore: no module']],
  );
  table.table.set(createFailedPolicy({ ...failure, failurePolicy: 'Fail' }, table.options), match);
  assert.deepEqual(reasonOf(table.evaluate(match.bucket).verdict), { message: 'cap/a: no module', code: 500 });
});

test('policies listed as timed out are not run; the others are', () => {
  const table = new TestTable();
  const hanging = table.add({ name: 'hanging', answer: fail(new Error('it was run')) });
  table.add({ name: 'other', answer: deny('a real no') });
  const entered: string[] = [];
  const { verdict } = table.evaluate(VALIDATING, podReview(), {
    timedOut: new Set([hanging.id]),
    onUnitStart: (id) => entered.push(id),
  });
  assert.deepEqual(reasonOf(verdict), {
    message: `2 policies: cap/hanging: ${TIMEOUT_MESSAGE}; cap/other: a real no`,
    code: 500,
  });
  assert.deepEqual(entered, ['kw.cap.other']);
});

test('a guest’s time limit is the least of its own, its webhook’s and the review’s', () => {
  const times = (spec: JsonObject, deadlineMs?: number): number[] => {
    const table = new TestTable({ defaultTimeoutSeconds: 4 });
    table.add({ name: 'a', spec });
    const given: number[] = [];
    const options = deadlineMs === undefined ? {} : { deadlineMs };
    table.evaluate(VALIDATING, podReview(), { ...options, onUnitStart: (_id, timeoutMs) => given.push(timeoutMs) });
    return given.map((ms) => Math.ceil(ms / 500) * 500);
  };
  assert.deepEqual(times({}), [4_000]);
  assert.deepEqual(times({ timeoutEvalSeconds: 2 }), [2_000]);
  assert.deepEqual(times({ timeoutSeconds: 3 }), [3_000]);
  assert.deepEqual(times({}, 1_000), [1_000]);
});

test('a policy that is not evaluated by the deadline follows its failurePolicy, without being run', () => {
  const table = new TestTable();
  table.add({ name: 'fails', answer: fail(new Error('it was run')) });
  assert.deepEqual(reasonOf(table.evaluate(VALIDATING, podReview(), { deadlineMs: 0 }).verdict), {
    message: `cap/fails: ${TIMEOUT_MESSAGE}`,
    code: 500,
  });
  const { match } = table.add({ name: 'passes', spec: { failurePolicy: 'Ignore' }, answer: deny('it was run') });
  const { verdict, observations } = table.evaluate(match.bucket, podReview(), { deadlineMs: -1 });
  assert.deepEqual([verdict.allowed, observations[0]?.outcome], [true, 'timeout']);
});

test('guests that fail or time out deny, and the other policies are evaluated', () => {
  const table = new TestTable();
  table.add({ name: 'a', answer: fail(new EngineError('guest-timeout', 'too slow')) });
  table.add({ name: 'b', answer: fail(new Error('a trap')) });
  table.add({ name: 'c', answer: deny('no') });
  const left: number[] = [];
  const { verdict, observations } = table.evaluate(VALIDATING, podReview(), { onUnitEnd: () => left.push(1) });
  assert.deepEqual(reasonOf(verdict), {
    message: `3 policies: cap/a: ${TIMEOUT_MESSAGE}; cap/b: internal server error: a trap; cap/c: no`,
    code: 500,
  });
  assert.deepEqual(
    observations.map(({ outcome }) => outcome),
    ['timeout', 'failed', 'verdict'],
  );
  assert.equal(left.length, 3);
});

for (const mutating of [false, true]) {
  const bucket = mutating ? MUTATING : VALIDATING;
  test(`a review is deferred only if it matches a slow policy, before any policy is run: ${bucket}`, () => {
    const table = new TestTable();
    let runs = 0;
    const answer = (): unknown => {
      runs++;
      return { accepted: true };
    };
    table.add({ name: 'a', spec: { mutating }, answer });
    const objectSelector = { matchLabels: { slow: 'yes' } };
    const slow = new Set([table.add({ name: 'slow', spec: { objectSelector, mutating } }).id]);
    const admission = table.admit(bucket, podReview({ object: labelled(POD, { slow: 'yes' }) }), { slow });
    assert.deepEqual([admission, runs], [{ kind: 'deferred', owner: 'kw.cap.slow' }, 0]);
    assert.equal(table.evaluate(bucket, podReview(), { slow }).observations.length, 1);
  });
}

test('in the bucket of another revision, a policy matches any version', () => {
  const table = new TestTable();
  const rules = [{ ...POD_RULE, apiVersions: ['v2'] }];
  table.add({ name: 'a', spec: { rules }, answer: deny('no'), alsoIn: [VALIDATING, 'validating.kw.cap.a'] });
  assert.equal(table.evaluate(VALIDATING).verdict.allowed, false);
  assert.equal(table.evaluate('validating.fail.equivalent.cluster.v2').verdict.allowed, true);
  table.table.delete('kw.cap.a');
  assert.equal(table.evaluate(VALIDATING).verdict.allowed, true);
  assert.equal(table.table.size, 0);
});

test('a namespace is looked up only when a policy depends on its labels', () => {
  const table = new TestTable();
  const namespaceSelector = { matchExpressions: [{ key: 'team', operator: 'In', values: ['red'] }] };
  table.add({ name: 'names', spec: {} });
  assert.equal(table.evaluate(VALIDATING).observations.length, 1);
  assert.deepEqual(table.namespaces.missed, []);
  table.add({ name: 'red', spec: { namespaceSelector } });
  table.add({ name: 'red-too', spec: { namespaceSelector } });
  table.namespaces.set('default', { team: 'red' });
  assert.equal(table.evaluate(VALIDATING).observations.length, 3);
  table.namespaces.set('default', { team: 'blue' });
  assert.equal(table.evaluate(VALIDATING).observations.length, 1);
});

test('a review that needs an unknown object names it, and no policy runs', () => {
  const table = new TestTable();
  table.namespaces.others = { state: 'unknown' };
  const namespaceSelector = { matchLabels: { team: 'red' } };
  let calls = 0;
  const answer = (): unknown => ({ accepted: (calls += 1) > 0 });
  table.add({ name: 'a', answer });
  table.add({ name: 'b', spec: { namespaceSelector }, answer });
  const waiting = { kind: 'unknown-object', object: { apiVersion: 'v1', kind: 'Namespace', name: 'default' } };
  assert.deepEqual(table.admit(VALIDATING), waiting);
  assert.equal(calls, 0);
  table.namespaces.set('default', { team: 'red' });
  assert.equal(table.evaluate(VALIDATING).observations.length, 2);
  table.namespaces.delete('default');
  const objectSelector = { matchLabels: { app: 'none' } };
  table.add({ name: 'b', spec: { namespaceSelector, objectSelector }, answer });
  assert.equal(table.evaluate(VALIDATING).observations.length, 1, 'another selector excludes the review');
});

test('without the labels of a namespace, failurePolicy decides', () => {
  const table = new TestTable();
  const namespaceSelector = { matchLabels: { team: 'red' } };
  const fails = table.add({ name: 'a', spec: { namespaceSelector } });
  const ignores = table.add({ name: 'b', spec: { namespaceSelector, failurePolicy: 'Ignore' } });
  const status = reasonOf(table.evaluate(fails.match.bucket).verdict);
  assert.equal(status.code, 500);
  assert.match(textOf(status.message), /^cap\/a: the labels of the namespace "default" are not known: Cannot find/);
  const { verdict, observations } = table.evaluate(ignores.match.bucket);
  assert.equal(verdict.allowed, true);
  assert.match(JSON.stringify(verdict.warnings), /labels of the namespace .*default.* are not known/);
  assert.equal(observations[0]?.outcome, 'failed');
});

test('a condition that is false excludes a policy; for one that fails, failurePolicy decides', () => {
  const table = new TestTable();
  const condition = (expression: string): JsonObject => ({ matchConditions: [{ name: 'c', expression }] });
  const isNo = { answer: deny('no') };
  table.add({ name: 'a', spec: condition('request.userInfo.username == "somebody"'), ...isNo });
  assert.equal(table.evaluate(VALIDATING).verdict.allowed, true);
  table.add({ name: 'a', spec: condition('object.spec.missing == 1'), ...isNo });
  assert.deepEqual(reasonOf(table.evaluate(VALIDATING).verdict), {
    message:
      "cap/a: its match conditions cannot be evaluated: expression 'object.spec.missing == 1' resulted in error: no such key: missing",
    code: 403,
  });
  const numbers = JSON.stringify(Array.from({ length: 50 }, (_, index) => index));
  const expression = `${numbers}.all(a, ${numbers}.all(b, ${numbers}.all(c, c >= 0)))`;
  const many = Array.from({ length: 10 }, (_, index) => ({ name: `c${index}`, expression }));
  table.add({ name: 'a', spec: { matchConditions: many }, ...isNo });
  assert.match(JSON.stringify(reasonOf(table.evaluate(VALIDATING).verdict)), /running out of cost budget/);
  const ignoring = table.add({
    name: 'b',
    spec: { ...condition('object.spec.missing == 1'), failurePolicy: 'Ignore' },
    ...isNo,
  });
  assert.deepEqual(table.evaluate(ignoring.match.bucket).observations, []);
});

test('match conditions that are too long together are not compiled, and fail', () => {
  const table = new TestTable();
  const expression = `${'true && '.repeat(5_000)}true`;
  const matchConditions = [
    { name: 'a', expression },
    { name: 'b', expression },
  ];
  table.add({ name: 'a', spec: { matchConditions } });
  const { message } = table.evaluate(VALIDATING).verdict;
  assert.match(message ?? '', /expected at most 65536 characters in all match conditions of a policy, got 80008$/);
});

test('match conditions are evaluated until the deadline, and reported per policy', () => {
  const table = new TestTable();
  const matchConditions = [{ name: 'c', expression: 'false' }];
  table.add({ name: 'a', spec: { matchConditions } });
  table.add({ name: 'b' });
  const calls: string[] = [];
  const watching = { onUnitStart: (id: string) => calls.push(id), onUnitEnd: () => calls.push('left') };
  table.evaluate(VALIDATING, podReview(), watching);
  assert.deepEqual(calls.splice(0), ['kw.cap.a', 'left', 'kw.cap.b', 'left']);
  const { verdict } = table.evaluate(VALIDATING, podReview(), { ...watching, deadlineMs: 0 });
  assert.equal(verdict.message, `2 policies: cap/a: ${TIMEOUT_MESSAGE}; cap/b: ${TIMEOUT_MESSAGE}`);
  assert.deepEqual(calls, []);
});

test('a review is deferred before conditions of other policies are evaluated', () => {
  const table = new TestTable();
  const conditions = (expression: string): JsonObject => ({ matchConditions: [{ name: 'c', expression }] });
  const calls: string[] = [];
  const isDeferred = (namespace?: string): boolean => {
    const place = namespace === undefined ? {} : { namespace };
    const { match } = table.add({ name: 'a', ...place, spec: conditions('true') });
    const { id } = table.add({ name: 'b', ...place, spec: conditions('request.name != ""') });
    const options = {
      slow: new Set([policyOwner(id, namespace)]),
      onUnitStart: (entered: string) => calls.push(entered),
    };
    return table.admit(match.bucket, podReview(), options).kind === 'deferred';
  };
  assert.deepEqual([isDeferred(), calls.splice(0)], [true, ['kw.cap.b']]);
  assert.deepEqual([isDeferred('default'), calls], [true, []]);
  table.add({ name: 'b', spec: conditions('false') });
  const slow = new Set(['kw.cap.b']);
  assert.equal(table.evaluate(VALIDATING, podReview(), { slow }).observations.length, 1);
});

test('reviews of a slow namespace are deferred, whichever of its policies they match, and no others', () => {
  const table = new TestTable();
  const { match } = table.add({ name: 'a', namespace: 'default' });
  table.add({ name: 'b', namespace: 'shop' });
  const owner = 'namespace/default';
  const slow = new Set([owner]);
  assert.deepEqual(table.admit(match.bucket, podReview(), { slow }), { kind: 'deferred', owner });
  const ofShop = table.admit(match.bucket, podReview({ namespace: 'shop' }), { slow });
  assert.equal(ofShop.kind, 'verdict');
  const given = table.evaluate(match.bucket, podReview(), { timedOut: slow });
  assert.equal(given.verdict.message, `ap/a: ${TIMEOUT_MESSAGE}`);
});

test('a review is deferred where it is unknown what a policy of its namespace costs, if the policy must be evaluated', () => {
  const table = new TestTable();
  const { match, id } = table.add({ name: 'a', namespace: 'default' });
  const asked: string[] = [];
  const isUntried = (policy: string): boolean => asked.push(policy) > 0;
  const owner = 'namespace/default';
  assert.deepEqual(table.admit(match.bucket, podReview(), { isUntried }), { kind: 'deferred', owner });
  assert.deepEqual(asked.splice(0), [id]);
  assert.equal(table.admit(match.bucket, podReview(), { isUntried: () => false }).kind, 'verdict');
  table.add({ name: 'a', namespace: 'default', spec: { matchConditions: [{ name: 'c', expression: 'false' }] } });
  assert.equal(table.admit(match.bucket, podReview(), { isUntried }).kind, 'verdict');
  table.add({ name: 'b' });
  assert.equal(table.evaluate(VALIDATING, podReview(), { isUntried }).observations.length, 1);
  assert.deepEqual(asked, []);
});

test('a policy of a namespace matches only requests in it', () => {
  const table = new TestTable();
  const rules = [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'], scope: '*' }];
  const { match } = table.add({ name: 'a', namespace: 'default', spec: { rules }, answer: deny('no') });
  const isAllowed = (request: JsonObject): boolean => table.evaluate(match.bucket, podReview(request)).verdict.allowed;
  assert.equal(isAllowed({}), false);
  assert.equal(isAllowed({ namespace: 'other' }), true);
  const nodes = { group: '', version: 'v1', resource: 'nodes' };
  assert.equal(isAllowed({ namespace: null, resource: nodes, requestResource: nodes }), true);
  const namespaces = { group: '', version: 'v1', resource: 'namespaces' };
  assert.equal(isAllowed({ name: 'default', resource: namespaces, requestResource: namespaces }), true);
});
