import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { MAX_HISTORY } from '../../resources/index.ts';
import { type HistoryEntry, recordHistory } from './compliance-history.ts';

/** Records messages, one second apart. */
function history(...messages: readonly string[]): readonly HistoryEntry[] {
  return messages.reduce<readonly HistoryEntry[]>(
    (entries, message, index) => recordHistory(entries, { message, lastTimestamp: `t${index}` }),
    [],
  );
}

describe('recordHistory', () => {
  it('puts the newest first, and keeps ten', () => {
    const messages = Array.from({ length: 15 }, (_, index) => `m${index}`);
    assert.deepEqual(
      history(...messages).map(({ message }) => message),
      messages.toReversed().slice(0, MAX_HISTORY),
    );
  });

  it('is the same list for the message that is the newest already', () => {
    const entries = history('a', 'b');
    assert.equal(recordHistory(entries, { message: 'b', lastTimestamp: 't9' }), entries);
  });

  it('keeps messages that control no terminal', () => {
    const entries = history('evil\u001B[2J\u001B]8;;a:b\u009B2J\u202Etxt');
    assert.equal(entries[0]?.message, 'evil\u{fffd}[2J\u{fffd}]8;;a:b\u{fffd}2J\u{fffd}txt');
    assert.equal(
      recordHistory(entries, { message: 'evil\u001B[2J\u001B]8;;a:b\u009B2J\u202Etxt', lastTimestamp: 't9' }),
      entries,
    );
  });

  it('counts two messages that alternate', () => {
    assert.deepEqual(history('start', 'a', 'b', 'a', 'b', 'a'), [
      { message: 'a', lastTimestamp: 't5', count: 3, firstTimestamp: 't1' },
      { message: 'b', lastTimestamp: 't4', count: 2, firstTimestamp: 't2' },
      { message: 'start', lastTimestamp: 't0' },
    ]);
  });

  it('keeps messages that come back later apart', () => {
    assert.deepEqual(
      history('a', 'b', 'c', 'a').map(({ message, count }) => [message, count]),
      [
        ['a', undefined],
        ['c', undefined],
        ['b', undefined],
        ['a', undefined],
      ],
    );
  });

  it('cuts messages as upstream does', () => {
    const [entry] = history('x'.repeat(5_000));
    assert.equal(entry?.message.length, 4_096);
    assert.match(entry.message, /x\.\.\.\[truncated\]$/u);
    const entries = history('x'.repeat(5_000));
    assert.equal(recordHistory(entries, { message: 'x'.repeat(5_000), lastTimestamp: 't9' }), entries);
  });

  it('counts every change, however messages alternate', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 40 }), (messages) => {
        const entries = history(...messages);
        const changes = messages.filter((message, index) => message !== messages[index - 1]).length;
        const counted = entries.reduce((sum, { count = 1 }) => sum + count, 0);
        assert.ok(entries.length <= MAX_HISTORY);
        assert.ok(entries.length === MAX_HISTORY ? counted <= changes : counted === changes);
        assert.equal(entries[0]?.message, messages.at(-1));
      }),
    );
  });
});
