import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { LogEntry } from '../../log/index.ts';
import type { CompiledPolicyModule } from '../loading/compiled-module.ts';
import { moduleOf, tableChange, tableEntry } from '../testing/worker-tables.ts';
import { PolicyEvaluation } from './policy-evaluation.ts';

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

it('answers by more policies than its memory can hold instances of', () => {
  const modules = ['accept', 'stateful', 'scripted-answer'].map((name) => moduleOf(name));
  const refuse = (): never => assert.fail('nothing is asked of the host');
  const evaluation = new PolicyEvaluation({
    defaultTimeoutSeconds: 2,
    port: { request: refuse, inventory: refuse, revisionOf: refuse },
    log: () => undefined,
    activity: { enter: () => undefined, leave: () => undefined },
    // The code of the modules takes all of it.
    memory: { bytes: 4_000_000, threads: 3, guestBytes: 1 },
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
