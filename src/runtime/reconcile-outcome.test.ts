import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../cluster/index.ts';
import {
  MAX_MESSAGE_LENGTH,
  MAX_THROTTLE_MS,
  outcomeOfError,
  outcomeOfResult,
  Stalled,
  tellingFailure,
  Waiting,
} from './reconcile-outcome.ts';

const PODS = { group: '', resource: 'pods' };

function conditionsOf(error: unknown): string[] {
  return outcomeOfError(error).conditions.map(({ type, status, reason }) => `${type}=${status} ${reason}`);
}

describe('the outcome of a reconciliation', () => {
  it('that went well is Ready, and forgotten', () => {
    const { queue, conditions, event, log } = outcomeOfResult(undefined);
    assert.deepEqual(queue, { action: 'forget' });
    assert.deepEqual(conditions[0], { type: 'Ready', status: 'True', reason: 'Succeeded', message: '' });
    assert.equal(event, undefined);
    assert.equal(log, undefined);
  });

  it('that asks for it is looked at again', () => {
    assert.deepEqual(outcomeOfResult({ requeueAfterMs: 5000 }).queue, { action: 'after', afterMs: 5000 });
  });

  it('that stalled is not tried again, and told to the user', () => {
    const error = new Stalled('ModuleInvalid', 'expected WebAssembly');
    const { queue, event, log } = outcomeOfError(error);
    assert.deepEqual(queue, { action: 'forget' });
    assert.deepEqual(event, { type: 'Warning', reason: 'ModuleInvalid', message: 'expected WebAssembly' });
    assert.equal(log?.level, 'warn');
    assert.deepEqual(conditionsOf(error), [
      'Ready=False ModuleInvalid',
      'Stalled=True ModuleInvalid',
      'Reconciling=False ModuleInvalid',
    ]);
  });

  it('that waits is looked at again after its time, and is nobody’s failure', () => {
    const error = new Waiting('ReplicasPending', 3000);
    const { queue, event, log } = outcomeOfError(error);
    assert.deepEqual(queue, { action: 'after', afterMs: 3000 });
    assert.equal(event, undefined);
    assert.equal(log?.level, 'debug');
    assert.deepEqual(conditionsOf(error), [
      'Ready=Unknown ReplicasPending',
      'Reconciling=True ReplicasPending',
      'Stalled=False ReplicasPending',
    ]);
    assert.match(error.message, /3 s/);
  });

  it('of several attempts is a failure rather than what only waits', () => {
    const waiting = new Waiting('ReplicasPending', 3000);
    const failure = new Error('the cluster is away');
    assert.equal(tellingFailure([waiting, failure]), failure);
    assert.equal(tellingFailure([waiting]), waiting);
    assert.equal(tellingFailure([]), undefined);
  });

  it('that failed is tried again later, and told', () => {
    const { queue, event, log } = outcomeOfError(new Error('the cluster is away'));
    assert.deepEqual(queue, { action: 'backoff' });
    assert.deepEqual(event, { type: 'Warning', reason: 'ReconcileFailed', message: 'the cluster is away' });
    assert.equal(log?.level, 'error');
    assert.equal(log?.fields.stack, undefined);
    assert.notEqual(outcomeOfError(new TypeError('ours')).log?.fields.stack, undefined);
  });

  it('that conflicted is tried again without a word to the user', () => {
    const { queue, conditions, event, log } = outcomeOfError(ApiError.conflict(PODS, 'a', 'changed'));
    assert.deepEqual([queue, conditions, event, log?.level], [{ action: 'backoff' }, [], undefined, 'debug']);
  });

  it('that was throttled is tried again when the server said', () => {
    const error = new ApiError(429, 'TooManyRequests', 'later', { retryAfterSeconds: 7 });
    assert.deepEqual(outcomeOfError(error).queue, { action: 'after', afterMs: 7000 });
    const never = new ApiError(503, 'ServiceUnavailable', 'later', { retryAfterSeconds: 1e9 });
    assert.deepEqual(outcomeOfError(never).queue, { action: 'after', afterMs: MAX_THROTTLE_MS });
  });

  it('that was interrupted by the end of the process is nothing', () => {
    const { queue, conditions, event, log } = outcomeOfError(new Error('aborted'), AbortSignal.abort());
    assert.deepEqual([queue, conditions, event, log], [{ action: 'forget' }, [], undefined, undefined]);
  });

  it('has a message that a condition can take, whatever was thrown', () => {
    assert.equal(outcomeOfError('x'.repeat(5000)).event?.message.length, MAX_MESSAGE_LENGTH);
    assert.equal(outcomeOfError(undefined).event?.message, 'undefined');
  });
});
