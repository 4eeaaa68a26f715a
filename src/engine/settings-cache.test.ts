import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MAX_READY_SETTINGS, SettingsCache } from './settings-cache.ts';

describe('SettingsCache', () => {
  it('prepares settings once per text', () => {
    let made = 0;
    const cache = new SettingsCache((json) => [json, (made += 1)]);
    assert.equal(cache.get('{"a":1}'), cache.get('{"a":1}'));
    assert.notEqual(cache.get('{"a":2}'), cache.get('{"a":1}'));
    assert.equal(made, 2);
  });

  it('is limited in size', () => {
    let made = 0;
    const count = (): number => (made += 1);
    const many = new SettingsCache(count);
    for (let index = 0; index <= MAX_READY_SETTINGS; index += 1) {
      many.get(String(index));
    }
    assert.equal(many.get('0'), MAX_READY_SETTINGS + 2);
  });
});
