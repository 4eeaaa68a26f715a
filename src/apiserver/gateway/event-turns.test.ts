import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { EventTurns } from './event-turns.ts';

describe('turns of watches', () => {
  it('write events until a turn is full, and always one', async () => {
    const turns = new EventTurns(100_000);
    const written: string[] = [];
    const write = (name: string, bytes: number): Promise<void> =>
      turns.write('alice', () => {
        written.push(name);
        return bytes;
      });
    const all = [write('a', 60_000), write('b', 60_000), write('c', 500_000), write('d', 1)];
    assert.deepEqual(written, ['a', 'b']);
    await nextTurn();
    assert.deepEqual(written, ['a', 'b', 'c']);
    await Promise.all(all);
    assert.deepEqual(written, ['a', 'b', 'c', 'd']);
  });

  it('are full of many small events, too', async () => {
    const turns = new EventTurns(100_000);
    let written = 0;
    const all = Array.from({ length: 1_000 }, () => turns.write('alice', () => ((written += 1), 10)));
    assert.ok(written < 100, `${written} events in one turn`);
    await Promise.all(all);
    assert.equal(written, 1_000);
  });

  it('let users take turns', async () => {
    const turns = new EventTurns(1);
    const written: string[] = [];
    const write = (user: string): Promise<void> =>
      turns.write(user, () => {
        written.push(user);
        return 1;
      });
    await Promise.all(['mallory', 'mallory', 'mallory', 'mallory', 'alice', 'bob', 'bob'].map(write));
    assert.deepEqual(written, ['mallory', 'mallory', 'alice', 'bob', 'mallory', 'bob', 'mallory']);
  });

  it('go on after a write that fails', async () => {
    const turns = new EventTurns(1);
    const failing = turns.write('alice', () => {
      throw new Error('no line');
    });
    await assert.rejects(failing, /no line/);
    await turns.write('alice', () => 1);
  });
});
