import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Condition } from './conditions.ts';
import { type Readiness, setReadiness, setUninstalled } from './readiness.ts';

const MINUTE = 60_000;

function readiness(state: Readiness['state'], reason = 'Why'): Readiness {
  return { state, reason, message: 'for people' };
}

function shown(conditions: readonly Condition[]): string[] {
  return conditions.map(({ type, status, observedGeneration }) => `${type}=${status} ${observedGeneration}`);
}

describe('the readiness of an object', () => {
  it('is one condition when ready, otherwise two', () => {
    assert.deepEqual(shown(setReadiness(undefined, readiness('ready'), 3, 0)), ['Ready=True 3']);
    assert.deepEqual(shown(setReadiness(undefined, readiness('reconciling'), 3, 0)), [
      'Ready=False 3',
      'Reconciling=True 3',
    ]);
    assert.deepEqual(shown(setReadiness(undefined, readiness('stalled'), 3, 0)), ['Ready=False 3', 'Stalled=True 3']);
  });

  it('is never both reconciling and stalled, and neither when ready', () => {
    const stalled = setReadiness(setReadiness(undefined, readiness('reconciling'), 1, 0), readiness('stalled'), 1, 0);
    assert.deepEqual(shown(stalled), ['Ready=False 1', 'Stalled=True 1']);
    assert.deepEqual(shown(setReadiness(stalled, readiness('ready'), 2, 0)), ['Ready=True 2']);
  });

  it('keeps other conditions, and returns the same list when nothing changes', () => {
    const other: Condition = { type: 'Other', status: 'True', lastTransitionTime: 't', reason: 'R', message: '' };
    const conditions = setReadiness([other], readiness('reconciling'), 1, 0);
    assert.equal(conditions[0], other);
    assert.equal(setReadiness(conditions, readiness('reconciling'), 1, MINUTE), conditions);
    const next = setReadiness(conditions, readiness('reconciling', 'Later'), 1, MINUTE);
    assert.deepEqual(
      next.slice(1).map(({ lastTransitionTime, reason }) => `${lastTransitionTime} ${reason}`),
      ['1970-01-01T00:00:00Z Later', '1970-01-01T00:00:00Z Later'],
    );
  });

  it('is the last one after an uninstallation, until a controller sets another', () => {
    const ready = setReadiness(undefined, readiness('ready'), 3, 0);
    const last = setUninstalled(ready, 'gone', 3, 0);
    assert.deepEqual(shown(last), ['Ready=False 3', 'Stalled=True 3', 'Enforced=False 3']);
    assert.equal(setUninstalled(last, 'gone', 3, MINUTE), last);
    assert.deepEqual(shown(setReadiness(last, readiness('ready'), 3, 0)), ['Ready=True 3']);
  });
});
