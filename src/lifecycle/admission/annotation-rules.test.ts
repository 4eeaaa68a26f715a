import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Found, validated, type Kind, object, review, server, SPEC } from './testing/validation-cases.ts';

describe('annotations', () => {
  const annotated = (kind: Kind, annotations: object, old?: object): Found => {
    const spec = kind === 'ps' ? server({}) : SPEC;
    const before = old === undefined ? undefined : object(kind, spec, { annotations: old });
    return validated(review(kind, object(kind, spec, { annotations }), before));
  };

  for (const [annotation, good, bad] of [
    ['pin', ['1', '12'], ['0', '-1', '1.5', 'latest', '', '01']],
    ['rollback-to', ['3', 'previous'], ['0', 'last', '']],
    ['revision-history-limit', ['5'], ['-1', 'many']],
    ['rollout-strategy', ['Available', 'AllReplicas'], ['Recreate']],
    ['progress-deadline', ['90s', '5m'], ['soon', '-1s']],
    ['refresh', ['1', '2026-11-23T21:49:00Z', 'Mon 23 Nov'], ['', 'x'.repeat(65), 'a\nb', 'jetzt für alle']],
    ['webhook', ['Own'], ['own', 'Shared', '']],
    ['disarmed', ['INC-1: rejects every pod'], ['', ' ', 'a\nb', 'x'.repeat(201), '\u202Ea']],
  ] as const) {
    const key = `portcullis.dev/${annotation}`;
    it(`are validated: ${key}`, () => {
      for (const value of good) {
        assert.deepEqual(annotated('ap', { [key]: value }).errors, [], value);
      }
      for (const value of bad) {
        assert.deepEqual(
          annotated('cap', { [key]: value }).errors,
          [`metadata.annotations[${key}] [annotation]`],
          value,
        );
      }
    });
  }

  it('of PolicyServers are validated, except those that are for policies only', () => {
    const key = 'portcullis.dev/progress-deadline';
    assert.deepEqual(annotated('ps', { [key]: 'soon' }).errors, [`metadata.annotations[${key}] [annotation]`]);
    assert.deepEqual(annotated('ps', { 'portcullis.dev/pin': 'x' }).errors, []);
  });

  it('are accepted if they have not changed', () => {
    const old = { 'portcullis.dev/pin': 'x', 'portcullis.dev/progress-deadline': 'soon' };
    assert.deepEqual(annotated('cap', { ...old, other: 'one' }, old).errors, []);
    assert.equal(annotated('cap', { 'portcullis.dev/pin': 'y' }, old).errors.length, 1);
  });

  it('that are unknown get a warning if they resemble a known one', () => {
    const found = annotated('cap', { 'portcullis.dev/rolback-to': '1', 'portcullis.dev/something-else': 'x' });
    assert.deepEqual(found.warnings, ['metadata.annotations[portcullis.dev/rolback-to] [annotation-unknown]']);
    assert.match(found.text, /did you mean portcullis\.dev\/rollback-to\?/);
  });

  it('get a warning when a pin outlasts a rollback', () => {
    const found = annotated('cap', { 'portcullis.dev/rollback-to': '1', 'portcullis.dev/pin': '2' });
    assert.deepEqual(found.warnings, ['metadata.annotations[portcullis.dev/rollback-to] [pin-outlasts-rollback]']);
  });
});
