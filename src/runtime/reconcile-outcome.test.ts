import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../cluster/index.ts';
import {
  earlierResult,
  MAX_MESSAGE_LENGTH,
  MAX_THROTTLE_MS,
  outcomeOfError,
  outcomeOfResult,
  ReconcileError,
  FIRST_REPORTED_FAILURE,
  Stalled,
  Waiting,
  worstFailure,
} from './reconcile-outcome.ts';

const PODS = { group: '', resource: 'pods' };

describe('the outcome of a reconciliation', () => {
  it('has no status, event or log after a success', () => {
    const { queue, failure, event, log } = outcomeOfResult(undefined);
    assert.deepEqual([queue, failure, event, log], [{ action: 'forget' }, undefined, undefined, undefined]);
  });

  it('requeues on request', () => {
    assert.deepEqual(outcomeOfResult({ requeueAfterMs: 5000 }).queue, { action: 'after', afterMs: 5000 });
    assert.deepEqual(earlierResult({ requeueAfterMs: 5 }, { requeueAfterMs: 3 }), { requeueAfterMs: 3 });
    assert.deepEqual(earlierResult({ requeueAfterMs: 5 }, {}), { requeueAfterMs: 5 });
    assert.deepEqual(earlierResult({}, {}), {});
  });

  it('does not retry a stalled object, and reports it to the user', () => {
    const error = new Stalled('ModuleInvalid', 'expected WebAssembly');
    const { queue, failure, event, log } = outcomeOfError(error);
    const report = { reason: 'ModuleInvalid', message: 'expected WebAssembly' };
    assert.deepEqual(queue, { action: 'forget' });
    assert.deepEqual(event, { type: 'Warning', ...report });
    assert.equal(log?.level, 'warn');
    assert.deepEqual(failure, { state: 'stalled', ...report });
  });

  it('retries a waiting object after its time, without counting a failure', () => {
    const error = new Waiting('ReplicasPending', 3000);
    const { queue, failure, event, log } = outcomeOfError(error);
    assert.deepEqual(queue, { action: 'after', afterMs: 3000 });
    assert.equal(event, undefined);
    assert.equal(log?.level, 'debug');
    assert.match(error.message, /3 s/);
    assert.deepEqual(failure, { state: 'reconciling', reason: 'ReplicasPending', message: error.message });
  });

  it('is the first failure of several attempts that does not only wait', () => {
    const waiting = new Waiting('ReplicasPending', 3000);
    const failure = new Error('the cluster is away');
    assert.equal(worstFailure([waiting, failure]), failure);
    assert.equal(worstFailure([waiting]), waiting);
    assert.equal(worstFailure([]), undefined);
  });

  it('retries an unknown error with backoff, and reports it', () => {
    const { queue, failure, event, log } = outcomeOfError(new Error('the cluster is away'));
    const report = { reason: 'ReconcileFailed', message: 'the cluster is away' };
    assert.deepEqual(queue, { action: 'backoff' });
    assert.deepEqual(event, { type: 'Warning', ...report });
    assert.deepEqual(failure, { state: 'reconciling', ...report });
    assert.equal(log?.level, 'error');
    assert.equal(log?.fields.stack, undefined);
    assert.notEqual(outcomeOfError(new TypeError('ours')).log?.fields.stack, undefined);
  });

  it('reports the reason of a ReconcileError', () => {
    const { queue, failure, event } = outcomeOfError(new ReconcileError('WebhookRefused', 'not you'));
    assert.deepEqual(queue, { action: 'backoff' });
    assert.deepEqual(
      [failure?.state, failure?.reason, event?.reason],
      ['reconciling', 'WebhookRefused', 'WebhookRefused'],
    );
  });

  it('retries an invalid write, and reports it as stalled', () => {
    const stateOf = (code: number): string | undefined =>
      outcomeOfError(new ApiError(code, 'Unknown', 'no')).failure?.state;
    assert.deepEqual([400, 413, 422].map(stateOf), ['stalled', 'stalled', 'stalled']);
    assert.deepEqual(
      [401, 403, 404, 500, 503].map(stateOf),
      Array.from({ length: 5 }, () => 'reconciling'),
    );
    assert.deepEqual(outcomeOfError(new ApiError(422, 'Invalid', 'no')).queue, { action: 'backoff' });
  });

  it('retries a conflict, and reports it only when it repeats', () => {
    for (const error of [ApiError.conflict(PODS, 'a', 'changed'), new ApiError(409, 'AlreadyExists', 'there is one')]) {
      const { queue, failure, event, log } = outcomeOfError(error, undefined, FIRST_REPORTED_FAILURE - 2);
      assert.deepEqual([queue, failure, event, log?.level], [{ action: 'backoff' }, undefined, undefined, 'debug']);
      const { failure: shown } = outcomeOfError(error, undefined, FIRST_REPORTED_FAILURE - 1);
      assert.deepEqual(shown, { state: 'reconciling', reason: 'ReconcileFailed', message: error.message });
    }
  });

  it('retries a throttled write after Retry-After, and reports it only when it repeats', () => {
    const error = new ApiError(429, 'TooManyRequests', 'later', { retryAfterSeconds: 7 });
    assert.deepEqual(outcomeOfError(error).queue, { action: 'backoff', afterMs: 7000 });
    assert.equal(outcomeOfError(error).failure, undefined);
    assert.equal(outcomeOfError(error, undefined, FIRST_REPORTED_FAILURE).failure?.message, 'later');
    const never = new ApiError(503, 'ServiceUnavailable', 'later', { retryAfterSeconds: 1e9 });
    assert.deepEqual(outcomeOfError(never).queue, { action: 'backoff', afterMs: MAX_THROTTLE_MS });
  });

  it('is empty when the process stops', () => {
    const { queue, failure, event, log } = outcomeOfError(new Error('aborted'), AbortSignal.abort());
    assert.deepEqual([queue, failure, event, log], [{ action: 'forget' }, undefined, undefined, undefined]);
  });

  it('has a message that fits a condition, whatever was thrown', () => {
    assert.equal(outcomeOfError('x'.repeat(5000)).failure?.message.length, MAX_MESSAGE_LENGTH);
    assert.equal(outcomeOfError(undefined).event?.message, 'undefined');
  });
});
