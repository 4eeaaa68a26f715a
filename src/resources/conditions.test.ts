import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  findCondition,
  isConditionTrue,
  MAX_CONDITION_MESSAGE_LENGTH,
  removeCondition,
  setCondition,
} from './conditions.ts';

const MINUTE = 60_000;

describe('conditions', () => {
  const first = setCondition(undefined, { type: 'Ready', status: 'False', reason: 'Starting' }, 0);

  it('are added with the time', () => {
    assert.deepEqual(first, [
      { type: 'Ready', status: 'False', lastTransitionTime: '1970-01-01T00:00:00Z', reason: 'Starting', message: '' },
    ]);
  });

  it('keep their transition time while the status stays', () => {
    const [next] = setCondition(
      first,
      { type: 'Ready', status: 'False', reason: 'Failing', message: 'no', observedGeneration: 2 },
      MINUTE,
    );
    assert.deepEqual(
      [next?.lastTransitionTime, next?.reason, next?.observedGeneration],
      ['1970-01-01T00:00:00Z', 'Failing', 2],
    );
  });

  it('get a new transition time when the status changes', () => {
    const next = setCondition(first, { type: 'Ready', status: 'True', reason: 'Started' }, MINUTE);
    assert.equal(next[0]?.lastTransitionTime, '1970-01-01T00:01:00Z');
    assert.ok(isConditionTrue(next, 'Ready') && !isConditionTrue(next, 'Other') && !isConditionTrue(first, 'Ready'));
  });

  it('have messages that control no terminal', () => {
    const update = {
      type: 'Ready',
      status: 'False',
      reason: 'Failing',
      message: 'evil\u001B[2J\u001B]8;;a:b\u009B2J\u202Etxt',
    } as const;
    const conditions = setCondition(undefined, update, 0);
    assert.equal(conditions[0]?.message, 'evil\u{fffd}[2J\u{fffd}]8;;a:b\u{fffd}2J\u{fffd}txt');
    assert.equal(setCondition(conditions, update, MINUTE), conditions, 'nothing to write');
  });

  it('are the same list when nothing changes', () => {
    assert.equal(setCondition(first, { type: 'Ready', status: 'False', reason: 'Starting' }, MINUTE), first);
    assert.equal(removeCondition(first, 'Other'), first);
  });

  it('of several types are kept', () => {
    const both = setCondition(first, { type: 'Other', status: 'Unknown', reason: 'Asking' }, MINUTE);
    assert.deepEqual(
      both.map(({ type }) => type),
      ['Ready', 'Other'],
    );
    assert.equal(findCondition(removeCondition(both, 'Ready'), 'Other')?.reason, 'Asking');
  });

  it('have messages within the limit of Kubernetes', () => {
    const [long] = setCondition(undefined, { type: 'A', status: 'True', reason: 'B', message: 'x'.repeat(40_000) }, 0);
    assert.equal(long?.message.length, MAX_CONDITION_MESSAGE_LENGTH);
  });
});
