import assert from 'node:assert/strict';
import { it } from 'node:test';
import { changeOf } from './change.ts';
import type { SideVerdict } from './side-verdict.ts';

const PASS: SideVerdict = { state: 'pass' };
const NO: SideVerdict = { state: 'reject', message: 'no' };
const OTHER: SideVerdict = { state: 'reject', message: 'other' };
const REPORT: SideVerdict = { state: 'report', message: 'no' };
const ERROR: SideVerdict = { state: 'error', message: 'failed' };
const PATCH: SideVerdict = { state: 'mutate', patch: '[1]' };
const OTHER_PATCH: SideVerdict = { state: 'mutate', patch: '[2]' };

it('compares what two versions say about an object', () => {
  for (const [before, after, change] of [
    [PASS, PASS, 'unchanged'],
    [PASS, NO, 'newlyRejected'],
    [REPORT, NO, 'newlyRejected'],
    [PATCH, NO, 'newlyRejected'],
    [ERROR, NO, 'newlyRejected'],
    [NO, NO, 'stillRejected'],
    [NO, OTHER, 'messageChanged'],
    [NO, PASS, 'newlyAdmitted'],
    [NO, REPORT, 'newlyAdmitted'],
    [NO, PATCH, 'newlyAdmitted'],
    [NO, ERROR, 'notEvaluable'],
    [ERROR, PASS, 'notEvaluable'],
    [PASS, ERROR, 'notEvaluable'],
    [PASS, REPORT, 'newlyReported'],
    [REPORT, REPORT, 'unchanged'],
    [REPORT, PASS, 'unchanged'],
    [PASS, PATCH, 'newlyMutated'],
    [PATCH, PATCH, 'unchanged'],
    [PATCH, OTHER_PATCH, 'mutationChanged'],
    [PATCH, PASS, 'noLongerMutated'],
  ] as const) {
    assert.equal(changeOf(before, after), change, `${before.state} → ${after.state}`);
  }
});
