import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ANNOTATIONS } from '../resources/index.ts';
import { parseRolloutAnnotations } from './rollout-settings.ts';

const { rolloutStrategy, progressDeadline, revisionHistoryLimit } = ANNOTATIONS;

describe('parseRolloutAnnotations', () => {
  for (const [annotation, text, settings] of [
    [rolloutStrategy, 'AllReplicas', { strategy: 'AllReplicas' }],
    [progressDeadline, '90s', { progressDeadlineMs: 90_000 }],
    [progressDeadline, '1h30m', { progressDeadlineMs: 5_400_000 }],
    [progressDeadline, '24h', { progressDeadlineMs: 86_400_000 }],
    [revisionHistoryLimit, '0', { historyLimit: 0 }],
    [revisionHistoryLimit, '1000', { historyLimit: 1000 }],
    ['example.com/other', 'x', {}],
  ] as const) {
    it(`parses ${annotation} ${text}`, () => {
      assert.deepEqual(parseRolloutAnnotations({ [annotation]: text }), { settings, problems: [] });
    });
  }

  for (const [annotation, text] of [
    [rolloutStrategy, 'available'],
    [progressDeadline, ''],
    [progressDeadline, '0s'],
    [progressDeadline, '90'],
    [progressDeadline, '25h'],
    [progressDeadline, '1.5h'],
    [revisionHistoryLimit, '1001'],
    [revisionHistoryLimit, '-1'],
    [revisionHistoryLimit, ''],
  ] as const) {
    it(`reports an invalid ${annotation} "${text}", and treats it as absent`, () => {
      const { settings, problems } = parseRolloutAnnotations({ [annotation]: text, [rolloutStrategy]: text });
      assert.deepEqual(settings, {});
      assert.ok(
        problems.some((problem) => problem.annotation === annotation && problem.message.startsWith('expected ')),
      );
    });
  }
});
