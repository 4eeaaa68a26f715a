import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EngineError } from './values/errors.ts';
import { evaluate, readReview } from './evaluate.ts';
import type { JsonObject } from './values/json-text.ts';
import { createFailedPolicy, createPolicy } from './loaded-policy.ts';
import { MAX_MONITORED_MESSAGE, MAX_MONITORED_NAME, MAX_MONITORED_USER } from './definition/limits.ts';
import type { MonitoredVerdict } from './monitored-verdict.ts';
import type { Route } from './verdict/observation.ts';
import { parsePolicies } from './definition/policies-file.ts';
import { bytes, podReview } from './testing/reviews.ts';
import { ScriptedGuest } from './testing/scripted-guest.ts';

const OPTIONS = { port: { request: () => assert.fail('the policy calls the host') }, log: () => undefined };
const UID = '1299d386-525b-4032-98ae-1949f69f9cfc';
const DENIAL: MonitoredVerdict = {
  policy: 'id',
  uid: UID,
  allowed: false,
  operation: 'CREATE',
  kind: 'Pod',
  namespace: 'default',
  name: 'nginx',
  user: 'kubernetes-admin',
  isDryRun: false,
  message: 'no',
};

/** What a policy in monitor mode would have done. @param settings of the policy, as YAML */
function monitored(
  answer: unknown,
  settings = '',
  review: unknown = podReview(),
  route: Route = 'validate',
): MonitoredVerdict | undefined {
  const guest = new ScriptedGuest(() => {
    if (answer instanceof Error) {
      throw answer;
    }
    return answer;
  });
  const mode = settings.includes('policyMode') ? '' : ', policyMode: monitor';
  const [definition] = parsePolicies(`id: {module: m${mode}${settings}}`, 'policies.yml').policies;
  assert.ok(definition);
  const policy = createPolicy(definition, () => guest, OPTIONS);
  return evaluate(policy, readReview(route, bytes(review)), { route }).monitored;
}

const NO = { accepted: false, message: 'no' };
const CHANGED = { kind: 'Pod', apiVersion: 'v1', metadata: { name: 'nginx', labels: { a: 'b' } } };

test('a denial names the request', () => {
  assert.deepEqual(monitored({ ...NO, code: 418 }), { ...DENIAL, code: 418 });
  assert.deepEqual(monitored(NO, '', podReview({ dryRun: true })), { ...DENIAL, isDryRun: true });
});

test('the verdict is that of protect mode, with message and mutation rules', () => {
  assert.deepEqual(monitored(NO, ', message: ask the team'), { ...DENIAL, message: 'ask the team' });
  const changes = { accepted: true, mutated_object: CHANGED };
  const forbidden = monitored(changes);
  assert.equal(forbidden?.allowed, false);
  assert.match(forbidden?.message ?? '', /configured to not allow mutations/);
  const { message: _message, ...request } = DENIAL;
  assert.deepEqual(monitored(changes, ', allowedToMutate: true'), { ...request, allowed: true });
});

test('a policy that fails or takes too long would have denied', () => {
  assert.match(monitored(new EngineError('guest-error', 'trap'))?.message ?? '', /internal server error: trap/);
  assert.match(
    monitored(new EngineError('guest-timeout', 'slow'))?.message ?? '',
    /exceeded the allowed execution time/,
  );
});

test('there is nothing to tell of plain admissions, of audits, and of policies that protect or could not be loaded', () => {
  assert.equal(monitored({ accepted: true }), undefined);
  assert.equal(monitored(NO, '', podReview(), 'audit'), undefined);
  assert.equal(monitored(NO, ', policyMode: protect'), undefined);
  const failed = createFailedPolicy({ id: 'id', message: 'broken', mode: 'monitor' }, OPTIONS);
  assert.equal(
    evaluate(failed, readReview('validate', bytes(podReview())), { route: 'validate' }).monitored,
    undefined,
  );
});

test('an object without a name has its generateName, and a raw request neither name nor user', () => {
  const object = { kind: 'Pod', apiVersion: 'v1', metadata: { generateName: 'web-7f9-' } };
  const names = [
    podReview({ name: '', object }),
    podReview({ name: null, object }),
    podReview({ name: null, object: {} }),
    podReview({ name: 'nginx', object }),
  ].map((review) => monitored(NO, '', review)?.name);
  assert.deepEqual(names, ['web-7f9-*', 'web-7f9-*', '', 'nginx']);
  const raw = monitored(NO, '', { request: { uid: 'r' } }, 'validate_raw');
  assert.deepEqual(raw, { policy: 'id', uid: 'r', allowed: false, isDryRun: false, message: 'no' });
});

test('texts of a request are bounded, and without control characters', () => {
  const long = `a\n\u001b[2J${'x'.repeat(1_000_000)}`;
  const kind = { group: '', version: 'v1', kind: long };
  const hostile: JsonObject = { uid: long, kind, requestKind: kind, name: long, namespace: long, operation: long };
  const verdict = monitored(
    { accepted: false, message: long },
    '',
    podReview({ ...hostile, userInfo: { username: long } }),
  );
  assert.ok(verdict);
  const { name = '', user = '', message = '', uid } = verdict;
  assert.deepEqual(
    [name.length, user.length, message.length],
    [MAX_MONITORED_NAME, MAX_MONITORED_USER, MAX_MONITORED_MESSAGE],
  );
  assert.ok([name, user, uid].every((text) => text.startsWith('a  [2J')));
  assert.ok(message.startsWith('a \ufffd[2J'));
  assert.deepEqual([verdict.kind, verdict.namespace, verdict.operation], ['other', 'other', 'other']);
  assert.equal(monitored(NO, '', podReview({ userInfo: { username: 7 } }))?.user, '');
  assert.equal(monitored(NO, '', podReview({ name: 'a\ud800' }))?.name, 'a\ufffd');
});
