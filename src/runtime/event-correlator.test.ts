import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  COMBINED_PREFIX,
  EventCorrelator,
  MAX_NOTE_LENGTH,
  MAX_REMEMBERED,
  MAX_SIMILAR,
  OBJECT_RATE,
  RECORD_MS,
  SIMILAR_WINDOW_MS,
} from './event-correlator.ts';

const POD = { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'x', name: 'pod', uid: '1' } };
const OTHER = { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'x', name: 'other', uid: '2' } };

describe('EventCorrelator', () => {
  it('counts repeats in one record', () => {
    const correlator = new EventCorrelator();
    const first = correlator.correlate(POD, 'Warning', 'Broken', 'it is', 1000);
    const again = correlator.correlate(POD, 'Warning', 'Broken', 'it is', 5000);
    assert.equal(first, again);
    assert.deepEqual([first?.count, first?.firstAt, first?.lastAt], [2, 1000, 5000]);
    assert.notEqual(correlator.correlate(POD, 'Normal', 'Broken', 'it is', 5000), first);
    assert.notEqual(correlator.correlate(OTHER, 'Warning', 'Broken', 'it is', 5000), first);
  });

  it('records messages that control no terminal', () => {
    const record = new EventCorrelator().correlate(
      POD,
      'Warning',
      'Broken',
      'evil\u001B[2J\u001B]8;;a:b\u009B2J\u202Etxt',
      0,
    );
    assert.equal(record?.message, 'evil\u{fffd}[2J\u{fffd}]8;;a:b\u{fffd}2J\u{fffd}txt');
  });

  it('combines events that differ only in their message, while they keep coming', () => {
    const correlator = new EventCorrelator();
    const apart = Array.from({ length: MAX_SIMILAR }, (_, index) =>
      correlator.correlate(POD, 'Warning', 'Broken', `try ${index}`, 0),
    );
    assert.equal(new Set(apart).size, MAX_SIMILAR);
    const one = correlator.correlate(POD, 'Warning', 'Broken', 'try 10', 0);
    const two = correlator.correlate(POD, 'Warning', 'Broken', 'try 11', 0);
    assert.equal(one, two);
    assert.equal(one?.count, 2);
    assert.equal(one?.message, `${COMBINED_PREFIX}try 11`);
    assert.equal(correlator.correlate(POD, 'Warning', 'Broken', 'try 3', 0), apart[3]);
    const later = correlator.correlate(POD, 'Warning', 'Broken', 'try 12', SIMILAR_WINDOW_MS + 1);
    assert.equal(later?.message, 'try 12');
  });

  it('limits the rate of an object and reason, but counts its events', () => {
    const correlator = new EventCorrelator();
    const written = Array.from({ length: 100 }, () => correlator.correlate(POD, 'Normal', 'Busy', 'always', 0));
    assert.equal(written.filter((record) => record !== undefined).length, OBJECT_RATE.burst);
    assert.equal(written[0]?.count, 100);
    assert.notEqual(correlator.correlate(OTHER, 'Normal', 'Busy', 'always', 0), undefined);
    assert.notEqual(correlator.correlate(POD, 'Warning', 'Broken', 'another reason', 0), undefined);
    assert.equal(correlator.correlate(POD, 'Normal', 'Busy', 'always', 1000 / OBJECT_RATE.perSecond)?.count, 101);
  });

  it('works when the clock goes back', () => {
    const correlator = new EventCorrelator();
    const day = 86_400_000;
    const first = correlator.correlate(POD, 'Normal', 'Busy', 'always', day);
    assert.equal(correlator.correlate(POD, 'Normal', 'Busy', 'always', 0), first);
    assert.deepEqual([first?.count, first?.firstAt, first?.lastAt], [2, day, day]);
  });

  it('keeps records of frequent events among many rare ones', () => {
    const correlator = new EventCorrelator();
    const about = (name: string) => ({ ...POD, metadata: { namespace: 'x', name } });
    for (let index = 0; index < 2 * MAX_REMEMBERED; index++) {
      correlator.correlate(about(`once-${index}`), 'Normal', 'Made', 'once', 0);
      if (index % 1000 === 0) {
        correlator.correlate(POD, 'Normal', 'Busy', 'always', 0);
      }
    }
    assert.equal(correlator.correlate(POD, 'Normal', 'Busy', 'always', 0)?.count, 10);
  });

  it('stays within the limits of the events API', () => {
    const record = new EventCorrelator().correlate(POD, 'Normal', 'R'.repeat(500), 'm'.repeat(5000), 0);
    assert.equal(record?.message.length, MAX_NOTE_LENGTH);
    assert.equal(record?.reason.length, 128);
  });

  it('forgets what changes no decision any more', () => {
    const correlator = new EventCorrelator();
    const about = (index: number): typeof POD => ({ ...POD, metadata: { ...POD.metadata, uid: String(index) } });
    for (let index = 0; index < 100; index++) {
      correlator.correlate(about(index), 'Normal', 'Busy', 'always', 0);
    }
    assert.equal(correlator.remembered, 300);
    correlator.correlate(OTHER, 'Normal', 'Busy', 'always', SIMILAR_WINDOW_MS + 1);
    // An event takes a token, which is refilled in five minutes.
    assert.equal(correlator.remembered, 100 + 3);
    correlator.correlate(OTHER, 'Normal', 'Busy', 'always', RECORD_MS + 1);
    assert.equal(correlator.remembered, 3);
    assert.equal(correlator.correlate(about(1), 'Normal', 'Busy', 'always', RECORD_MS + 2)?.count, 1);
  });
});
