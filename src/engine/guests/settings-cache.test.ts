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

  it('forgets those that were used least recently where their texts are too long together', () => {
    let made = 0;
    const cache = new SettingsCache(() => (made += 1));
    const used = '"used"';
    const first = cache.get(used);
    // A tenant changes a large policy again and again.
    const large = (version: number): string => JSON.stringify(`${version}${'x'.repeat(1024 * 1024)}`);
    for (let version = 0; version < 8; version++) {
      assert.equal(cache.get(large(version)), version + 2);
      assert.equal(cache.get(used), first);
    }
    assert.equal(cache.get(large(7)), 9);
    assert.equal(cache.get(large(6)), 10);
  });

  it('forgets the oldest settings where there are too many', () => {
    let made = 0;
    const count = (): number => (made += 1);
    const few = new SettingsCache(count, 2);
    assert.deepEqual(
      ['0', '1', '2', '1', '0', '2'].map((text) => few.get(text)),
      [1, 2, 3, 2, 4, 5],
    );
  });
});
