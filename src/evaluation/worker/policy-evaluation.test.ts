import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { LogEntry } from '../../log/index.ts';
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
