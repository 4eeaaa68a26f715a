import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { LogEntry } from '../../log/index.ts';
import type { CompiledPolicyModule } from '../compiled-module.ts';
import { moduleOf, tableChange, tableEntry } from '../testing/worker-tables.ts';
import type { PolicyMatch } from '../../resources/index.ts';
import { InstanceMemory } from '../../wasm/index.ts';
import { LONG_REVIEW_MS, type ReviewAnswer } from '../evaluation-protocol.ts';
import { PolicyEvaluation, type PolicyEvaluationOptions } from './policy-evaluation.ts';

it('answers a fault of the engine as failed, logs it, and evaluates the next review', () => {
  const logged: LogEntry[] = [];
  let isBroken = true;
  const module = moduleOf('accept');
  const refuse = (): never => assert.fail('nothing is asked of the host');
  const evaluation = new PolicyEvaluation({
    defaultTimeoutSeconds: 2,
    port: { request: refuse, inventory: refuse, revisionOf: refuse },
    log: (entry) => logged.push(entry),
    activity: {
      enter: () => {
        if (isBroken) {
          throw new TypeError('bug');
        }
      },
      leave: () => undefined,
      waitedMs: 0,
    },
  });
  evaluation.policies.apply(tableChange([tableEntry('id', module)], { modules: [module] }), [1]);
  const review = (): unknown => {
    const terms = { timedOut: null, expiresAt: Infinity, slow: null, failedLookups: null };
    const outcome = evaluation.review([1, 1, 'validate_raw', 'id', Buffer.from('{"request":{}}'), terms]);
    return outcome.type === 'answer' ? outcome.answer.result.kind : outcome.type;
  };
  assert.equal(review(), 'failed');
  assert.deepEqual([logged[0]?.message, logged[0]?.fields['policy']], ['the engine failed', 'id']);
  assert.match(String(logged[0]?.fields['error']), /TypeError: bug/);
  isBroken = false;
  assert.equal(review(), 'response');
});

describe('a review', () => {
  const refuse = (): never => assert.fail('nothing is asked of the host');
  const terms = { timedOut: null, expiresAt: Infinity, slow: null, failedLookups: null };
  const reviewOnce = (activity: PolicyEvaluationOptions['activity']): ReviewAnswer => {
    const port = { request: refuse, inventory: refuse, revisionOf: refuse };
    const evaluation = new PolicyEvaluation({ defaultTimeoutSeconds: 2, port, log: () => undefined, activity });
    const module = moduleOf('accept');
    evaluation.policies.apply(tableChange([tableEntry('id', module)], { modules: [module] }), [7]);
    const outcome = evaluation.review([1, 1, 'validate_raw', 'id', Buffer.from('{"request":{}}'), terms]);
    assert.ok(outcome.type === 'answer');
    return outcome.answer;
  };

  it('that takes long tells which policy held the worker, with the time that it waited for the host', (context) => {
    let now = 0;
    context.mock.method(performance, 'now', () => (now += LONG_REVIEW_MS));
    let waitedMs = 5_000;
    const { held } = reviewOnce({
      enter: () => (waitedMs += 300),
      leave: () => undefined,
      get waitedMs() {
        return waitedMs;
      },
    });
    assert.equal(held?.policy, 7);
    assert.equal(held.waitedMs, 300);
    assert.ok(held.ms > LONG_REVIEW_MS);
  });

  it('that takes long because others run tells nothing of it', (context) => {
    let now = 0;
    context.mock.method(performance, 'now', () => (now += 1_000));
    context.mock.method(process, 'threadCpuUsage', () => ({ user: 19_000, system: 0 }));
    const { held, evaluationMs } = reviewOnce({ enter: () => undefined, leave: () => undefined, waitedMs: 0 });
    assert.ok(evaluationMs > LONG_REVIEW_MS);
    assert.equal(held, undefined);
  });

  it('that is quick tells nothing of it', (context) => {
    context.mock.method(performance, 'now', () => 0);
    const { held } = reviewOnce({ enter: () => undefined, leave: () => undefined, waitedMs: 0 });
    assert.equal(held, undefined);
  });

  it('collects the garbage of instances that its policies dropped before it is answered', (context) => {
    const collect = context.mock.method(InstanceMemory.prototype, 'collect', () => undefined);
    const before = collect.mock.callCount();
    let entered = 0;
    reviewOnce({ enter: () => (entered = collect.mock.callCount()), leave: () => undefined, waitedMs: 0 });
    assert.ok(collect.mock.callCount() > entered && entered >= before);
  });
});

/** Policies that ask nothing of the host. */
function lonelyEvaluation(options: Pick<PolicyEvaluationOptions, 'memory'> = {}): PolicyEvaluation {
  const refuse = (): never => assert.fail('nothing is asked of the host');
  return new PolicyEvaluation({
    defaultTimeoutSeconds: 2,
    port: { request: refuse, inventory: refuse, revisionOf: refuse },
    log: () => undefined,
    activity: { enter: () => undefined, leave: () => undefined, waitedMs: 0 },
    ...options,
  });
}

it('forgets the observations of policies that are gone', () => {
  const evaluation = lonelyEvaluation();
  const module = moduleOf('accept');
  const terms = { timedOut: null, expiresAt: Infinity, slow: null, failedLookups: null };
  for (let tenant = 0; tenant < 50; tenant += 1) {
    const id = `tenant-${tenant}`;
    evaluation.apply(tableChange([tableEntry(id, module)], { modules: [module] }), [1]);
    evaluation.review([1, 1, 'validate_raw', id, Buffer.from('{"request":{}}'), terms]);
    assert.equal(evaluation.numberedObservations, 1);
    assert.equal(evaluation.apply(tableChange([], { removals: [id] }), []).isRenumbered, true);
  }
  assert.equal(evaluation.numberedObservations, 0);
});

it('answers by more policies than its memory can hold instances of', () => {
  const modules = ['accept', 'stateful', 'scripted-answer'].map((name) => moduleOf(name));
  const evaluation = lonelyEvaluation({
    // The code of the modules takes all of it.
    memory: { processBytes: 8_000_000, bytes: 4_000_000, threads: 3, guestBytes: 1 },
  });
  const large = { ...modules[0], digest: 'sha256:large' } as CompiledPolicyModule;
  const all = [...modules, large];
  const entries = all.map((module, index) => tableEntry(`p${index}`, module));
  evaluation.policies.apply(tableChange(entries, { modules: all }), [1, 2, 3, 4]);
  const terms = { timedOut: null, expiresAt: Infinity, slow: null, failedLookups: null };
  for (let turn = 1; turn <= 12; turn++) {
    const body = Buffer.from('{"request":{"object":{}}}');
    const outcome = evaluation.review([turn, turn, 'validate_raw', `p${turn % 4}`, body, terms]);
    assert.equal(outcome.type === 'answer' && outcome.answer.result.kind, 'response');
    assert.equal(outcome.type === 'answer' && outcome.answer.observations.length, 1);
  }
});

it('defers a review by a policy of a namespace until this version was evaluated', () => {
  const refuse = (): never => assert.fail('nothing is asked of the host');
  const evaluation = new PolicyEvaluation({
    defaultTimeoutSeconds: 10,
    hasBuckets: true,
    port: { request: refuse, inventory: refuse, revisionOf: refuse },
    log: () => undefined,
    activity: { enter: () => undefined, leave: () => undefined, waitedMs: 0 },
  });
  const module = moduleOf('accept');
  const bucket = 'validating.fail.equivalent.namespaced.v1';
  const match: PolicyMatch = {
    bucket,
    isMutating: false,
    failurePolicy: 'Fail',
    matchPolicy: 'Equivalent',
    rules: [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'], scope: '*' }],
    namespaceSelector: {},
    objectSelector: {},
    matchConditions: [],
    timeoutSeconds: 10,
    namespace: 'tenant',
  };
  const upsert = { ...tableEntry('kw.ap.tenant.a', module), match };
  const apply = (): void => {
    evaluation.policies.apply(tableChange([upsert], { modules: [module] }), [1]);
  };
  const request = {
    uid: 'u',
    kind: { group: '', version: 'v1', kind: 'Pod' },
    resource: { group: '', version: 'v1', resource: 'pods' },
    name: 'a',
    namespace: 'tenant',
    operation: 'CREATE',
    userInfo: {},
    object: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', namespace: 'tenant' } },
  };
  const body = Buffer.from(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request }));
  const review = (slow: readonly string[] | null): string => {
    const terms = { timedOut: null, expiresAt: Infinity, slow, failedLookups: null };
    return evaluation.review([1, 1, 'admit', bucket, body, terms]).type;
  };
  apply();
  assert.deepEqual([review([]), review([]), review(null), review([])], ['deferred', 'deferred', 'answer', 'answer']);
  apply();
  assert.equal(review([]), 'deferred', 'another version may cost more');
});
