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
  SHOWN_FROM_FAILURE,
  Stalled,
  Waiting,
  worstFailure,
} from './reconcile-outcome.ts';

const PODS = { group: '', resource: 'pods' };

describe('the outcome of a reconciliation', () => {
  it('that went well is nothing to tell, and forgotten', () => {
    const { queue, failure, event, log } = outcomeOfResult(undefined);
    assert.deepEqual([queue, failure, event, log], [{ action: 'forget' }, undefined, undefined, undefined]);
  });

  it('that asks for it is looked at again', () => {
    assert.deepEqual(outcomeOfResult({ requeueAfterMs: 5000 }).queue, { action: 'after', afterMs: 5000 });
    assert.deepEqual(earlierResult({ requeueAfterMs: 5 }, { requeueAfterMs: 3 }), { requeueAfterMs: 3 });
    assert.deepEqual(earlierResult({ requeueAfterMs: 5 }, {}), { requeueAfterMs: 5 });
    assert.deepEqual(earlierResult({}, {}), {});
  });

  it('that stalled is not tried again, and told to the user', () => {
    const error = new Stalled('ModuleInvalid', 'expected WebAssembly');
    const { queue, failure, event, log } = outcomeOfError(error);
    const told = { reason: 'ModuleInvalid', message: 'expected WebAssembly' };
    assert.deepEqual(queue, { action: 'forget' });
    assert.deepEqual(event, { type: 'Warning', ...told });
    assert.equal(log?.level, 'warn');
    assert.deepEqual(failure, { state: 'stalled', ...told });
  });

  it('that waits is looked at again after its time, and is nobody’s failure', () => {
    const error = new Waiting('ReplicasPending', 3000);
    const { queue, failure, event, log } = outcomeOfError(error);
    assert.deepEqual(queue, { action: 'after', afterMs: 3000 });
    assert.equal(event, undefined);
    assert.equal(log?.level, 'debug');
    assert.match(error.message, /3 s/);
    assert.deepEqual(failure, { state: 'reconciling', reason: 'ReplicasPending', message: error.message });
  });

  it('of several attempts is a failure rather than what only waits', () => {
    const waiting = new Waiting('ReplicasPending', 3000);
    const failure = new Error('the cluster is away');
    assert.equal(worstFailure([waiting, failure]), failure);
    assert.equal(worstFailure([waiting]), waiting);
    assert.equal(worstFailure([]), undefined);
  });

  it('that failed is tried again later, and told', () => {
    const { queue, failure, event, log } = outcomeOfError(new Error('the cluster is away'));
    const told = { reason: 'ReconcileFailed', message: 'the cluster is away' };
    assert.deepEqual(queue, { action: 'backoff' });
    assert.deepEqual(event, { type: 'Warning', ...told });
    assert.deepEqual(failure, { state: 'reconciling', ...told });
    assert.equal(log?.level, 'error');
    assert.equal(log?.fields.stack, undefined);
    assert.notEqual(outcomeOfError(new TypeError('ours')).log?.fields.stack, undefined);
  });

  it('that failed for a reason of its own is tried again, and told with that reason', () => {
    const { queue, failure, event } = outcomeOfError(new ReconcileError('WebhookRefused', 'not you'));
    assert.deepEqual(queue, { action: 'backoff' });
    assert.deepEqual(
      [failure?.state, failure?.reason, event?.reason],
      ['reconciling', 'WebhookRefused', 'WebhookRefused'],
    );
  });

  it('that the cluster would refuse again is tried again, and needs a user', () => {
    const stateOf = (code: number): string | undefined =>
      outcomeOfError(new ApiError(code, 'Unknown', 'no')).failure?.state;
    assert.deepEqual([400, 413, 422].map(stateOf), ['stalled', 'stalled', 'stalled']);
    assert.deepEqual(
      [401, 403, 404, 500, 503].map(stateOf),
      Array.from({ length: 5 }, () => 'reconciling'),
    );
    assert.deepEqual(outcomeOfError(new ApiError(422, 'Invalid', 'no')).queue, { action: 'backoff' });
  });

  it('that conflicted is tried again without a word to the user, unless it conflicts again and again', () => {
    for (const error of [ApiError.conflict(PODS, 'a', 'changed'), new ApiError(409, 'AlreadyExists', 'there is one')]) {
      const { queue, failure, event, log } = outcomeOfError(error, undefined, SHOWN_FROM_FAILURE - 2);
      assert.deepEqual([queue, failure, event, log?.level], [{ action: 'backoff' }, undefined, undefined, 'debug']);
      const { failure: shown } = outcomeOfError(error, undefined, SHOWN_FROM_FAILURE - 1);
      assert.deepEqual(shown, { state: 'reconciling', reason: 'ReconcileFailed', message: error.message });
    }
  });

  it('that was throttled is tried again when the server said, and told when it is again and again', () => {
    const error = new ApiError(429, 'TooManyRequests', 'later', { retryAfterSeconds: 7 });
    assert.deepEqual(outcomeOfError(error).queue, { action: 'backoff', afterMs: 7000 });
    assert.equal(outcomeOfError(error).failure, undefined);
    assert.equal(outcomeOfError(error, undefined, SHOWN_FROM_FAILURE).failure?.message, 'later');
    const never = new ApiError(503, 'ServiceUnavailable', 'later', { retryAfterSeconds: 1e9 });
    assert.deepEqual(outcomeOfError(never).queue, { action: 'backoff', afterMs: MAX_THROTTLE_MS });
  });

  it('that was interrupted by the end of the process is nothing', () => {
    const { queue, failure, event, log } = outcomeOfError(new Error('aborted'), AbortSignal.abort());
    assert.deepEqual([queue, failure, event, log], [{ action: 'forget' }, undefined, undefined, undefined]);
  });

  it('has a message that a condition can take, whatever was thrown', () => {
    assert.equal(outcomeOfError('x'.repeat(5000)).failure?.message.length, MAX_MESSAGE_LENGTH);
    assert.equal(outcomeOfError(undefined).event?.message, 'undefined');
  });
});
