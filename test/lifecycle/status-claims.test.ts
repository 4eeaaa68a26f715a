// The rule by which the disaster tests compare statuses with requests.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AdmissionPolicyStatus } from '../../src/resources/index.ts';
import { type Claim, claimOf, type Effect, falseClaim, type Sample } from './status-claims.ts';

const JUDGED: Claim = { text: 'True Serving: revision 1 answers requests', effect: 'judged' };
const REJECTED: Claim = { text: 'True FailurePolicy: requests are rejected', effect: 'rejected' };
const ADMITTED: Claim = { text: 'True FailurePolicy: requests are admitted', effect: 'admitted' };
const UNKNOWN: Claim = { text: 'Unknown AnswersUnknown: not known', effect: undefined };

/** Samples with one claim. */
function under(claim: Claim | undefined, ...effects: Effect[]): Sample[] {
  return effects.map((effect) => ({ claim, effect }));
}

/** The first of the samples comes after all processes had ended. */
function afterTheEnd([first, ...rest]: readonly Sample[]): Sample[] {
  return first === undefined ? [] : [{ ...first, isFresh: true }, ...rest];
}

function afterWrite([first, ...rest]: readonly Sample[]): Sample[] {
  return first === undefined ? [] : [{ ...first, isConfigured: true }, ...rest];
}

const TRUE: readonly (readonly [string, readonly Sample[]])[] = [
  ['a status that agrees with requests', under(JUDGED, 'judged', 'judged')],
  ['nothing, while there is no status', under(undefined, 'judged', 'admitted')],
  ['what is said to be unknown', under(UNKNOWN, 'judged', 'admitted', 'rejected')],
  [
    'a status that is outdated until the next one, however many requests meet it',
    [...under(REJECTED, 'rejected', 'judged', 'judged', 'judged'), ...under(JUDGED, 'judged')],
  ],
  [
    'a status that was written when requests had changed already',
    [...under(UNKNOWN, 'rejected', 'judged'), ...under(REJECTED, 'judged', 'judged'), ...under(JUDGED, 'judged')],
  ],
  [
    'a status about a moment between two requests, while things moved on',
    [...under(ADMITTED, 'admitted'), ...under(REJECTED, 'admitted'), ...under(UNKNOWN, 'admitted', 'rejected')],
  ],
  [
    'a status from before the end of all processes',
    [...under(JUDGED, 'judged'), ...afterTheEnd(under(JUDGED, 'rejected', 'rejected')), ...under(REJECTED, 'rejected')],
  ],
  [
    'a status that is true once the API server uses what was written',
    [
      ...under(ADMITTED, 'admitted'),
      ...afterWrite(under(ADMITTED, 'admitted')),
      ...under(JUDGED, 'admitted', 'admitted', 'judged'),
    ],
  ],
];

const FALSE: readonly (readonly [string, Claim, readonly Sample[]])[] = [
  [
    'what is declared and never came true',
    ADMITTED,
    [...under(REJECTED, 'rejected'), ...under(ADMITTED, 'rejected', 'rejected')],
  ],
  [
    'what came true later only',
    ADMITTED,
    [...under(REJECTED, 'rejected'), ...under(ADMITTED, 'rejected', 'admitted', 'admitted')],
  ],
  [
    'for a single request what is not so',
    ADMITTED,
    [...under(REJECTED, 'rejected'), ...under(ADMITTED, 'rejected'), ...under(REJECTED, 'rejected')],
  ],
  [
    'for two requests what is not so, while things moved on',
    REJECTED,
    [...under(ADMITTED, 'admitted'), ...under(REJECTED, 'admitted', 'admitted'), ...under(UNKNOWN, 'rejected')],
  ],
  [
    'again what was so before',
    REJECTED,
    [...under(REJECTED, 'rejected', 'judged'), ...under(JUDGED, 'judged'), ...under(REJECTED, 'judged')],
  ],
  [
    'what no process can remember',
    JUDGED,
    [
      ...under(JUDGED, 'judged'),
      ...under(UNKNOWN, 'judged'),
      ...afterTheEnd(under(UNKNOWN, 'rejected')),
      ...under(JUDGED, 'rejected'),
    ],
  ],
  [
    'something else after the API server used what was written',
    REJECTED,
    [
      ...under(ADMITTED, 'admitted'),
      ...afterWrite(under(JUDGED, 'admitted', 'judged')),
      ...under(REJECTED, 'judged', 'judged'),
    ],
  ],
];

describe('statuses compared with requests', () => {
  for (const [what, samples] of TRUE) {
    it(`accepts ${what}`, () => assert.equal(falseClaim(samples), undefined));
  }
  for (const [what, claim, samples] of FALSE) {
    it(`rejects a status that says ${what}`, () => assert.equal(falseClaim(samples), claim.text));
  }
});

describe('a status whose parts contradict each other', () => {
  const enforced = {
    type: 'Enforced',
    status: 'True',
    reason: 'FailurePolicy',
    message: 'requests are rejected',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  } as const;
  for (const part of [
    { phase: 'Error', message: 'nothing serves: requests are admitted with a warning' },
    { phase: 'Active', message: 'revision 1 serves on every replica' },
  ] as const) {
    it(`is found by its ${part.phase}, ${part.message}`, () => {
      const status = { ...part, conditions: [enforced] } as unknown as AdmissionPolicyStatus;
      assert.throws(() => claimOf(status), /contradicts Enforced/);
    });
  }
});
