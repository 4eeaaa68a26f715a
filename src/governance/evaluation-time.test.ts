import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonValue } from '../values/index.ts';
import type { TemplateResult } from './templates/index.ts';
import { EvaluationTime } from './evaluation-time.ts';

const resolved = (value: JsonValue): TemplateResult => ({
  state: 'resolved',
  value,
  lookedUp: [],
  usedSensitive: false,
});

/** Renders up to 100 times. @returns how often, and the message at the end */
function renderings(time: EvaluationTime, render: () => TemplateResult): readonly [number, string] {
  let count = 0;
  for (; count < 100; count += 1) {
    const result = time.render(render);
    if (result.state === 'exceeded') {
      return [count, result.message];
    }
  }
  return [count, ''];
}

describe('the time of an evaluation', () => {
  it('bounds the renderings of a policy together', () => {
    let now = 0;
    const time = new EvaluationTime(() => now);
    const [count, message] = renderings(time, () => {
      now += 300;
      return resolved({});
    });
    assert.deepEqual([count, time.isExceeded], [4, true]);
    assert.match(message, /^the templates of the policy take more than 1 s together/);
  });

  it('bounds the results of templates together', () => {
    const time = new EvaluationTime(() => 0);
    const text = 'x'.repeat(4_000_000);
    const [count, message] = renderings(time, () => resolved({ text }));
    assert.deepEqual([count, time.isExceeded], [8, true]);
    assert.match(message, /^the results of the templates have more than 32000000 characters together/);
  });

  it('counts a rendering that fails', () => {
    let now = 0;
    const time = new EvaluationTime(() => now);
    assert.throws(() =>
      time.render(() => {
        now += 2_000;
        throw new Error('ours');
      }),
    );
    assert.equal(time.render(() => resolved({})).state, 'exceeded');
  });

  it('adds up all rounds, but not what is between them', () => {
    let now = 0;
    const time = new EvaluationTime(() => now);
    for (let round = 1; round <= 2; round += 1) {
      time.round(() => {
        now += 2_500;
        assert.equal(time.isOverdue(), false);
      });
      now += 60_000;
      assert.equal(time.spentMs, round * 2_500);
    }
    time.round(() => {
      now += 1;
      assert.equal(time.isOverdue(), true);
    });
    assert.equal(time.isExceeded, true);
  });
});
