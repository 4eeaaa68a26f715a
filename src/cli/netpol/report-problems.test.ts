import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Condition, ProviderEntry } from '../../resources/index.ts';
import { reportProblems } from './report-problems.ts';

function condition(type: string, status: Condition['status'], observedGeneration = 3): Condition {
  const time = '2026-11-29T08:00:00Z';
  return { type, status, reason: 'Reason', message: '', observedGeneration, lastTransitionTime: time };
}

const entry = (conditions: readonly Condition[], more: Partial<ProviderEntry> = {}): ProviderEntry => ({
  controllerName: 'example.com/agent',
  reporter: 'example',
  conditions,
  ...more,
});

describe('a report of a network provider', () => {
  const accepted = condition('Accepted', 'True');
  const refused = condition('Accepted', 'False');
  for (const [what, reported] of [
    ['what it does', entry([accepted])],
    ['what it does not do', entry([refused, condition('PartialFailure', 'True')])],
    ['what it does not know', entry([condition('Accepted', 'Unknown')])],
  ] as const) {
    it(`may say ${what}`, () => assert.deepEqual(reportProblems(reported, 3), []));
  }

  const feature = { ...condition('EndPort', 'False'), paths: [] };
  for (const [what, reported, problem] of [
    ['no entry', undefined, /no entry of its own/],
    [
      'the entry of the controller',
      entry([accepted], { reporter: 'portcullis-network-policy' }),
      /no entry of its own/,
    ],
    ['no condition', entry([]), /no condition Accepted/],
    ['another generation', entry([condition('Accepted', 'True', 2)]), /observedGeneration 2, expected 3/],
    ['a failure that is accepted', entry([accepted, condition('Failure', 'True')]), /True beside Failure/],
    ['a feature that is accepted', entry([accepted], { features: [feature] }), /True beside EndPort/],
    ['a failure of no kind', entry([refused]), /0 of Failure, PartialFailure are True/],
  ] as const) {
    it(`is wrong with ${what}`, () => assert.match(reportProblems(reported, 3).join(), problem));
  }
});
