import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { planRollout } from '../../rollout/index.ts';
import { rolloutPhase } from './rollout-phase.ts';
import { both, failed, FETCH, first, LATE, PHASE_CASES, REFUSAL } from './testing/phase-cases.ts';
import { replica, revision, view } from './testing/rollout-scene.ts';

describe('the phase of a policy', () => {
  for (const { when, view: scene, failure, isStalled, ...expected } of PHASE_CASES) {
    const isAtRest = expected.phase === 'Active' || expected.phase === 'RolledBack';
    const state = isStalled === true ? 'stalled' : isAtRest && failure === undefined ? 'ready' : 'reconciling';
    it(`is ${expected.phase}, ${state}, for the reason ${expected.reason}, when ${when}`, () => {
      assert.deepEqual(rolloutPhase(scene, failure), { ...expected, state });
    });
  }

  it('is published before the plan switches: a plan for the published phase never asks to plan again at once', () => {
    for (const { when, view: scene, failure } of PHASE_CASES) {
      const { wakeAt = Infinity } = planRollout({ ...scene, phase: rolloutPhase(scene, failure).phase });
      assert.ok(wakeAt > scene.now, when);
    }
  });

  it('has a bounded message for any replicas and revisions', () => {
    const message = '🙂'.repeat(20_000);
    const replicas = Array.from({ length: 200 }, (_, index) => replica(`r${index}`, { 1: { ...FETCH, message } }));
    const text = rolloutPhase(view([first], replicas), undefined).message;
    assert.ok(text.length < 8_000, String(text.length));
    assert.ok(text.isWellFormed());
    assert.match(text, /; and 197 more; nothing serves/);

    const many = Array.from({ length: 1_000 }, (_, index) => revision(index + 1, 'Retired'));
    assert.match(
      rolloutPhase(view(many, both, { pin: 5_000 }), undefined).message,
      /the last 20 of 1000: 981, 982, .*, 1000\)/,
    );

    const loading = Array.from({ length: 200 }, (_, index) => replica(`r${index}`));
    const slow = rolloutPhase(view([revision(1, 'Validated')], loading, LATE), undefined).message;
    assert.match(slow, /not by r0, r1, r2 and 197 more/);

    assert.ok(rolloutPhase(view([first], both), { ...REFUSAL, message }).message.length < 3_000);
    assert.ok(rolloutPhase(view([{ ...failed(1), message }], both), undefined).message.length < 3_000);
  });
});
