import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SettingsCache } from './settings-cache.ts';

describe('SettingsCache', () => {
  it('prepares settings once per text', () => {
    let made = 0;
    const cache = new SettingsCache((json) => [json, (made += 1)]);
    assert.equal(cache.get('{"a":1}'), cache.get('{"a":1}'));
    assert.notEqual(cache.get('{"a":2}'), cache.get('{"a":1}'));
    assert.equal(made, 2);
  });

  it('forgets the oldest settings where there are too many', () => {
    let made = 0;
    const count = (): number => (made += 1);
    const few = new SettingsCache(count, 2);
    assert.deepEqual(
      ['0', '1', '2', '1', '0'].map((text) => few.get(text)),
      [1, 2, 3, 2, 4],
    );
  });
});
