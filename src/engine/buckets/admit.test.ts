import assert from 'node:assert/strict';
import { test } from 'node:test';
import { textOf } from '../../resources/index.ts';
import { EngineError } from '../errors.ts';
import type { JsonObject } from '../json-text.ts';
import { createFailedPolicy } from '../loaded-policy.ts';
import { TIMEOUT_MESSAGE } from '../verdict.ts';
import { reasonOf } from '../testing/reason-of.ts';
import { MUTATING, POD_RULE, TestTable, VALIDATING } from '../testing/bucket-table.ts';
import { labelled, label, POD } from '../testing/pod-labels.ts';
import { podReview } from '../testing/reviews.ts';
import { MAX_TOLD_DENIALS } from './merged-verdict.ts';

function deny(message: string, extra: JsonObject = {}): () => unknown {
  return () => ({ accepted: false, message, ...extra });
}

function fail(error: Error): () => never {
  return () => {
    throw error;
  };
}

test('a review that no policy is for is allowed', () => {
  const table = new TestTable();
  table.add({
    name: 'deployments',
    spec: { rules: [{ ...POD_RULE, resources: ['deployments'] }] },
    answer: deny('no'),
  });
  assert.deepEqual(table.ask(VALIDATING), {
    verdict: { allowed: true, auditAnnotations: null, warnings: null },
    observations: [],
  });
});

test('all policies that a review is for are asked, and all that deny are named', () => {
  const table = new TestTable();
  table.add({ name: 'b', answer: deny('not b', { code: 418, warnings: ['mind b'] }) });
  table.add({
    name: 'a',
    answer: () => ({ accepted: true, warnings: ['mind a'], audit_annotations: { seen: 'yes' } }),
  });
  table.add({ name: 'c.d', answer: deny('not c', { code: 403 }) });
  table.add({ name: 'e', namespace: 'default', answer: deny('not e') });
  const { verdict, observations } = table.ask(VALIDATING);
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
  const namespaced = table.ask('validating.fail.equivalent.namespaced.v1').verdict;
  assert.deepEqual(reasonOf(namespaced), { message: 'ap/e: not e' });
});

test('messages and causes of policies are kept, and groups answer too', () => {
  const table = new TestTable();
  table.add({ name: 'one', spec: { message: 'ask an administrator' }, answer: deny('because') });
  table.add({
    name: 'group',
    spec: { policies: { inner: { module: 'm.wasm' } }, expression: 'inner()', message: 'the group says no' },
    answer: deny('inner because'),
  });
  assert.deepEqual(reasonOf(table.ask(VALIDATING).verdict), {
    message: '2 policies: cap/one: ask an administrator; capg/group: the group says no',
    causes: [{ message: 'because' }, { message: 'inner because', field: 'spec.policies.inner' }],
  });
});

test('only so many denials are told', () => {
  const table = new TestTable();
  for (let index = 0; index < MAX_TOLD_DENIALS + 5; index++) {
    table.add({ name: `p${index + 100}`, answer: deny('no') });
  }
  const { message } = table.ask(VALIDATING).verdict;
  assert.match(message ?? '', /^25 policies: cap\/p100: no; .*cap\/p119: no; and 5 more$/);
});

test('audit keys fit into the length that API servers take', () => {
  const table = new TestTable();
  const answer = (): unknown => ({ accepted: true, audit_annotations: { key: 'value' } });
  const names = [`${'a'.repeat(70)}1`, `${'a'.repeat(70)}2`];
  for (const name of names) {
    table.add({ name, answer });
  }
  const keys = Object.keys(table.ask(VALIDATING).verdict.auditAnnotations as object);
  assert.equal(keys.length, 2);
  assert.ok(keys.every((key) => key.length === 63 && key.endsWith('.key') && key.startsWith('kw.cap.aaa')));
});

test('a policy in monitor mode denies nothing, and changes nothing', () => {
  const table = new TestTable();
  table.add({ name: 'watched', spec: { mode: 'monitor' }, answer: deny('no') });
  assert.equal(table.ask(VALIDATING).verdict.allowed, true);
  assert.equal(table.log[0]?.message, 'policy evaluation (monitor mode)');
  table.add({ name: 'changing', spec: { mode: 'monitor', mutating: true }, answer: label('a') });
  const { verdict, observations } = table.ask(MUTATING);
  assert.deepEqual([verdict.allowed, verdict.patch], [true, undefined]);
  assert.equal(observations[0]?.mutated, true);
});

test('requests for the namespace that is always accepted are allowed', () => {
  const table = new TestTable({ alwaysAcceptNamespace: 'default' });
  table.add({ name: 'a', answer: deny('no') });
  assert.deepEqual(table.ask(VALIDATING).observations, []);
  assert.equal(table.ask(VALIDATING, podReview({ namespace: 'other' })).verdict.allowed, false);
});

test('names that no policy could have are not found', () => {
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

test('a policy without a version that could be loaded answers as its failurePolicy says', () => {
  const table = new TestTable();
  const { match } = table.add({ name: 'a', spec: { failurePolicy: 'Ignore' } });
  const failure = { id: 'kw.cap.a', message: 'no module', failurePolicy: 'Ignore' as const };
  table.table.set(createFailedPolicy(failure, table.options), match);
  const { verdict } = table.ask(match.bucket);
  assert.deepEqual(
    [verdict.allowed, verdict.warnings],
    [true, ['cap/a: policy kw.cap.a gave no verdict and its failurePolicy is Ignore: no module']],
  );
  table.table.set(createFailedPolicy({ ...failure, failurePolicy: 'Fail' }, table.options), match);
  assert.deepEqual(reasonOf(table.ask(match.bucket).verdict), { message: 'cap/a: no module', code: 500 });
});

test('policies that are named as timed out are not run, and the others give real verdicts', () => {
  const table = new TestTable();
  const hanging = table.add({ name: 'hanging', answer: fail(new Error('it was run')) });
  table.add({ name: 'other', answer: deny('a real no') });
  const entered: string[] = [];
  const { verdict } = table.ask(VALIDATING, podReview(), {
    timedOut: new Set([hanging.id]),
    entering: (id) => entered.push(id),
  });
  assert.deepEqual(reasonOf(verdict), {
    message: `2 policies: cap/hanging: ${TIMEOUT_MESSAGE}; cap/other: a real no`,
    code: 500,
  });
  assert.deepEqual(entered, ['kw.cap.other']);
});

test('a guest has the least of its own time, its webhook’s, and what is left', () => {
  const times = (spec: JsonObject, deadlineMs?: number): number[] => {
    const table = new TestTable({ defaultTimeoutSeconds: 4 });
    table.add({ name: 'a', spec });
    const given: number[] = [];
    const options = deadlineMs === undefined ? {} : { deadlineMs };
    table.ask(VALIDATING, podReview(), { ...options, entering: (_id, timeoutMs) => given.push(timeoutMs) });
    return given.map((ms) => Math.ceil(ms / 500) * 500);
  };
  assert.deepEqual(times({}), [4_000]);
  assert.deepEqual(times({ timeoutEvalSeconds: 2 }), [2_000]);
  assert.deepEqual(times({ timeoutSeconds: 3 }), [3_000]);
  assert.deepEqual(times({}, 1_000), [1_000]);
});

test('what is not evaluated at the deadline answers as its failurePolicy says, without being run', () => {
  const table = new TestTable();
  table.add({ name: 'fails', answer: fail(new Error('it was run')) });
  assert.deepEqual(reasonOf(table.ask(VALIDATING, podReview(), { deadlineMs: 0 }).verdict), {
    message: `cap/fails: ${TIMEOUT_MESSAGE}`,
    code: 500,
  });
  const { match } = table.add({ name: 'passes', spec: { failurePolicy: 'Ignore' }, answer: deny('it was run') });
  const { verdict, observations } = table.ask(match.bucket, podReview(), { deadlineMs: -1 });
  assert.deepEqual([verdict.allowed, observations[0]?.outcome], [true, 'timeout']);
});

test('guests that fail or time out deny, and do not keep the others from being asked', () => {
  const table = new TestTable();
  table.add({ name: 'a', answer: fail(new EngineError('guest-timeout', 'too slow')) });
  table.add({ name: 'b', answer: fail(new Error('a trap')) });
  table.add({ name: 'c', answer: deny('no') });
  const left: number[] = [];
  const { verdict, observations } = table.ask(VALIDATING, podReview(), { leaving: () => left.push(1) });
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
  test(`a review is deferred only if a slow policy is meant, and before anything is run: ${bucket}`, () => {
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
    assert.deepEqual([admission, runs], [{ kind: 'deferred' }, 0]);
    assert.equal(table.ask(bucket, podReview(), { slow }).observations.length, 1);
  });
}

test('in the bucket of another revision a policy answers whatever version it is asked about', () => {
  const table = new TestTable();
  const rules = [{ ...POD_RULE, apiVersions: ['v2'] }];
  table.add({ name: 'a', spec: { rules }, answer: deny('no'), alsoIn: [VALIDATING, 'validating.kw.cap.a'] });
  assert.equal(table.ask(VALIDATING).verdict.allowed, false);
  assert.equal(table.ask('validating.fail.equivalent.cluster.v2').verdict.allowed, true);
  table.table.delete('kw.cap.a');
  assert.equal(table.ask(VALIDATING).verdict.allowed, true);
  assert.equal(table.table.size, 0);
});

test('labels of namespaces are asked for only when a policy depends on them, and once', () => {
  const namespaces = { default: { metadata: { name: 'default', labels: { team: 'red' } } } };
  const table = new TestTable({}, namespaces);
  const namespaceSelector = { matchExpressions: [{ key: 'team', operator: 'In', values: ['red'] }] };
  table.add({ name: 'names', spec: {} });
  assert.equal(table.ask(VALIDATING).observations.length, 1);
  assert.deepEqual(table.asked, []);
  table.add({ name: 'red', spec: { namespaceSelector } });
  table.add({ name: 'red-too', spec: { namespaceSelector } });
  assert.equal(table.ask(VALIDATING).observations.length, 3);
  assert.deepEqual(table.asked, ['default']);
  table.table.namespaces.set('default', { team: 'blue' });
  assert.equal(table.ask(VALIDATING).observations.length, 1);
  table.table.namespaces.replace([['default', { team: 'red' }]]);
  assert.equal(table.ask(VALIDATING).observations.length, 3);
  table.table.namespaces.delete('default');
  assert.equal(table.table.namespaces.size, 0);
  assert.equal(table.asked.length, 1);
});

test('where the labels of a namespace cannot be known, failurePolicy decides', () => {
  const table = new TestTable();
  const namespaceSelector = { matchLabels: { team: 'red' } };
  const fails = table.add({ name: 'a', spec: { namespaceSelector } });
  const ignores = table.add({ name: 'b', spec: { namespaceSelector, failurePolicy: 'Ignore' } });
  const status = reasonOf(table.ask(fails.match.bucket).verdict);
  assert.equal(status.code, 500);
  assert.match(textOf(status.message), /^cap\/a: the labels of the namespace "default" are not known: Cannot find/);
  const { verdict, observations } = table.ask(ignores.match.bucket);
  assert.equal(verdict.allowed, true);
  assert.match(JSON.stringify(verdict.warnings), /labels of the namespace .*default.* are not known/);
  assert.equal(observations[0]?.outcome, 'failed');
});

test('a condition that is false excludes, one that fails is for failurePolicy to decide', () => {
  const table = new TestTable();
  const condition = (expression: string): JsonObject => ({ matchConditions: [{ name: 'c', expression }] });
  const isNo = { answer: deny('no') };
  table.add({ name: 'a', spec: condition('request.userInfo.username == "somebody"'), ...isNo });
  assert.equal(table.ask(VALIDATING).verdict.allowed, true);
  table.add({ name: 'a', spec: condition('object.spec.missing == 1'), ...isNo });
  assert.deepEqual(reasonOf(table.ask(VALIDATING).verdict), {
    message:
      "cap/a: its match conditions cannot be evaluated: expression 'object.spec.missing == 1' resulted in error: no such key: missing",
    code: 403,
  });
  const numbers = JSON.stringify(Array.from({ length: 50 }, (_, index) => index));
  const expression = `${numbers}.all(a, ${numbers}.all(b, ${numbers}.all(c, c >= 0)))`;
  const many = Array.from({ length: 10 }, (_, index) => ({ name: `c${index}`, expression }));
  table.add({ name: 'a', spec: { matchConditions: many }, ...isNo });
  assert.match(JSON.stringify(reasonOf(table.ask(VALIDATING).verdict)), /running out of cost budget/);
  const ignoring = table.add({
    name: 'b',
    spec: { ...condition('object.spec.missing == 1'), failurePolicy: 'Ignore' },
    ...isNo,
  });
  assert.deepEqual(table.ask(ignoring.match.bucket).observations, []);
});

test('match conditions are looked at as long as there is time, and whoever watches is told of whom', () => {
  const table = new TestTable();
  const matchConditions = [{ name: 'c', expression: 'false' }];
  table.add({ name: 'a', spec: { matchConditions } });
  table.add({ name: 'b' });
  const told: string[] = [];
  const watching = { entering: (id: string) => told.push(id), leaving: () => told.push('left') };
  table.ask(VALIDATING, podReview(), watching);
  assert.deepEqual(told.splice(0), ['kw.cap.a', 'left', 'kw.cap.b', 'left']);
  const { verdict } = table.ask(VALIDATING, podReview(), { ...watching, deadlineMs: 0 });
  assert.equal(verdict.message, `2 policies: cap/a: ${TIMEOUT_MESSAGE}; cap/b: ${TIMEOUT_MESSAGE}`);
  assert.deepEqual(told, []);
});

test('a review is deferred before the conditions of policies that are not slow are looked at', () => {
  const table = new TestTable();
  const conditions = (expression: string): JsonObject => ({ matchConditions: [{ name: 'c', expression }] });
  const told: string[] = [];
  const isDeferred = (namespace?: string): boolean => {
    const place = namespace === undefined ? {} : { namespace };
    const { match } = table.add({ name: 'a', ...place, spec: conditions('true') });
    const { id } = table.add({ name: 'b', ...place, spec: conditions('request.name != ""') });
    const options = { slow: new Set([id]), entering: (entered: string) => told.push(entered) };
    return table.admit(match.bucket, podReview(), options).kind === 'deferred';
  };
  assert.deepEqual([isDeferred(), told.splice(0)], [true, ['kw.cap.b']]);
  assert.deepEqual([isDeferred('default'), told], [true, []]);
  table.add({ name: 'b', spec: conditions('false') });
  const slow = new Set(['kw.cap.b']);
  assert.equal(table.ask(VALIDATING, podReview(), { slow }).observations.length, 1);
});

test('a policy of a namespace is for requests in it, and for nothing else', () => {
  const table = new TestTable();
  const rules = [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'], scope: '*' }];
  const { match } = table.add({ name: 'a', namespace: 'default', spec: { rules }, answer: deny('no') });
  const isAllowed = (request: JsonObject): boolean => table.ask(match.bucket, podReview(request)).verdict.allowed;
  assert.equal(isAllowed({}), false);
  assert.equal(isAllowed({ namespace: 'other' }), true);
  const nodes = { group: '', version: 'v1', resource: 'nodes' };
  assert.equal(isAllowed({ namespace: null, resource: nodes, requestResource: nodes }), true);
  const namespaces = { group: '', version: 'v1', resource: 'namespaces' };
  assert.equal(isAllowed({ name: 'default', resource: namespaces, requestResource: namespaces }), true);
});
